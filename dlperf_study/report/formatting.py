"""How a value is printed: in one module, so that two tables never print it in two ways.

The digits follow the interval: a value is printed down to the second digit of its interval's width,
since every further digit is noise.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from statistics import median
from typing import Any

import pandas as pd

from dlperf_study.analysis.statistics import Bounded
from dlperf_study.columns import COLUMNS
from dlperf_study.study.configuration import PARAMETERS

MISSING = "–"
#: Between groups of three digits; LaTeX gets its own.
THIN_SPACE = "\u202f"
MINUS = "\u2212"
#: Significant digits of a value that has no interval.
PLAIN_DIGITS = 3
#: Decimals of a run's rate: repetitions, and published tables, differ in them.
RATE_DECIMALS = 2
#: Significant digits of an interval's width.
WIDTH_DIGITS = 2
#: Beyond these the clock, the machine's temperature and the next run differ, however narrow the interval is.
MOST_DIGITS = 5
#: The end of an interval that is closer to a decision than this many decimals show is on it.
MOST_DECIMALS = 9
#: Display names of the values in a study file; any other is shown with spaces for underscores.
_NAMES = {
    "paddle_collective": "PaddlePaddle collective",
    "paddle_ps": "PaddlePaddle parameter server",
    "horovod_torch": "Horovod (PyTorch)",
    "torch_ddp": "PyTorch DDP",
    "tensorflow_mirrored": "TensorFlow mirrored",
    "tensorflow_ps": "TensorFlow parameter server",
    "horovod_tensorflow": "Horovod (TensorFlow)",
    "resnet50": "ResNet-50",
    "vgg16": "VGG16",
    "mobilenet_v2": "MobileNetV2",
    "resnet50_convolution_biases": "ResNet-50 with convolution biases",
    "vgg16_cifar": "VGG16 for CIFAR-10",
    "arcface_resnet50": "ArcFace on ResNet-50",
    "all_reduce": "all-reduce",
    "data_parallel": "data parallel",
    "async": "asynchronous",
    "sync": "synchronous",
    "synthetic_device": "synthetic, on the device",
    "synthetic_host": "synthetic, from the host",
    "python_queue": "Python queue",
    "python_dataset": "Python data set",
    "zmq": "ZeroMQ",
    "dali": "DALI",
    "sgd": "SGD",
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
    """Return the name of a value that a reader knows; numbers stay as they are."""
    return _NAMES.get(str(value), str(value).replace("_", " "))


def level_name(parameter: str, level: Any) -> str:
    """Return a level of a parameter as pages print it: ``2`` of 2.0, and the name of a default that is no number."""
    if is_named_default(parameter, level):
        return PARAMETERS[parameter].default_name
    return f"{level:g}" if isinstance(level, float) else display_name(level)


def is_named_default(parameter: str, level: Any) -> bool:
    """Return whether a level is a default that is no number, as -1."""
    entry = PARAMETERS.get(parameter)
    return entry is not None and bool(entry.default_name) and level == entry.default


def html_text(text: str) -> str:
    """Return a text as HTML; what is between backticks, as messages name commands, is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def listed(items: Iterable[str]) -> str:
    """Join items as a sentence does: ``1, 2 and 4``."""
    parts = list(items)
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def listed_columns(names: Iterable[str]) -> str:
    """Return what sentences call columns, as a sentence lists them: ``model and batch per device``."""
    return listed(COLUMNS[name].words for name in names)


def is_missing(value: Any) -> bool:
    """Return whether a cell of the dataset has no value: an empty string and an infinite number are none either."""
    return bool(pd.isna(value)) or value == "" or value in (math.inf, -math.inf)


def distinct_levels(values: pd.Series) -> list[Any]:
    """Return the distinct values of a column that are not missing, in order of appearance."""
    return [value for value in values.unique() if not is_missing(value)]


def plain(value: float) -> str:
    """Format a number without an interval, with three significant digits."""
    return _rounded(value, _decimals(value, PLAIN_DIGITS))


def rate(value: float) -> str:
    """Format the rate of one run: with two decimals, as published tables of runs have them, or three digits if more."""
    return _rounded(value, max(RATE_DECIMALS, _decimals(value, PLAIN_DIGITS)))


def integer(count: int) -> str:
    """Format a count with all its digits."""
    return _rounded(count, 0)


def ratio(first_to_second: float, low: Any = None, high: Any = None) -> tuple[str, str]:
    """Format a positive ratio with ten on its left, as ElasticDL's report does, and its interval if it has one.

    ``10 : 3`` and ``10 : [2, 4]``; without an interval two significant digits, and an empty string.
    """
    if is_missing(low) or is_missing(high):
        return f"10 : {float(f'{10 / first_to_second:.2g}'):g}", ""
    second, interval = with_interval(10 / first_to_second, 10 / high, 10 / low)
    return f"10 : {second}", f"10 : {interval}"


def percent_at_most(share: float) -> str:
    """Format a bound of a share in per cent, with two significant digits, rounded up so that it stays a bound."""
    unit = 10.0 ** -_decimals(100 * share, WIDTH_DIGITS)
    rounded_up = math.ceil(100 * share / unit - 1e-9) * unit
    return f"{_rounded(rounded_up, max(0, _decimals(rounded_up, WIDTH_DIGITS)))}{THIN_SPACE}%"


def with_interval(
    value: float, low: float | None = None, high: float | None = None, decision: float | None = None, size: float = 1.0
) -> tuple[str, str]:
    """Return a value and its interval, both with the digits that the interval's width allows; "" for no interval.

    They get more digits where rounding would put an end of the interval on or beyond ``decision``, the value that a
    verdict is about: what is printed must not contradict it. ``size``: of the unit that all are printed in.
    """
    value /= size
    if low is None or high is None or is_missing(low) or is_missing(high):
        return plain(value), ""
    low, high = low / size, high / size
    if high == low:
        return plain(value), f"[{plain(low)}, {plain(high)}]"
    # Of a difference near 0 the interval's ends tell how large the numbers are, not the value.
    largest = max(abs(value), abs(low), abs(high))
    decimals = min(_decimals(high - low, WIDTH_DIGITS), _decimals(largest, MOST_DIGITS))
    if decision is not None:
        decimals = max(_separating_decimals(end, decision, decimals) for end in (low, high))
    return _rounded(value, decimals), f"[{_rounded(low, decimals)}, {_rounded(high, decimals)}]"


def value_text(
    value: Bounded, unit: str = "", decision: float | None = None, size: float = 1.0, no_interval: str = ""
) -> str:
    """Return a value with its unit and its interval in a sentence: ``20.6 ms [17.7, 23.4]``.

    ``unit`` begins with a space where there is one; ``no_interval`` is in the place of an interval that is missing.
    ``decision`` and ``size``: those of ``with_interval``.
    """
    printed, interval = with_interval(*value, decision, size)
    return f"{printed}{unit}{f' {interval}' if interval else no_interval}"


def bounded_value(row: Any, column: str) -> Bounded:
    """Return the value of a row in a column of the dataset, with its interval if the column has one."""
    return getattr(row, column), getattr(row, f"{column}_low", None), getattr(row, f"{column}_high", None)


def _decimals(value: float, digits: int) -> int:
    """Return the decimals that show ``digits`` significant digits of ``value``."""
    return 0 if value == 0 else digits - 1 - math.floor(math.log10(abs(value)))


def _separating_decimals(end: float, decision: float, fewest: int) -> int:
    """Return the decimals, ``fewest`` or more, with which ``end`` is still on its side of ``decision``."""
    for decimals in range(fewest, MOST_DECIMALS):
        shown = round(end, decimals)
        if (shown > decision, shown < decision) == (end > decision, end < decision):
            return decimals
    return fewest


def _rounded(value: float, decimals: int) -> str:
    # Adding 0 turns a negative zero into zero.
    digits = f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"
    return digits.replace(",", THIN_SPACE).replace("-", MINUS)


#: Units that take a prefix, and how each prefixed unit is printed.
_PREFIXED = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")),
    "bytes/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "bytes/s")),
    "FLOP/s": ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1.0, "FLOP/s")),
    "FLOP": ((1e9, "GFLOP"), (1e6, "MFLOP"), (1.0, "FLOP")),
}


@dataclass(frozen=True)
class Unit:
    """The label of a column with the unit it is shown in; ``size`` is one of that unit in the dataset's unit."""

    label: str
    symbol: str
    size: float

    @property
    def axis(self) -> str:
        """The label of an axis."""
        return f"{self.label} ({self.symbol})" if self.symbol else self.label


def unit_of(column: str, values: Iterable[Any]) -> Unit:
    """Return the unit in which most of ``values`` are at least one; zeros fit any unit."""
    label, unit = COLUMNS[column].label, COLUMNS[column].unit
    sizes = [abs(float(value)) for value in values if not is_missing(value) and value]
    typical = median(sizes) if sizes else 1.0
    choices = _PREFIXED.get(unit, ((1.0, unit),))
    for size, symbol in choices:
        if typical >= size:
            return Unit(label, symbol, size)
    size, symbol = choices[-1]
    return Unit(label, symbol, size)
