"""Printed text to a number, and how much of it is rounding."""

import math
import re

from dlperf_study.errors import PublishedError

#: What is printed where there is no number.
NO_NUMBER = "-"
#: How many of a printed unit are one of the unit of the metric; every other unit is the metric's own.
PARTS = {"%": 100, "ms": 1000, "TFLOP/s": 1e-12}
_NUMBER = re.compile(r"\d+(?:\.(\d+))?")
_RATIO = re.compile(r"(\d+) ?: ?(0*[1-9]\d*)")


def value_of(printed: str, unit: str = "") -> float:
    """Return the number that ``printed`` stands for, in the unit of its metric; nan for a dash.

    ``unit`` is the printed one. A ratio ``a : b`` is a / b.

    Raises:
        PublishedError: it is neither a number nor a ratio nor a dash.

    """
    if printed == NO_NUMBER:
        return math.nan
    if terms := terms_of(printed):
        return terms[0] / terms[1]
    return float(_number(printed)[0]) / PARTS.get(unit, 1)


def resolution_of(printed: str, unit: str = "") -> float:
    """Return what one unit of the last printed digit is worth in the value; nan for a dash.

    Rounding hides up to half of it, cutting off up to the whole. Of a ratio a : b it is that of b, to first
    order: a / b².
    """
    if printed == NO_NUMBER:
        return math.nan
    if terms := terms_of(printed):
        return terms[0] / terms[1] ** 2
    decimals = len(_number(printed)[1] or "")
    return float(10.0**-decimals / PARTS.get(unit, 1))


def terms_of(printed: str) -> tuple[int, int] | None:
    """Return both terms of a ratio printed as ``10 : 3``, the second above 0; None for any other text."""
    ratio = _RATIO.fullmatch(printed)
    return (int(ratio[1]), int(ratio[2])) if ratio else None


def _number(printed: str) -> re.Match[str]:
    if number := _NUMBER.fullmatch(printed):
        return number
    raise PublishedError(f"{printed!r} is neither a number nor a ratio like 10 : 3 nor {NO_NUMBER!r}")
