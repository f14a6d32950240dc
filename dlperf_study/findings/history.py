"""What changed between two measurement sessions of a study."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlperf_study.dataset.history import differences_of_most_similar
from dlperf_study.dataset.measurement_comparison import HIGHER, LOWER, Change, MeasurementComparison
from dlperf_study.findings import number
from dlperf_study.metrics import comparison
from dlperf_study.metrics.drift import MINIMUM_DATES
from dlperf_study.metrics.statistics import Estimate

MAX_LINES = 3
#: Regressions first; None is a change that was not tested.
TEST_RESULTS = (
    comparison.SLOWER,
    comparison.FASTER,
    LOWER,
    HIGHER,
    comparison.EQUAL,
    comparison.NO_SIGNIFICANT_DIFFERENCE,
    None,
)


@dataclass(frozen=True)
class NothingInCommon:
    """Two sessions without a common configuration; ``differing``: names with both values of the most similar ones."""

    before: str
    after: str
    differing: tuple[tuple[str, tuple[object, ...]], ...]


@dataclass(frozen=True)
class SessionCounts:
    """The significance of the configurations' changes against earlier sessions."""

    after: str
    sessions: int
    total: int
    significances: tuple[tuple[str | None, int], ...]


@dataclass(frozen=True)
class SessionChange:
    """The change of one throughput or speedup from the session before.

    With a ``significance`` it is the change against the mean of all earlier sessions.
    """

    subject: str
    column: str
    ratio: number.Number
    significance: str | None


@dataclass(frozen=True)
class TooFewSessions:
    """Too few earlier sessions for a significance test."""

    needed: int


@dataclass(frozen=True)
class ConditionsDiffer:
    """The columns of recorded conditions that differ; none if the sessions have the same."""

    columns: tuple[str, ...]


def page(changes: MeasurementComparison) -> Iterator[object]:
    """Yield what changed, regressions first, and what may explain it."""
    if not changes.has_common_configurations:
        yield nothing_in_common(changes)
        return
    throughputs = changes.throughputs
    if any(change.dates.change_against_mean is not None for change in throughputs):
        by_significance = Counter(change.significance.word for change in throughputs)
        counts = tuple(
            (significance, by_significance[significance])
            for significance in TEST_RESULTS
            if by_significance[significance]
        )
        yield SessionCounts(changes.after.title, len(changes.earlier), len(throughputs), counts)
        yield from _significant(throughputs, "throughput", (comparison.SLOWER, comparison.FASTER))
        yield from _significant(changes.speedups, "speedup", (LOWER, HIGHER))
    else:
        for change in throughputs[:MAX_LINES]:
            yield SessionChange(change.configuration_id, "throughput", _ratio(change.dates.log_ratio), None)
        yield TooFewSessions(MINIMUM_DATES)
    yield ConditionsDiffer(tuple(change.column for change in changes.conditions))


def nothing_in_common(changes: MeasurementComparison) -> NothingInCommon:
    """Return in what the most similar configurations of two sessions differ."""
    differences = differences_of_most_similar(changes.before, changes.after)
    return NothingInCommon(changes.before.title, changes.after.title, tuple(differences.items()))


def _significant(changes: Sequence[Change], column: str, significances: Sequence[str]) -> Iterator[SessionChange]:
    significant = [
        change for change in changes if change.significance.word in significances and change.dates.change_against_mean
    ]
    for change in significant[:MAX_LINES]:
        ratio = _ratio(change.dates.change_against_mean or change.dates.log_ratio)
        yield SessionChange(change.configuration_id, column, ratio, change.significance.word)


def _ratio(log_ratio: Estimate) -> number.Number:
    return number.from_bounded(log_ratio.bounded_factor, decision=1)
