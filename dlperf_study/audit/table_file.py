"""A table of results from a CSV file of a user."""

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
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
from dlperf_study.wording import counted, first_of, unknown

# The numbers of a table as people write them: 1,024.5 is one, and some words stand for none.


#: What is written where there is no number, in small letters.
NO_NUMBERS = ("-", "–", "—", "n/a", "na", "nan", "none", "null")
#: A comma before every three digits; with one comma and no point it may be a decimal comma as well.
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")


def is_no_number(text: str) -> bool:
    """Say whether a field says that there is no number."""
    return text.lower() in NO_NUMBERS


def without_commas(text: str) -> str:
    """Return a number without the commas between its thousands; anything else as it is.

    Raises:
        TableError: the number has one comma and no point, and could be two numbers.

    """
    if not _THOUSANDS.fullmatch(text):
        return text
    if text.count(",") == 1 and "." not in text:
        either = f"{text.replace(',', '')} or {text.replace(',', '.')}"
        raise TableError(f"{text!r}, which may be {either}: write it without the comma")
    return text.replace(",", "")


def finite(text: str) -> float:
    """Return a number; raises TableError if it is none, or has no end."""
    try:
        number = float(without_commas(text))
    except ValueError:
        raise TableError(f"{text!r}, which is not a number; where there is none, write {NO_NUMBERS[0]}") from None
    if not math.isfinite(number):
        raise TableError(f"{text!r}, which is not finite; where there is no number, write {NO_NUMBERS[0]}")
    return number


# All mistakes of a table in one message: who corrects it reads them once.


#: So many mistakes are told at most.
MOST = 10

Item = TypeVar("Item")
Value = TypeVar("Value")


class Mistakes:
    """What could not be read so far, each mistake once."""

    def __init__(self) -> None:
        """Begin without any."""
        self._said: dict[str, None] = {}

    def sort_out(self, items: Iterable[Item], read: Callable[[Item], Value]) -> Iterator[Value]:
        """Yield what each item is read as; what raises a TableError is kept as a mistake and left out."""
        for item in items:
            try:
                value = read(item)
            except TableError as error:
                self._said[str(error)] = None
            else:
                yield value

    def refuse(self) -> None:
        """Raise one TableError with every mistake, if there was one."""
        if self._said:
            raise TableError(first_of(list(self._said), MOST, "; "))


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Put before the message of a TableError what it is about."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{what}{error}") from None


#: Where a row stands in its file, whose first line is the head.
_LINE = "line of the file"
_RESOLUTION = "resolution"
#: Columns with numbers that the registry of columns does not know.
_NUMBERS = ("low", "high", _RESOLUTION)
_METRICS = tuple(dict.fromkeys((*METRICS, *METRIC_COLUMNS)))
#: Ratios to another rate, and what is written behind them.
_RATIOS, _TIMES = (SPEEDUP, RELATIVE), "x×"
#: How others head a column of rates.
_RATES = (
    r"(?<![a-z])(?:images?|imgs?|samples?|seq(?:uence)?s?|sentences?)(?: ?/ ?|[ _]per[ _])s(?:ec(?:ond)?)?s?(?![a-z])"
)
#: What the number of devices is called elsewhere.
_DEVICES = r"(?:n|num|number)?[_ ]?(?:of[_ ])?(?:gpu|device|worker|rank|card|trainer)s?(?:[_ ]num)?"
#: What tables are separated by, besides commas.
_OTHER_MARKS = {";": "semicolons", "\t": "tabs"}


def read_results(path: Path) -> Results:
    """Read a table: long, one row a number with its ``metric``, or wide, with a column for each metric.

    Numbers count as printed: the last digit of each says how it was rounded.

    Raises:
        TableError: the file is no table, names no metric, or has fields that are no numbers: all of them are named.

    """
    mistakes = Mistakes()
    with naming(f"{display_path(path)}: "):
        table = _read(path, mistakes)
        if table.empty:
            mistakes.refuse()
            raise TableError("there is no row below the head")
        rows = table if METRIC in table else long_frame(table, path.name)
        typed = list(mistakes.sort_out(rows.to_dict("records"), partial(_typed, mistakes)))
        mistakes.refuse()
        return results_of_frame(pd.DataFrame(typed))


def _read(path: Path, mistakes: Mistakes) -> pd.DataFrame:
    """Return the fields as texts, missing where empty."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True, skipinitialspace=True)
            lines = [(reader.line_num, fields) for fields in reader if fields]
    except (csv.Error, UnicodeDecodeError) as error:
        raise TableError(f"not a CSV table: {error}") from None
    _, head = lines[0] if lines else (0, [])
    _check_head(head)
    return pd.DataFrame(mistakes.sort_out(lines[1:], lambda line: {_LINE: line[0], **_by_name(head, *line)}))


def _check_head(head: list[str]) -> None:
    if len(set(head)) < len(head):
        raise TableError(f"a column stands there twice; the columns are {', '.join(head)}")
    _check_rates(head)
    _check_metrics(head)
    _check_devices(head)


def _check_rates(head: list[str]) -> None:
    rates = [name for name in head if re.search(_RATES, name, re.IGNORECASE)]
    if rates and not {THROUGHPUT, METRIC} & {*head}:
        raise TableError(f"{rates[0]} is no metric of ours: call it throughput where it is the rate of all devices")


def _check_metrics(head: list[str]) -> None:
    if METRIC in head or set(METRIC_COLUMNS) & set(head):
        return
    other = [name for mark, name in _OTHER_MARKS.items() if any(mark in field for field in head)]
    hint = f"; its fields seem to be separated by {other[0]}, and must be by commas" if other else ""
    raise TableError(
        f"there is no column metric and none named for one; the columns are {', '.join(head) or 'none'}, "
        f"the metrics {', '.join(METRIC_COLUMNS)}{hint}"
    )


def _check_devices(head: list[str]) -> None:
    counting = [name for name in head if re.fullmatch(_DEVICES, name, re.IGNORECASE)]
    if counting and not {"world_size", "nodes"} & {*head}:
        raise TableError(f"{counting[0]} is no column of ours: call it world_size where it counts all devices")


def _by_name(head: list[str], line: int, fields: list[str]) -> dict[str, str | None]:
    if len(fields) != len(head):
        raise TableError(f"line {line} has {counted(len(fields), 'field')}, and the head {len(head)}")
    return {name: text.strip() or None for name, text in zip(head, fields, strict=True)}


def _typed(mistakes: Mistakes, fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a row with numbers where numbers belong."""
    given = {str(name): str(text) for name, text in fields.items() if not pd.isna(text)}
    place = f"line {given.pop(_LINE)}"
    named = [(name, place, text) for name, text in given.items() if name != VALUE and not _says_nothing(name, text)]
    return dict(mistakes.sort_out(named, lambda one: (one[0], _condition(*one)))) | _value(given, place)


def _says_nothing(name: str, text: str) -> bool:
    """Say whether a field is left open; a word as none may be one of the levels of a column without numbers."""
    return is_no_number(text) if _is_number(name) else text == NO_NUMBER


def _is_number(name: str) -> bool:
    return name in _NUMBERS or (name in COLUMNS and COLUMNS[name].is_number)


def _check_metric(name: str) -> None:
    if name not in _METRICS:
        raise TableError(unknown("metric is", name, "metrics", _METRICS))


def _condition(name: str, place: str, text: str) -> Any:
    if not _is_number(name):
        return text
    with naming(f"{place}: {name} is "):
        number = finite(text)
        if name in COLUMNS and COLUMNS[name].dtype is not Dtype.FLOAT and not number.is_integer():
            raise TableError(f"{text!r}, which is not a whole number")
        return number


def _value(given: Mapping[str, str], place: str) -> dict[str, Any]:
    """Return the number of a row and what its last digit is worth; nothing where there is no number."""
    with naming(f"{place}: "):
        _check_metric(given.get(METRIC, ""))
    text = given.get(VALUE, given.get("printed", NO_NUMBER))
    if is_no_number(text):
        return {}
    with naming(f"{place}: {given.get('column', VALUE)} is "):
        text = text.rstrip(_TIMES).rstrip() if given[METRIC] in _RATIOS else text
        return {VALUE: finite(text)} if _RESOLUTION in given else _printed(text)


def _printed(text: str) -> dict[str, Any]:
    number, unit = without_commas(text.removesuffix("%").strip()), "%" * text.endswith("%")
    try:
        return {VALUE: value_of(number, unit), _RESOLUTION: resolution_of(number, unit), "printed": text}
    except PublishedError:
        return {VALUE: finite(text), "printed": text}
