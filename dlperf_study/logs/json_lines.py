"""Reads the lines of a block that hold a JSON object."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dlperf_study.logs.blocks import Block
from dlperf_study.logs.format import TRAINING, Entry, JsonLine
from dlperf_study.logs.lines import Found, lines_with
from dlperf_study.logs.records import Records, Whole, records

#: Whole numbers that fit a column.
LARGEST = 2**63


def read_json_lines(line: JsonLine, block: Block) -> Found:
    """Return what the JSON objects of a block say. A line that is understood and bears no number is used up too."""
    candidates = lines_with(line.needles, block)
    entries: list[Entry] = []
    read: list[int] = []
    used: list[int] = []
    for index in candidates.tolist():
        try:
            entry = line.entry(object_behind(line.needles, block.line(index)))
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            continue
        used.append(index)
        if entry is not None and _fits(entry):
            entries.append(entry)
            read.append(index)
    rows = _rows(entries, block.first_line + np.array(read, dtype=np.int64))
    odd = [line for line, entry in zip(read, entries, strict=True) if any(map(math.isnan, entry.values.values()))]
    return Found(rows, np.array(used, dtype=np.int64), candidates, np.array(odd, dtype=np.int64))


def object_behind(needles: tuple[str, ...], line: bytes) -> Mapping[str, Any]:
    """Return the JSON object behind a needle; raises ValueError when there is none."""
    for needle in needles:
        _, found, text = line.partition(needle.encode())
        if found:
            value = json.loads(text.decode(errors="replace"))
            if isinstance(value, dict):
                return value
    raise ValueError("no JSON object")


def _fits(entry: Entry) -> bool:
    return max(abs(entry.epoch), abs(entry.step), abs(entry.rank)) < LARGEST


def _rows(entries: list[Entry], lines: Whole) -> Records:
    names = dict.fromkeys(name for entry in entries for name in entry.values)
    values = {name: np.array([entry.values.get(name, np.nan) for entry in entries]) for name in names}
    return records(
        lines,
        values,
        training=np.array([entry.window == TRAINING for entry in entries], dtype=bool),
        time_seconds=np.array([entry.time_seconds for entry in entries], dtype=np.float64),
        **{
            name: np.array([getattr(entry, name) for entry in entries], dtype=np.int64)
            for name in ("epoch", "step", "rank")
        },
    )
