"""Points of a grid: products of levels, and which points a condition matches. Standard library only."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal, get_args

from dlperf_study.study.configuration import Scalar

Point = dict[str, Scalar]
Levels = Mapping[str, Sequence[Scalar]]


def points_of(levels: Levels) -> Iterator[Point]:
    """Yield the product of the levels; the last name varies fastest."""
    for values in product(*levels.values()):
        yield dict(zip(levels, values, strict=True))


def matches(point: Point, where: Levels) -> bool:
    """Return whether a point has one of the given values under every name."""
    return all(point.get(name) in values for name, values in where.items())


def format_values(values: Mapping[str, object]) -> str:
    """Return names and values as messages show them."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


def format_condition(where: Levels) -> str:
    """Return a condition as messages show it."""
    return format_values({name: " or ".join(map(str, values)) for name, values in where.items()})


# Partners: which other point of a study each point is compared with. Standard library only.


#: ``baseline``: what a speedup is measured against; ``reference``: what a framework is compared with.
Denominator = Literal["baseline", "reference"]
DENOMINATORS: tuple[Denominator, ...] = get_args(Denominator)


@dataclass(frozen=True)
class DenominatorRule:
    """Points that match ``where`` are compared with the same point with ``values`` put in."""

    values: Mapping[str, Scalar]
    where: Levels = field(default_factory=dict)


Rules = tuple[DenominatorRule, ...]


def partner(rules: Rules, point: Point) -> Point | None:
    """Return the partner that the first matching rule declares, or None when no rule matches."""
    return next(({**point, **rule.values} for rule in rules if matches(point, rule.where)), None)
