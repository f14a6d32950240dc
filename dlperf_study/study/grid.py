"""Points of a grid: products of values, conditions on points, and the points that ratios are taken to.

Standard library only.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, get_args

from dlperf_study.core.wording import as_yaml, value_text
from dlperf_study.study.parameter import Scalar

Point = dict[str, Scalar]
Values = Mapping[str, Sequence[Scalar]]

#: What the ratios of a configuration are taken to: a speedup to its ``baseline``, a relative throughput to its
#: ``reference``.
Denominator = Literal["baseline", "reference"]
DENOMINATORS: tuple[Denominator, ...] = get_args(Denominator)


def grid_points(factors: Values) -> Iterator[Point]:
    """Yield the product of the values of all factors; the last factor varies fastest."""
    for values in product(*factors.values()):
        yield dict(zip(factors, values, strict=True))


def matches(point: Point, where: Values) -> bool:
    """Return whether a point has one of the values for every name."""
    return all(point.get(name) in values for name, values in where.items())


def format_values(values: Mapping[str, object]) -> str:
    """Return names and values as messages show them: ``nodes 2, servers 0``."""
    return ", ".join(f"{name} {value_text(value)}" for name, value in values.items())


def format_condition(where: Values) -> str:
    """Return a condition for messages: ``nodes 3 or 5, servers 0``."""
    return format_values({name: " or ".join(map(value_text, values)) for name, values in where.items()})


def baseline_example(content: Mapping[str, Any]) -> str:
    """Return an example baseline for the factors of a file."""
    factors = content.get("factors")
    if not isinstance(factors, dict):
        return ""
    for name in ("nodes", "devices_per_node", *factors):
        values = factors.get(name)
        if not isinstance(values, list) or not values:
            continue
        first = values[0]
        if all(isinstance(given, int) for given in values):
            first = min(values)
        return f"; add e.g. `baseline: {{{name}: {as_yaml(first)}}}`: what speedups are relative to"
    return ""
