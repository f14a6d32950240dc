"""Points of a grid: products of levels, and which points a condition matches. Standard library only."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

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


def in_words(values: Mapping[str, object]) -> str:
    """Return names and values as messages show them."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


def where_in_words(where: Levels) -> str:
    """Return a condition as messages show it."""
    return in_words({name: " or ".join(map(str, values)) for name, values in where.items()})
