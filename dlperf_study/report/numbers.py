"""How a number is written: one place, so that two tables never print it in two ways.

The digits follow the interval: a value is written down to the second digit of its interval's width,
since every further digit is noise.
"""

import math
from typing import Any

import pandas as pd

MISSING = "–"
#: Between groups of three digits; LaTeX gets its own.
THIN_SPACE = "\u202f"
MINUS = "\u2212"
#: Significant digits of a value that has no interval.
PLAIN_DIGITS = 3
#: Significant digits of an interval's width.
WIDTH_DIGITS = 2
#: Beyond these the clock, the machine's temperature and the next run differ, however narrow the interval is.
MOST_DIGITS = 5


def is_missing(value: Any) -> bool:
    """Say whether a cell of the dataset holds no value: an empty text and an infinite number are none either."""
    return bool(pd.isna(value)) or value == "" or value in (math.inf, -math.inf)


def plain(value: float) -> str:
    """Write a number without an interval, with three significant digits."""
    return _rounded(value, _decimals(value, PLAIN_DIGITS))


def whole(count: int) -> str:
    """Write a count with all its digits."""
    return _rounded(count, 0)


def with_interval(value: float, low: float, high: float) -> tuple[str, str]:
    """Return a value and its interval, both with the digits that the interval's width allows."""
    if high == low:
        return plain(value), f"[{plain(low)}, {plain(high)}]"
    # Of a difference near 0 the interval's ends tell how large the numbers are, not the value.
    largest = max(map(abs, (value, low, high)))
    decimals = min(_decimals(high - low, WIDTH_DIGITS), _decimals(largest, MOST_DIGITS))
    return _rounded(value, decimals), f"[{_rounded(low, decimals)}, {_rounded(high, decimals)}]"


def ratio(first_to_second: float) -> str:
    """Write a ratio with ten on its left, as ElasticDL's report does: ``10 : 3``."""
    return f"10 : {10 / first_to_second:.2g}" if first_to_second > 0 else MISSING


def percent(share: float) -> str:
    """Write a share as whole per cent, as in "coverage 75 %"."""
    return f"{100 * share:.0f}{THIN_SPACE}%"


def _decimals(value: float, digits: int) -> int:
    """Return the decimals that show ``digits`` significant digits of ``value``."""
    return 0 if value == 0 else digits - 1 - math.floor(math.log10(abs(value)))


def _rounded(value: float, decimals: int) -> str:
    # Adding 0 turns a negative zero into zero.
    return f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}".replace(",", THIN_SPACE).replace("-", MINUS)
