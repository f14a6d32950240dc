"""Why an estimate over runs has no interval."""

from enum import Enum, auto


class NoInterval(Enum):
    """Why an estimate has no confidence interval.

    FEW_VALUES: fewer than an interval needs. EQUAL_VALUES: they, or their differences within rounds, are equal.
    FEW_ROUNDS: two samples have runs in too few common rounds.
    """

    FEW_VALUES = auto()
    EQUAL_VALUES = auto()
    FEW_ROUNDS = auto()
