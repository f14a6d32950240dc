"""Lines with a JSON object, and tables and documents as such lines."""

import csv
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import BufferedIOBase
from itertools import chain
from typing import Any

import numpy as np

from dlperf_study.core.arrays import Integers
from dlperf_study.core.errors import LogError
from dlperf_study.logs.blocks import LONGEST_LINE, Block, Lines
from dlperf_study.logs.event_files import event_rows, is_event_file
from dlperf_study.logs.format import JsonLine, JsonRecord
from dlperf_study.logs.records import POSITION_COLUMNS, Matches, Records, make_records
from dlperf_study.logs.text_lines import lines_with
from dlperf_study.logs.wandb_files import history_rows, is_wandb_file

JSON_ROW, CSV_ROW = "JSON row: ", "CSV row: "
#: The entry of a document that has one row per line of the log.
_ROWS = "log_history"
_LONGEST_DOCUMENT = 1 << 25
#: What reading raises for an object of the wrong form.
UNREADABLE = (ValueError, KeyError, TypeError, RecursionError, OverflowError)
#: Larger integers do not fit a column.
_INTEGER_LIMIT = 2**63


def is_tracker_file(name: str) -> bool:
    """Return whether a name belongs to a binary tracker file."""
    return is_event_file(name) or is_wandb_file(name)


def as_lines(name: str, file: BufferedIOBase) -> BufferedIOBase:
    """Return a log; tables, JSON documents and tracker files as lines."""
    if is_event_file(name):
        return Lines(event_rows(name, file))
    if is_wandb_file(name):
        return Lines(history_rows(name, file))
    lower = name.lower().removesuffix(".gz")
    if lower.endswith(".csv"):
        return Lines(_csv_rows(name, file))
    if lower.endswith((".json", ".jsonl")):
        return Lines(_json_rows(name, file))
    return file


def _csv_rows(name: str, file: BufferedIOBase) -> Iterator[bytes]:
    """Yield table rows by column name, without missing values."""
    names: list[str] = []
    for line in _read_lines(file):
        cells = _cells(line.decode(errors="replace"))
        if not names:
            # Spreadsheet programs mark a text as UTF-8 by a sign before it.
            names = _cells(line.decode("utf-8-sig", errors="replace"))
            if twice := next((column for column in names if column and names.count(column) > 1), ""):
                raise LogError(f"{name}: two of its columns are named {twice!r}")
        elif len(cells) == len(names):
            row = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
            yield _line(CSV_ROW, json.dumps(row), line.endswith(b"\n"))
        elif any(cells):
            yield _line(CSV_ROW, json.dumps(",".join(cells)), line.endswith(b"\n"))


def _cells(line: str) -> list[str]:
    """Return the cells of a line; quoted cells may have commas."""
    line = line.strip()
    cells = line.split(",")
    if '"' in line:
        # A cell that is too long, or a carriage return in the middle of a line, is no table.
        with suppress(csv.Error):
            cells = next(csv.reader([line]), [""])
    return [cell.strip() for cell in cells]


def _read_lines(file: BufferedIOBase) -> Iterator[bytes]:
    """Yield the lines of a file; too long lines in parts."""
    return iter(lambda: file.readline(LONGEST_LINE), b"")


def _json_rows(name: str, file: BufferedIOBase) -> Iterator[bytes]:
    """Yield the rows of a document; lines with an object unchanged."""
    first = file.readline(LONGEST_LINE)
    if first.strip() == b"{":
        content = first + file.read(_LONGEST_DOCUMENT + 1)
        if len(content) > _LONGEST_DOCUMENT:
            size = f"{_LONGEST_DOCUMENT / 1e6:.0f} MB"
            raise LogError(f"{name}: is one JSON document of more than {size}; a log has one JSON object per line")
        try:
            rows = json.loads(content)[_ROWS]
        except (ValueError, KeyError, RecursionError):
            rows = None
        if isinstance(rows, list):
            yield from (_line(JSON_ROW, json.dumps(row)) for row in rows)
        else:
            # A document without rows, or a damaged one.
            yield content
        return
    for line in chain([first], _read_lines(file)):
        yield JSON_ROW.encode() + line if line.startswith(b"{") else line


def _line(marker: str, text: str, is_complete: bool = True) -> bytes:
    """Return a row as a line; a cut row has no newline."""
    newline = "\n" if is_complete else ""
    return f"{marker}{text}{newline}".encode()


def numeric_values(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a JSON object, also in strings; no booleans."""
    numbers = {}
    for name, value in data.items():
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            try:
                numbers[name] = float(value)
            except (ValueError, OverflowError):
                continue
    return numbers


def string_values(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the single values of a JSON object as strings."""
    return {name: str(value) for name, value in data.items() if isinstance(value, int | float | str)}


def parse_json_object(needles: tuple[str, ...], line: bytes) -> Mapping[str, Any]:
    """Return the JSON object after a needle; raises ValueError without one."""
    for needle in needles:
        _, separator, text = line.partition(needle.encode())
        if separator:
            value = json.loads(text.decode(errors="replace"))
            if isinstance(value, dict):
                return value
    raise ValueError("no JSON object")


def read_json_lines(line: JsonLine, block: Block) -> Matches:
    """Return the content of the JSON objects of a block."""
    candidates = lines_with(line.needles, block)
    json_records: list[JsonRecord] = []
    recorded: list[int] = []
    used: list[int] = []
    nan_lines: list[int] = []
    for index in candidates.tolist():
        try:
            record = line.record(parse_json_object(line.needles, block.line(index)))
        except UNREADABLE:
            continue
        used.append(index)
        if record is None or max(abs(record.epoch), abs(record.step), abs(record.rank)) >= _INTEGER_LIMIT:
            continue
        json_records.append(record)
        recorded.append(index)
        if any(map(math.isnan, record.values.values())):
            nan_lines.append(index)
    records = _make_records(json_records, block.first_line + np.array(recorded, dtype=np.int64))
    return Matches(records, np.array(used, dtype=np.int64), candidates, np.array(nan_lines, dtype=np.int64))


def _make_records(json_records: list[JsonRecord], lines: Integers) -> Records:
    values = {}
    for metric in dict.fromkeys(chain.from_iterable(record.values for record in json_records)):
        values[metric] = np.array([record.values.get(metric, np.nan) for record in json_records])
    columns = {}
    for name in POSITION_COLUMNS:
        columns[name] = np.array([getattr(record, name) for record in json_records], dtype=np.int64)
    training = np.array([record.training for record in json_records], dtype=bool)
    times = np.array([record.time_seconds for record in json_records], dtype=np.float64)
    return make_records(lines, values, training=training, time_seconds=times, **columns)
