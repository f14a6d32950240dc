"""What a block says in lines of one kind."""

from dataclasses import dataclass

import numpy as np

from dlperf_study.logs.arrays import Whole
from dlperf_study.logs.records import Records, records


@dataclass(frozen=True)
class Found:
    """The records of some lines, and which lines they are.

    Lines are counted from 0. ``used``: those that were understood; ``candidates``: those with a needle;
    ``not_numbers``: those used that print a number as NaN.
    """

    rows: Records
    used: Whole
    candidates: Whole
    not_numbers: Whole

    @classmethod
    def nothing(cls, candidates: Whole) -> "Found":
        """Return that none of some candidates is used."""
        none = candidates[:0]
        return cls(records(none, {}), none, candidates, none)

    @property
    def usual_metrics(self) -> set[str]:
        """The metrics that most of its rows have."""
        return {name for name, column in self.rows.values.items() if 2 * (~np.isnan(column)).sum() > column.size}
