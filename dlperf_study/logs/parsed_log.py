"""What one log contains: its records, the facts it states about its run, and the diagnostics about it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dlperf_study.arrays import Integers, elements
from dlperf_study.diagnostic import Diagnostic
from dlperf_study.logs.format import TRAINING, Format, Merge
from dlperf_study.logs.log_source import LogSource
from dlperf_study.logs.records import Records, StepIndex, index_steps

#: Longer integers count no steps and no devices.
_LONGEST_INTEGER = 15
#: A comma between thousands.
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
#: How programs write that something is on or off, in lower case.
_SWITCHES = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off", "none"), False),
}
#: By how many printed steps one rank may be ahead of another in the same log.
_ALLOWED_DISORDER = 3


@dataclass(frozen=True)
class ParsedLog:
    """One log that was read. ``facts``: what it states about the whole run, as strings, by name."""

    source: LogSource
    format: Format
    records: Records
    facts: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...]
    lines: int

    @cached_property
    def rate_metric(self) -> str:
        """The best metric it has for the job's rate; empty if it has none."""
        return next((name for name in self.format.rates if self.records.has_metric(name).any()), "")

    @cached_property
    def rate_steps(self) -> StepIndex:
        """The steps at which its rates were printed; lines without a step are left out."""
        records = self.records
        rows = records.has_metric(self.rate_metric) & (records.step >= 0)
        return index_steps(elements(records.epoch, rows), elements(records.step, rows))

    @cached_property
    def restarts(self) -> Integers:
        """The lines at which the training of a rank starts over: its steps go back to earlier ones.

        Ranks that print into one stream without their names mix within a few steps; a step that goes back by more than
        _ALLOWED_DISORDER printed steps is a restart.
        """
        records = self.records
        rows = records.select((records.step >= 0) & records.training)
        is_same_epoch = rows.epoch[1:] == rows.epoch[:-1]
        if not ((rows.epoch[1:] < rows.epoch[:-1]) | (is_same_epoch & (rows.step[1:] < rows.step[:-1]))).any():
            return records.line[:0]
        # Where one rank prints, nothing mixes.
        allowed = 0 if self.format.merge is Merge.ONE else _ALLOWED_DISORDER
        restarts = []
        for rank in np.unique(rows.rank):
            rows_of_rank = rows.select(rows.rank == rank)
            order = index_steps(rows_of_rank.epoch, rows_of_rank.step).group
            restarts.append(rows_of_rank.line[1:][order[:-1] - order[1:] > allowed])
        return np.sort(np.concatenate(restarts))

    def series(self, metric: str, window: str = TRAINING) -> Records:
        """Return the records of a window that have a metric."""
        return self.records.series(metric, window)

    def integer_fact(self, name: str) -> int | None:
        """Return a fact that is an integer, or None if the log does not state it."""
        value = _THOUSANDS.sub("", self.facts.get(name, ""))
        is_integer = value.isascii() and value.isdigit() and len(value) <= _LONGEST_INTEGER
        return int(value) if is_integer else None

    def switch(self, name: str) -> bool | None:
        """Return whether a fact says on or off, or None if the log states neither."""
        return _SWITCHES.get(self.facts.get(name, "").lower())
