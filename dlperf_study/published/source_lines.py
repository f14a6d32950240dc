"""The lines of a published source's CSV file: one number each, with everything that is declared for it."""

import csv
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dlperf_study.columns import COLUMNS, PRODUCTS
from dlperf_study.errors import PublishedError
from dlperf_study.published.source import ESTIMATORS, FACTS, IMAGES, MADE_UP, METRICS, ROLES, SCOPES, PublishedSource
from dlperf_study.study.strict_yaml import display_path
from dlperf_study.wording import unknown_name

#: Columns that every line needs; any fact may follow.
NEEDED = ("table", "row", "column", "metric", "printed")
OPTIONAL = ("before", "after", "printed_unit", "repetition", "baseline", "runs_of")
_CHOICES = {"metric": tuple(METRICS), "estimator": ESTIMATORS, "scope": SCOPES, "role": ROLES}
#: What is printed where there is no number.
NO_NUMBER = "-"
#: How many of a printed unit are one unit of the metric; any other printed unit is that of the metric.
UNIT_FACTORS = {"%": 100, "ms": 1000, "TFLOP/s": 1e-12}
_NUMBER = re.compile(r"\d+(?:\.(\d+))?")
_RATIO = re.compile(r"(\d+) ?: ?(0*[1-9]\d*)")


def read_lines(source: PublishedSource, path: Path) -> Iterator[dict[str, Any]]:
    """Yield each line of a CSV file as one number: the printed text, its value, and all facts.

    The facts of a line override those of its table, and these override those of the source.

    Raises:
        PublishedError: an unknown column, table or value; an empty field that is needed.

    """
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        header = tuple(reader.fieldnames or ())
        columns = (*NEEDED, *OPTIONAL, *FACTS)
        wrong = [name for name in header if name not in columns] or [name for name in NEEDED if name not in header]
        if wrong:
            names = f"{', '.join(wrong)} is unknown or missing; the columns are {', '.join(columns)}"
            raise PublishedError(f"{display_path(path)}: {names}")
        for fields in reader:
            yield _line(source, fields, f"{display_path(path)}, line {reader.line_num}")


def _line(source: PublishedSource, fields: Mapping[str, str], location: str) -> dict[str, Any]:
    empty = [name for name in NEEDED if not fields[name]]
    if empty:
        raise PublishedError(f"{location}: {', '.join(empty)} is empty")
    table_name = fields["table"]
    if table_name not in source.tables:
        raise PublishedError(unknown_name(f"{location}: table is", table_name, "tables", source.tables))
    line = {**source.facts, **source.tables[table_name].facts}
    for name, field in fields.items():
        if field and name != "printed_unit":
            line[name] = _typed(name, field, location)
    for name, choices in _CHOICES.items():
        if line.get(name) not in choices:
            raise PublishedError(unknown_name(f"{location}: {name} is", str(line.get(name, "")), f"{name}s", choices))
    if line.get("images", MADE_UP) not in IMAGES:
        raise PublishedError(unknown_name(f"{location}: images is", str(line["images"]), "levels", IMAGES))
    printed, unit = fields["printed"], fields.get("printed_unit", "")
    try:
        line |= {"value": value_of(printed, unit), "resolution": resolution_of(printed, unit)}
    except PublishedError as error:
        raise PublishedError(f"{location}: {error}") from None
    return with_derived_sizes(line | {"unit": METRICS[line["metric"]].unit})


def _typed(name: str, field: str, location: str) -> Any:
    try:
        return float(field) if COLUMNS[name].is_number else field
    except ValueError:
        raise PublishedError(f"{location}: {name} is {field!r}, which is not a number") from None


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
    return float(_match_number(printed)[0]) / UNIT_FACTORS.get(unit, 1)


def resolution_of(printed: str, unit: str = "") -> float:
    """Return the value of one unit of the last printed digit; nan for a dash.

    Rounding changes a number by up to half of it, truncation by up to the whole. For a ratio a : b it is the effect
    of one unit of b, to first order: a / b².
    """
    if printed == NO_NUMBER:
        return math.nan
    if terms := terms_of(printed):
        return terms[0] / terms[1] ** 2
    decimals = len(_match_number(printed)[1] or "")
    return float(10.0**-decimals / UNIT_FACTORS.get(unit, 1))


def terms_of(printed: str) -> tuple[int, int] | None:
    """Return both terms of a ratio printed as ``10 : 3``, the second above 0; None for anything else."""
    ratio = _RATIO.fullmatch(printed)
    return (int(ratio[1]), int(ratio[2])) if ratio else None


def _match_number(printed: str) -> re.Match[str]:
    if match := _NUMBER.fullmatch(printed):
        return match
    raise PublishedError(f"{printed!r} is neither a number nor a ratio like 10 : 3 nor {NO_NUMBER!r}")


def with_derived_sizes(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line with the number of devices and the global batch, if its other facts determine them.

    A derived size is named in ``inferred``: it always agrees with its own factors.
    """
    sizes = dict(line)
    for product, factors in PRODUCTS.items():
        if product not in sizes and all(name in sizes for name in factors):
            sizes[product] = sizes[factors[0]] * sizes[factors[1]]
            sizes["inferred"] = ", ".join(filter(None, [sizes.get("inferred"), product]))
    return sizes
