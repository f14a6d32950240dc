"""Partners: which other point of a study each point is compared with. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from dlperf_study.study.configuration import Scalar
from dlperf_study.study.grid import Levels, Point, matches

#: ``baseline``: what a speedup is measured against; ``reference``: what a framework is compared with.
Role = Literal["baseline", "reference"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class PartnerRule:
    """Points that match ``where`` are compared with the same point with ``values`` put in."""

    values: Mapping[str, Scalar]
    where: Levels = field(default_factory=dict)


Rules = tuple[PartnerRule, ...]


def partner(rules: Rules, point: Point) -> Point | None:
    """Return the partner that the first matching rule declares, or None when no rule matches."""
    return next(({**point, **rule.values} for rule in rules if matches(point, rule.where)), None)
