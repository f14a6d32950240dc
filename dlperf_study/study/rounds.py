"""How many rounds a study measures, and after how many it compares its intervals with its target CI width."""

from dataclasses import dataclass

#: After how many times the planned rounds a study with a target CI width looks at its intervals.
LOOKS = (1, 2, 4)


@dataclass(frozen=True)
class Rounds:
    """The rounds of a study.

    ``planned``: 0 if nothing can run. ``looks``: after how many rounds the intervals are compared with the target
    precision; none without one.
    """

    planned: int
    looks: tuple[int, ...] = ()

    @classmethod
    def of(cls, planned: int, target_ci: float | None, max_repetitions: int | None) -> "Rounds":
        """Return the rounds of a plan with this target CI width."""
        if target_ci is None or not planned:
            return cls(planned)
        looks = [count * planned for count in LOOKS if count * planned <= (max_repetitions or 0)]
        return cls(planned, tuple(looks))

    @property
    def most(self) -> int:
        """How many are measured at most, without those that repeat disturbed ones."""
        return max(self.looks, default=self.planned)
