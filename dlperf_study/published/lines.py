"""The lines of a source's CSV, checked and completed with the facts that hold for them."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dlperf_study.columns import COLUMNS, PRODUCTS
from dlperf_study.errors import PublishedError
from dlperf_study.published.metrics import ESTIMATORS, METRICS, ROLES, SCOPES
from dlperf_study.published.printed import resolution_of, value_of
from dlperf_study.published.source import FACTS, Source
from dlperf_study.spelling import unknown
from dlperf_study.study.strict_yaml import shown

#: What every line has; any fact may follow.
NEEDED = ("table", "row", "column", "metric", "printed")
OPTIONAL = ("before", "after", "printed_unit", "repetition", "baseline", "runs_of")
_CHOICES = {"metric": tuple(METRICS), "estimator": ESTIMATORS, "scope": SCOPES, "role": ROLES}


def read_lines(source: Source, path: Path) -> Iterator[dict[str, Any]]:
    """Yield each line of a CSV as one number: what is printed, its value, and all that holds for it.

    The facts of the source hold unless those of its table say otherwise, and those unless the line itself does.

    Raises:
        PublishedError: a column, a table or a word that is not known; a needed field that is empty.

    """
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        _check_head(tuple(reader.fieldnames or ()), shown(path))
        for fields in reader:
            yield _line(source, fields, f"{shown(path)}, line {reader.line_num}")


def _check_head(head: tuple[str, ...], place: str) -> None:
    known = (*NEEDED, *OPTIONAL, *FACTS)
    wrong = [name for name in head if name not in known] or [name for name in NEEDED if name not in head]
    if wrong:
        raise PublishedError(f"{place}: {', '.join(wrong)} is unknown or missing; the columns are {', '.join(known)}")


def _line(source: Source, fields: Mapping[str, str], place: str) -> dict[str, Any]:
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
    return line | _number(fields["printed"], fields.get("printed_unit", ""), line["metric"], place) | with_sizes(line)


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


def with_sizes(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line with the number of devices and the global batch, where they follow from what it says.

    What was reckoned so is ``inferred``: held against its own factors it would always be right.
    """
    sizes = dict(line)
    for product, factors in PRODUCTS.items():
        if product not in sizes and all(name in sizes for name in factors):
            sizes[product] = sizes[factors[0]] * sizes[factors[1]]
            sizes["inferred"] = ", ".join(filter(None, [sizes.get("inferred"), product]))
    return sizes
