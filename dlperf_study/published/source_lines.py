"""The lines of a source's CSV, checked and completed with the facts that hold for them."""

import csv
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dlperf_study.columns import COLUMNS, PRODUCTS
from dlperf_study.errors import PublishedError
from dlperf_study.published.source import ESTIMATORS, FACTS, METRICS, ROLES, SCOPES, PublishedSource
from dlperf_study.study.strict_yaml import display_path
from dlperf_study.wording import unknown

# Printed text to a number, and how much of it is rounding.


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
    return float(_number_in(printed)[0]) / PARTS.get(unit, 1)


def resolution_of(printed: str, unit: str = "") -> float:
    """Return what one unit of the last printed digit is worth in the value; nan for a dash.

    Rounding hides up to half of it, cutting off up to the whole. Of a ratio a : b it is that of b, to first
    order: a / b².
    """
    if printed == NO_NUMBER:
        return math.nan
    if terms := terms_of(printed):
        return terms[0] / terms[1] ** 2
    decimals = len(_number_in(printed)[1] or "")
    return float(10.0**-decimals / PARTS.get(unit, 1))


def terms_of(printed: str) -> tuple[int, int] | None:
    """Return both terms of a ratio printed as ``10 : 3``, the second above 0; None for any other text."""
    ratio = _RATIO.fullmatch(printed)
    return (int(ratio[1]), int(ratio[2])) if ratio else None


def _number_in(printed: str) -> re.Match[str]:
    if number := _NUMBER.fullmatch(printed):
        return number
    raise PublishedError(f"{printed!r} is neither a number nor a ratio like 10 : 3 nor {NO_NUMBER!r}")


#: What every line has; any fact may follow.
NEEDED = ("table", "row", "column", "metric", "printed")
OPTIONAL = ("before", "after", "printed_unit", "repetition", "baseline", "runs_of")
_CHOICES = {"metric": tuple(METRICS), "estimator": ESTIMATORS, "scope": SCOPES, "role": ROLES}


def read_lines(source: PublishedSource, path: Path) -> Iterator[dict[str, Any]]:
    """Yield each line of a CSV as one number: what is printed, its value, and all that holds for it.

    The facts of the source hold unless those of its table say otherwise, and those unless the line itself does.

    Raises:
        PublishedError: a column, a table or a word that is not known; a needed field that is empty.

    """
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        _check_head(tuple(reader.fieldnames or ()), display_path(path))
        for fields in reader:
            yield _line(source, fields, f"{display_path(path)}, line {reader.line_num}")


def _check_head(head: tuple[str, ...], place: str) -> None:
    known = (*NEEDED, *OPTIONAL, *FACTS)
    wrong = [name for name in head if name not in known] or [name for name in NEEDED if name not in head]
    if wrong:
        raise PublishedError(f"{place}: {', '.join(wrong)} is unknown or missing; the columns are {', '.join(known)}")


def _line(source: PublishedSource, fields: Mapping[str, str], place: str) -> dict[str, Any]:
    empty = [name for name in NEEDED if not fields[name]]
    if empty:
        raise PublishedError(f"{place}: {', '.join(empty)} is empty")
    if fields["table"] not in source.tables:
        raise PublishedError(unknown(f"{place}: table is", fields["table"], "tables", source.tables))
    own = {name: _typed(name, text, place) for name, text in fields.items() if text and name != "printed_unit"}
    line = {**source.facts, **source.tables[fields["table"]].facts, **own}
    for name, choices in _CHOICES.items():
        if line.get(name) not in choices:
            raise PublishedError(unknown(f"{place}: {name} is", str(line.get(name, "")), f"{name}s", choices))
    return (
        line
        | _number(fields["printed"], fields.get("printed_unit", ""), line["metric"], place)
        | with_derived_sizes(line)
    )


def _typed(name: str, text: str, place: str) -> Any:
    try:
        return float(text) if COLUMNS[name].is_number else text
    except ValueError:
        raise PublishedError(f"{place}: {name} is {text!r}, which is not a number") from None


def _number(printed: str, unit: str, metric: str, place: str) -> dict[str, Any]:
    try:
        value, resolution = value_of(printed, unit), resolution_of(printed, unit)
    except PublishedError as error:
        raise PublishedError(f"{place}: {error}") from None
    return {"value": value, "resolution": resolution, "unit": METRICS[metric].unit}


def with_derived_sizes(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line with the number of devices and the global batch, where they follow from what it says.

    What was reckoned so is ``inferred``: held against its own factors it would always be right.
    """
    sizes = dict(line)
    for product, factors in PRODUCTS.items():
        if product not in sizes and all(name in sizes for name in factors):
            sizes[product] = sizes[factors[0]] * sizes[factors[1]]
            sizes["inferred"] = ", ".join(filter(None, [sizes.get("inferred"), product]))
    return sizes
