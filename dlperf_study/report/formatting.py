"""Printed values: digits down to the second digit of the interval's width."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import filterfalse
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.core.part_search import cached_by_parts
from dlperf_study.dataset.cells import bounded_value, is_missing
from dlperf_study.metrics.columns import COLUMNS, column_named
from dlperf_study.metrics.statistics import Bounded
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.job import RunStatus
from dlperf_study.training.parts import display_names

MISSING = "–"
DOUBTFUL = "(!)"
MOST_NAMED = 3
#: Between groups of three digits; LaTeX gets its own.
THIN_SPACE = "\u202f"
MINUS = "\u2212"
PLAIN_DIGITS = 3
#: Decimals of a run's throughput: repetitions, and published tables, differ in them.
THROUGHPUT_DECIMALS = 2
WIDTH_DIGITS = 2
#: Beyond these the clock, the machine's temperature and the next run differ, however narrow the interval is.
MOST_DIGITS = 5
#: Display names of values that are no parts: libraries, values of parameters, and what published sources and logs use.
_NAMES = {
    "data_parallel": "data parallel",
    "sgd": "SGD",
    "adamw": "AdamW",
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved_1f1b": "Interleaved 1F1B",
    "cpu": "CPU",
    "gpu": "GPU",
    "paddle": "PaddlePaddle",
    "torch": "PyTorch",
    "horovod": "Horovod",
    "tensorflow": "TensorFlow",
    "imagenet": "ImageNet",
    "cifar10": "CIFAR-10",
    "nchw": "NCHW",
    "nhwc": "NHWC",
    "tf32": "TF32",
    "amp_fp16_o2": "amp fp16 O2",
    "amp_bf16_o2": "amp bf16 O2",
    "to_static": "to_static",
    "cinn": "CINN",
    "torch_compile": "torch.compile",
    "xla": "XLA",
    "True": "yes",
    "False": "no",
}


def display_name(value: object) -> str:
    """Return the printed name of a value."""
    name = str(value)
    return _display_names().get(name, name)


@cached_by_parts
def _display_names() -> dict[str, str]:
    values = [value for entry in PARAMETERS.values() for value in entry.allowed_values]
    return {name: in_words(name) for name in (*values, *RunStatus)} | _NAMES | display_names()


def in_words(name: str) -> str:
    """Return a name with spaces instead of underscores."""
    return name.replace("_", " ")


def model_name(row: Any) -> str:
    """Return the printed name of a row's model or user program."""
    if is_missing(row.own_program):
        return display_name(row.model)
    return str(row.own_program)


def value_name(parameter: str, value: Any) -> str:
    """Return a value as pages print it: ``2`` of 2.0."""
    if is_named_default(parameter, value):
        return PARAMETERS[parameter].default_name
    if isinstance(value, float):
        return f"{value:g}"
    # Of a user's program, what the user calls it.
    is_of_user = parameter not in COLUMNS or parameter == "own_program"
    if is_of_user:
        return str(value)
    return display_name(value)


def value_with_unit(parameter: str, value: Any) -> str:
    """Return a value with the unit of a measure: ``640 MiB``."""
    unit = PARAMETERS[parameter].unit if parameter in PARAMETERS else ""
    is_measure = unit in MEASURES and not is_named_default(parameter, value)
    return value_name(parameter, value) + text_if(is_measure, f" {unit}")


def is_named_default(parameter: str, value: Any) -> bool:
    """Return whether a value is a named default, as -1."""
    entry = PARAMETERS.get(parameter)
    return entry is not None and entry.is_named_default(value)


#: What LaTeX would read as a command, and characters that it has no letter for.
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\u202f": r"\,",
    "\u00a0": "~",
    "–": "--",
    "—": "---",
    "−": "$-$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "√": r"$\surd$",
    "→": r"$\rightarrow$",
    "µ": r"\textmu{}",
    "°": r"\textdegree{}",
    "“": "``",
    "”": "''",
    "’": "'",
    "…": r"\dots{}",
}
#: No line breaks between a number, or its interval, and a percent sign.
_BEFORE_PERCENT = r"(?<=[\d\]]) (?=%)"
_LATEX_SPECIAL = re.compile("|".join([*map(re.escape, _LATEX), _BEFORE_PERCENT]))


def latex_escaped(text: str) -> str:
    """Return ``text`` with LaTeX special characters escaped."""
    return _LATEX_SPECIAL.sub(lambda match: _LATEX.get(match[0], r"\,"), text)


def html_text(text: str) -> str:
    """Return a text as HTML; text between backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def listed(items: Iterable[str]) -> str:
    """Join items as a sentence does: ``1, 2 and 4``."""
    parts = list(items)
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def listed_columns(names: Iterable[str]) -> str:
    """Return listed column names: ``model and batch per device``."""
    return listed(column_named(name).words for name in names)


def distinct_values(values: pd.Series) -> list[Any]:
    """Return the distinct known values of a column, in order of appearance."""
    return list(filterfalse(is_missing, values.unique()))


def plain(value: float) -> str:
    """Format a number without an interval, with three significant digits."""
    return _rounded(value, _decimals(value, PLAIN_DIGITS))


def throughput(value: float) -> str:
    """Format the throughput of one run: two decimals, or three digits."""
    return _rounded(value, max(THROUGHPUT_DECIMALS, _decimals(value, PLAIN_DIGITS)))


def integer(count: int) -> str:
    """Format a count with all its digits."""
    return _rounded(count, 0)


def text_if(condition: object, text: str) -> str:
    """Return a text if a condition holds, else nothing."""
    if condition:
        return text
    return ""


def marked(text: str, is_doubtful: bool) -> str:
    """Return a printed number, marked if it is doubtful."""
    return text_if(is_doubtful, f"{DOUBTFUL} ") + text


def percent_at_most(share: float) -> str:
    """Format an upper bound in per cent, rounded up."""
    unit = 10.0 ** -_decimals(100 * share, WIDTH_DIGITS)
    rounded_up = math.ceil(100 * share / unit - 1e-9) * unit
    return f"{_rounded(rounded_up, max(0, _decimals(rounded_up, WIDTH_DIGITS)))}{THIN_SPACE}%"


def format_bounded(
    value: float, low: float | None = None, high: float | None = None, decision: float | None = None, size: float = 1.0
) -> tuple[str, str]:
    """Return a value and its interval, rounded by the interval's width.

    Of what is positive, or negative, with all of its interval, each bound has two digits at least, and the value three:
    who divides one printed value by another gets the printed ratio.

    Each end has the digits that it needs itself: one that is not 0 is not printed as 0, and one that rounding would put
    on ``decision``, the value that a significance test is about, has one decimal more. An end that even this puts there
    is as good as on it. ``size``: of the unit that all are printed in.
    """
    value /= size
    if decision is not None:
        decision /= size
    if low is None or high is None or is_missing(low) or is_missing(high):
        return plain(value), ""
    low, high = low / size, high / size
    if high == low:
        return plain(value), f"[{plain(low)}, {plain(high)}]"
    # Of a difference near 0 the interval's ends tell how large the numbers are, not the value.
    largest = max(abs(value), abs(low), abs(high))
    decimals = min(_decimals(high - low, WIDTH_DIGITS), _decimals(largest, MOST_DIGITS))
    has_sign = low > 0 or high < 0
    ends = []
    for end in (low, high):
        # Of what has one sign small numbers matter as much as large ones: 86 is not 90 because it may be 380.
        of_end = max(decimals, _decimals(end, WIDTH_DIGITS)) if has_sign else decimals
        if not round(end, of_end):
            of_end = _decimals(end, 1)
        elif end != decision and round(end, of_end) == decision and round(end, of_end + 1) != decision:
            of_end += 1
        ends.append(_rounded(end, of_end))
    of_value = max(decimals, _decimals(value, PLAIN_DIGITS)) if has_sign else decimals
    return _rounded(value, of_value), f"[{', '.join(ends)}]"


def value_text(
    value: Bounded, unit: str = "", decision: float | None = None, size: float = 1.0, no_interval: str = ""
) -> str:
    """Return a value with unit and interval: ``20.6 ms [17.7, 23.4]``."""
    printed, interval = format_bounded(*value, decision, size)
    return printed + unit + (text_if(interval, f" {interval}") or no_interval)


def format_column(row: Any, name: str, size: float = 1.0) -> tuple[str, str]:
    """Return a row's value and interval as every page prints them."""
    column = column_named(name)
    if column.compared_with and getattr(row, f"is_{column.compared_with}", False):
        return column.of_itself, ""
    return format_bounded(*bounded_value(row, name), column.neutral, size)


def _decimals(value: float, digits: int) -> int:
    """Return the decimals that show ``digits`` significant digits of ``value``."""
    if value == 0:
        return 0
    return digits - 1 - math.floor(math.log10(abs(value)))


def _rounded(value: float, decimals: int) -> str:
    # Adding 0 turns a negative zero into zero.
    digits = f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"
    return digits.replace(",", THIN_SPACE).replace("-", MINUS)


#: Units of values that are no counts: a value has them wherever it is printed.
MEASURES = ("MiB", "ms", "s", "cores")
_PREFIXED = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")),
    "bytes/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "bytes/s")),
    "FLOP/s": ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1.0, "FLOP/s")),
    "FLOP": ((1e9, "GFLOP"), (1e6, "MFLOP"), (1.0, "FLOP")),
}


@dataclass(frozen=True)
class Unit:
    """A column's label and printed unit; ``size``: in the dataset's unit."""

    label: str
    symbol: str
    size: float

    @property
    def axis(self) -> str:
        """The label of an axis."""
        return self.label + text_if(self.symbol, f" ({self.symbol})")


def unit_in(rows: pd.DataFrame, name: str) -> Unit:
    """Return the unit in which all values of a column are printed.

    An interval counts as what is largest in it, so that no interval of a small value has the digits of a smaller
    unit.
    """
    unit_giving = column_named(name).part_of or name
    columns = [column for column in (unit_giving, f"{unit_giving}_low", f"{unit_giving}_high") if column in rows]
    sizes = [np.abs(rows[column].to_numpy(np.float64, na_value=np.nan)) for column in columns]
    return fitting_unit(name, np.fmax.reduce(sizes))


def fitting_unit(column: str, values: Iterable[Any]) -> Unit:
    """Return the unit in which most ``values`` are at least one."""
    label, unit = column_named(column).label, column_named(column).unit
    sizes = [abs(float(value)) for value in values if not is_missing(value) and value]
    typical = median(sizes or [1.0])
    choices = _PREFIXED.get(unit, ((1.0, unit),))
    size, symbol = next((choice for choice in choices if typical >= choice[0]), choices[-1])
    return Unit(label, symbol, size)


def with_unit(value: float, column: str) -> str:
    """Return a value of a column with its unit: ``1.37 GB``."""
    unit = fitting_unit(column, [value])
    return f"{plain(value / unit.size)} {unit.symbol}"
