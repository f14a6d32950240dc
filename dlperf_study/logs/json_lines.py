"""Reads the lines of a block that hold a JSON object."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlperf_study.arrays import Integers, concatenated
from dlperf_study.logs.blocks import Block
from dlperf_study.logs.format import TRAINING, Entry, JsonLine
from dlperf_study.logs.json_layouts import UNREADABLE, Read, read_alike
from dlperf_study.logs.layouts import Layout
from dlperf_study.logs.records import PLACES, Found, Records, joined, records

# What is worth keeping of a JSON object that a program printed.


def numbers_of(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the entries that are numbers, also those printed as text; truth values are none."""
    found = {}
    for name, value in data.items():
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            try:
                found[name] = float(value)
            except (ValueError, OverflowError):
                continue
    return found


def text_facts(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the entries that are one value, as text."""
    return {name: str(value) for name, value in data.items() if isinstance(value, int | float | str)}


#: Whole numbers that fit a column.
LARGEST = 2**63


def read_json_lines(line: JsonLine, block: Block, some: Sequence[Layout]) -> Found:
    """Return what the JSON objects of a block say, given the layouts of its candidate lines.

    A line that is understood and bears no number is used up too.
    """

    def entry_of(text: bytes) -> Entry | None:
        return line.entry(object_behind(line.needles, text))

    holding = [layout for layout in some if any(needle.encode() in layout.text for needle in line.needles)]
    alike = [read_alike(entry_of, block, layout) for layout in holding]
    left = np.sort(concatenated(lines for _, lines in alike))
    return _together([*(found for found, _ in alike), _one_by_one(entry_of, block, left)])


def _together(parts: Sequence[Found]) -> Found:
    """Return several parts as one; the metrics come in the order of the lines."""
    rows = sorted((part.rows for part in parts if len(part.rows)), key=lambda rows: int(rows.line[0]))
    names = ("used", "candidates", "not_numbers")
    return Found(joined(rows), *(np.sort(concatenated(getattr(part, name) for part in parts)) for name in names))


def _one_by_one(entry_of: Read, block: Block, lines: Integers) -> Found:
    """Return what lines say that were candidates before."""
    entries: list[Entry] = []
    read: list[int] = []
    used: list[int] = []
    for index in lines.tolist():
        try:
            entry = entry_of(block.line(index))
        except UNREADABLE:
            continue
        used.append(index)
        if entry is not None and _fits(entry):
            entries.append(entry)
            read.append(index)
    rows = _rows(entries, block.first_line + np.array(read, dtype=np.int64))
    odd = [line for line, entry in zip(read, entries, strict=True) if any(map(math.isnan, entry.values.values()))]
    return Found(rows, np.array(used, dtype=np.int64), lines[:0], np.array(odd, dtype=np.int64))


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


def _rows(entries: list[Entry], lines: Integers) -> Records:
    names = dict.fromkeys(name for entry in entries for name in entry.values)
    values = {name: np.array([entry.values.get(name, np.nan) for entry in entries]) for name in names}
    return records(
        lines,
        values,
        training=np.array([entry.window == TRAINING for entry in entries], dtype=bool),
        time_seconds=np.array([entry.time_seconds for entry in entries], dtype=np.float64),
        **{name: np.array([getattr(entry, name) for entry in entries], dtype=np.int64) for name in PLACES},
    )
