"""A table of results from a CSV file of a user; all errors of the file are reported in one message."""

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from dlperf_study.audit.result_cell import RELATIVE, SPEEDUP, THROUGHPUT
from dlperf_study.audit.result_frames import METRIC, METRIC_COLUMNS, VALUE, long_frame, results_of_frame
from dlperf_study.audit.results import Results
from dlperf_study.columns import COLUMNS, Dtype
from dlperf_study.errors import PublishedError, TableError
from dlperf_study.published.source import METRICS
from dlperf_study.published.source_lines import NO_NUMBER, resolution_of, value_of
from dlperf_study.study.strict_yaml import display_path
from dlperf_study.wording import counted, first_of, unknown_name

#: How many errors are reported at most.
MOST_ERRORS = 10
#: What is written where there is no number, in lower case.
NO_NUMBERS = ("-", "–", "—", "n/a", "na", "nan", "none", "null")
#: The sizes of numbers of results: quotients and products of such numbers are numbers too.
SMALLEST, LARGEST = 1e-30, 1e30
#: A number with commas before every three digits; with one comma and no point it may be a decimal comma as well.
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
#: How many characters of a field a message shows.
LONGEST_FIELD = 40
#: Counts of which there is at least one.
_AT_LEAST_ONE = ("world_size", "nodes", "devices_per_node")
#: The column with the line number of a row; the header is line 1.
_LINE = "line of the file"
_RESOLUTION = "resolution"
#: Columns of numbers that the registry of columns does not define.
_NUMBER_COLUMNS = ("low", "high", _RESOLUTION)
_METRICS = tuple(dict.fromkeys((*METRICS, *METRIC_COLUMNS)))
#: Ratios of two rates, and the signs that may follow them.
_RATIOS, _TIMES_SIGNS = (SPEEDUP, RELATIVE), "x×"
#: Other names of a column of rates.
_RATE_NAMES = re.compile(
    r"(?<![a-z])(?:images?|imgs?|samples?|seq(?:uence)?s?|sentences?)(?: ?/ ?|[ _]per[ _])s(?:ec(?:ond)?)?s?(?![a-z])",
    re.IGNORECASE,
)
#: Other names of a column of the number of devices.
_DEVICE_NAMES = re.compile(
    r"(?:n|num|number)?[_ ]?(?:of[_ ])?(?:gpu|device|worker|rank|card|trainer)s?(?:[_ ]num)?", re.IGNORECASE
)
#: Other names of a column of the number of devices of a node.
_PER_NODE_NAMES = re.compile(
    r"(?:n|num)?_?(?:gpu|device|worker|rank|card|trainer)s?[_ /]?(?:per|a|/)[_ ]?(?:node|host|machine|server)",
    re.IGNORECASE,
)
#: Separators other than the comma.
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}

Item = TypeVar("Item")
Value = TypeVar("Value")


def read_results(path: Path) -> Results:
    """Read a table: long, one row per number with its ``metric``, or wide, with a column for each metric.

    Numbers count as printed: the last digit of each says how it was rounded.

    Raises:
        TableError: the file is no table, names no metric, or has fields that are no numbers: all of them are named.

    """
    errors = TableErrors()
    with error_prefix(f"{display_path(path)}: "):
        table = _read_fields(path, errors)
        if table.empty:
            errors.raise_all()
            raise TableError("there is no row below the header")
        rows = table if METRIC in table else long_frame(table, path.name)
        typed_rows = [_typed_row(row, errors) for row in rows.to_dict("records")]
        errors.raise_all()
        return results_of_frame(pd.DataFrame(typed_rows))


class TableErrors:
    """The errors of a table, each once."""

    def __init__(self) -> None:
        """Begin without any error."""
        self._messages: dict[str, None] = {}

    def parse_each(self, items: Iterable[Item], parse: Callable[[Item], Value]) -> Iterator[Value]:
        """Yield what ``parse`` returns for each item; collect its TableErrors, and leave out those items."""
        for item in items:
            try:
                value = parse(item)
            except TableError as error:
                self._messages[str(error)] = None
            else:
                yield value

    def raise_all(self) -> None:
        """Raise one TableError with the messages of all errors, if there are any."""
        if self._messages:
            raise TableError(first_of(list(self._messages), MOST_ERRORS, "; "))


@contextmanager
def error_prefix(prefix: str) -> Iterator[None]:
    """Add a prefix to the message of a TableError."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{prefix}{error}") from None


def _read_fields(path: Path, errors: TableErrors) -> pd.DataFrame:
    """Return the fields as strings, missing where empty."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True, skipinitialspace=True)
            lines = [(reader.line_num, fields) for fields in reader if fields]
    except (csv.Error, UnicodeDecodeError) as error:
        raise TableError(f"not a CSV table: {error}") from None
    if not lines:
        raise TableError("is empty: a header with the names of the columns was expected, and rows below it")
    header = lines[0][1]
    _check_header(header)

    def named_fields(line: tuple[int, list[str]]) -> dict[str, Any]:
        line_number, fields = line
        if len(fields) != len(header):
            count = counted(len(fields), "field")
            raise TableError(f"line {line_number} has {count}, and the header has {len(header)}")
        named = {name: field.strip() or None for name, field in zip(header, fields, strict=True)}
        return {_LINE: line_number, **named}

    return pd.DataFrame(errors.parse_each(lines[1:], named_fields))


def _check_header(header: list[str]) -> None:
    if len(set(header)) < len(header):
        raise TableError(f"a column appears twice; the columns are {', '.join(header)}")
    rate_names = [name for name in header if _RATE_NAMES.search(name)]
    if rate_names and not {THROUGHPUT, METRIC} & {*header}:
        raise TableError(f"{rate_names[0]} is no known metric: call it throughput if it is of all devices")
    if METRIC not in header and not set(METRIC_COLUMNS) & set(header):
        hint = ""
        for separator, noun in _OTHER_SEPARATORS.items():
            if not hint and separator in "".join(header):
                hint = f"; its fields seem to be separated by {noun}, and must be separated by commas"
        raise TableError(
            f"there is no column metric and no column of a metric; the columns are {', '.join(header)}; "
            f"the metrics are {', '.join(METRIC_COLUMNS)}{hint}"
        )
    device_names = [name for name in header if _DEVICE_NAMES.fullmatch(name)]
    if device_names and not {"world_size", "nodes"} & {*header}:
        raise TableError(f"{device_names[0]} is no known column: call it world_size if it counts all devices")
    per_node_names = [name for name in header if _PER_NODE_NAMES.fullmatch(name)]
    if per_node_names and not {"world_size", "devices_per_node"} & {*header}:
        raise TableError(f"{per_node_names[0]} is no known column: call it devices_per_node")


def _typed_row(row: Mapping[Any, Any], errors: TableErrors) -> dict[str, Any]:
    """Return a row with numbers in the columns of numbers; without a value if that has an error."""
    fields = {str(name): str(field) for name, field in row.items() if not pd.isna(field)}
    line = f"line {fields.pop(_LINE)}"
    conditions = []
    for name, field in fields.items():
        # A word for no number may be a level of a column without numbers: no compression is "none".
        is_missing = is_no_number(field) if _is_number_column(name) else field == NO_NUMBER
        if name != VALUE and not is_missing:
            conditions.append(name)
    typed = errors.parse_each(conditions, lambda name: (name, _condition(name, line, fields[name])))
    typed_row = dict(typed)
    for value_columns in errors.parse_each([fields], lambda fields: _value_columns(fields, line)):
        typed_row |= value_columns
    return _with_world_size(typed_row)


def _with_world_size(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its number of devices, also where a table prints only those of a node, and the nodes."""
    if "world_size" in row or not {"nodes", "devices_per_node"} <= row.keys():
        return row
    inferred = ", ".join(filter(None, (row.get("inferred"), "world_size")))
    return row | {"world_size": row["nodes"] * row["devices_per_node"], "inferred": inferred}


def _is_number_column(name: str) -> bool:
    return name in _NUMBER_COLUMNS or (name in COLUMNS and COLUMNS[name].is_number)


def _condition(name: str, line: str, field: str) -> Any:
    if not _is_number_column(name):
        return field
    with error_prefix(f"{line}: {name} is "):
        value = finite(field)
        if name in COLUMNS and COLUMNS[name].dtype is not Dtype.FLOAT and not value.is_integer():
            raise TableError(f"{field!r}, which is not an integer")
        if name in _AT_LEAST_ONE and value < 1:
            raise TableError(f"{field!r}, which must be at least 1")
        return value


def _value_columns(fields: Mapping[str, str], line: str) -> dict[str, Any]:
    """Return the number of a row and one unit of its last digit; empty where there is no number."""
    metric = fields.get(METRIC, "")
    if metric not in _METRICS:
        raise TableError(f"{line}: {unknown_name('metric is', metric, 'metrics', _METRICS)}")
    field = fields.get(VALUE, fields.get("printed", NO_NUMBER))
    if is_no_number(field):
        return {}
    with error_prefix(f"{line}: {fields.get('column', VALUE)} is "):
        if metric in _RATIOS:
            field = field.rstrip(_TIMES_SIGNS).rstrip()
        if _RESOLUTION in fields:
            return {VALUE: finite(field)}
        unit = "%" if field.endswith("%") else ""
        digits = without_commas(field.removesuffix("%").strip())
        try:
            value, resolution = value_of(digits, unit), resolution_of(digits, unit)
        except PublishedError:
            return {VALUE: finite(field), "printed": field}
        return {VALUE: _checked_finite(value, field), _RESOLUTION: resolution, "printed": field}


def is_no_number(field: str) -> bool:
    """Return whether a field says that there is no number."""
    return field.lower() in NO_NUMBERS


def finite(field: str) -> float:
    """Return a number; raises TableError if the field is no number, or one that no result is."""
    try:
        value = float(without_commas(field))
    except ValueError:
        raise TableError(f"{field!r}, which is not a number; where there is none, write {NO_NUMBERS[0]}") from None
    return _checked_finite(value, field)


def _checked_finite(value: float, field: str) -> float:
    if not math.isfinite(value):
        shown = field if len(field) <= LONGEST_FIELD else f"{field[:LONGEST_FIELD]}…"
        raise TableError(f"{shown!r}, which is not finite; where there is no number, write {NO_NUMBERS[0]}")
    if value and not SMALLEST <= abs(value) <= LARGEST:
        raise TableError(f"{field!r}, which no result is: its size must be 0, or from {SMALLEST:g} to {LARGEST:g}")
    return value


def without_commas(field: str) -> str:
    """Return a number without the commas between its thousands; any other field as it is.

    Raises:
        TableError: the number has one comma and no point, and could be two numbers.

    """
    if not _THOUSANDS.fullmatch(field):
        return field
    if field.count(",") == 1 and "." not in field:
        readings = f"{field.replace(',', '')} or {field.replace(',', '.')}"
        raise TableError(f"{field!r}, which may be {readings}: write it without the comma")
    return field.replace(",", "")
