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
#: Decimals of a run's rate: its siblings and what was published differ in them.
RATE_DECIMALS = 2
#: Significant digits of an interval's width.
WIDTH_DIGITS = 2
#: Beyond these the clock, the machine's temperature and the next run differ, however narrow the interval is.
MOST_DIGITS = 5
#: Ends of an interval that lie closer to a decision than this many decimals show are on it.
MOST_DECIMALS = 9


def is_missing(value: Any) -> bool:
    """Say whether a cell of the dataset holds no value: an empty text and an infinite number are none either."""
    return bool(pd.isna(value)) or value == "" or value in (math.inf, -math.inf)


def plain(value: float) -> str:
    """Write a number without an interval, with three significant digits."""
    return _rounded(value, _decimals(value, PLAIN_DIGITS))


def rate(value: float) -> str:
    """Write the rate of one run: with two decimals, as published tables of runs have them, or three digits if more."""
    return _rounded(value, max(RATE_DECIMALS, _decimals(value, PLAIN_DIGITS)))


def whole(count: int) -> str:
    """Write a count with all its digits."""
    return _rounded(count, 0)


def with_interval(value: float, low: float, high: float, decision: float | None = None) -> tuple[str, str]:
    """Return a value and its interval, both with the digits that the interval's width allows.

    They get more digits where rounding would put an end of the interval on or beyond ``decision``, the value that a
    verdict is about: what is printed must not contradict it.
    """
    if high == low:
        return plain(value), f"[{plain(low)}, {plain(high)}]"
    # Of a difference near 0 the interval's ends tell how large the numbers are, not the value.
    largest = max(map(abs, (value, low, high)))
    decimals = min(_decimals(high - low, WIDTH_DIGITS), _decimals(largest, MOST_DIGITS))
    if decision is not None:
        decimals = max(decimals, *(_decimals_beside(end, decision, decimals) for end in (low, high)))
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


def _decimals_beside(end: float, decision: float, decimals: int) -> int:
    """Return the decimals, ``decimals`` or more, with which ``end`` is still on its side of ``decision``."""
    enough = range(decimals, max(decimals, MOST_DECIMALS))
    return next(
        (
            digits
            for digits in enough
            if (round(end, digits) > decision) == (end > decision)
            and (round(end, digits) < decision) == (end < decision)
        ),
        decimals,
    )


def _rounded(value: float, decimals: int) -> str:
    # Adding 0 turns a negative zero into zero.
    return f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}".replace(",", THIN_SPACE).replace("-", MINUS)
