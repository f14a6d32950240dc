"""What one log says: its records, its facts, and every warning about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from dlperf_study.diagnostic import Diagnostic
from dlperf_study.logs.format import TRAINING, Format
from dlperf_study.logs.records import Records
from dlperf_study.logs.sources import Source
from dlperf_study.logs.step_index import Places, places_of

#: Longer whole numbers count no steps and no devices.
LONGEST_FACT = 15
#: How programs write that something is on or off, in small letters; what was not asked for is off.
SWITCHES = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off", "none"), False),
}


@dataclass(frozen=True)
class Reading:
    """One log, read. ``facts``: what it states about the whole run, as text, by name."""

    source: Source
    format: Format
    records: Records
    facts: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...]
    lines: int

    @cached_property
    def rate_metric(self) -> str:
        """The best metric it has for the job's rate; empty where it has none."""
        return next((name for name in self.format.rates if self.records.holding(name).any()), "")

    @cached_property
    def rate_places(self) -> Places:
        """Where in the training its rates were printed; lines without a step are nowhere."""
        rows = self.records
        chosen = rows.holding(self.rate_metric) & (rows.step >= 0)
        return places_of(rows.epoch[chosen], rows.step[chosen])

    def series(self, metric: str, window: str = TRAINING) -> Records:
        """Return the records of a window that hold a metric."""
        return self.records.series(metric, window)

    def fact(self, name: str) -> int | None:
        """Return a fact that is a whole number, or None where the log does not state it."""
        text = self.facts.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_FACT else None

    def switch(self, name: str) -> bool | None:
        """Return a fact that is a yes or a no, or None where the log states neither."""
        return SWITCHES.get(self.facts.get(name, "").lower())
