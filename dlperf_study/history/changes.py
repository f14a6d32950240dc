"""What changed between two measurements: throughputs, speedups, and what is recorded of where they were made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from dlperf_study.analysis.comparison import (
    EQUAL,
    FASTER,
    NOT_DISTINGUISHABLE,
    SLOWER,
    Verdict,
    throughput_ratio,
    verdicts,
    widest_equality,
)
from dlperf_study.analysis.dates import changes, departures, ratio_changes
from dlperf_study.analysis.statistics import Estimate
from dlperf_study.columns import COLUMNS
from dlperf_study.errors import BaselineError, EvidenceError
from dlperf_study.history.measurements import Measurement
from dlperf_study.history.same_configurations import with_identities_of
from dlperf_study.study.job import Outcome

#: Regressions first, and last what nothing can be said of.
ORDER = (SLOWER, FASTER, NOT_DISTINGUISHABLE, EQUAL, None)
#: What is recorded of a run and may explain a change.
CONDITIONS = (
    *("cluster", "launcher", "host", "device", "device_name", "link", "cpu_model", "cores", "memory_bytes"),
    *("gpu_driver", "cuda_version", "cudnn_version", "exchange_library"),
    *("library", "library_version", "python_version", "library_settings", "measuring_code", "git_commit"),
)


@dataclass(frozen=True)
class Change:
    """How one configuration changed: the logarithm of after / before, and what may be said of it."""

    identity: str
    log_ratio: Estimate
    verdict: Verdict


@dataclass(frozen=True)
class ConditionChange:
    """A column of the runs whose values differ between two measurements; each list in order of appearance."""

    column: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class MeasurementComparison:
    """Two measurements and what changed between them.

    ``throughputs`` and ``speedups`` have regressions first. ``other_networks``: identities under which the two trained
    different numbers of parameters, which are not compared.
    """

    before: Measurement
    after: Measurement
    throughputs: tuple[Change, ...]
    speedups: tuple[Change, ...]
    conditions: tuple[ConditionChange, ...]
    other_networks: tuple[str, ...]

    @property
    def has_common_configurations(self) -> bool:
        """Whether any configuration has completed runs in both."""
        return not self.before.throughputs.keys().isdisjoint(self.after.throughputs)

    @property
    def only_before(self) -> list[str]:
        """The identities of which only the earlier one has completed runs."""
        return [identity for identity in self.before.throughputs if identity not in self.after.throughputs]

    @property
    def only_after(self) -> list[str]:
        """The identities of which only the later one has completed runs."""
        return [identity for identity in self.after.throughputs if identity not in self.before.throughputs]


def compare_measurements(before: Measurement, after: Measurement) -> MeasurementComparison:
    """Return what changed from one measurement to another.

    Raises EvidenceError when both are the same measurement, or their rates have different units.
    """
    if before.dataset.folder.resolve() == after.dataset.folder.resolve():
        raise EvidenceError(f"{before.name} and {after.name} are the same measurement; name two")
    after = with_identities_of(before, after)
    units = [COLUMNS[measurement.dataset.rate].unit for measurement in (before, after)]
    if units[0] != units[1]:
        raise EvidenceError(f"the rates of {before.name} are in {units[0]}, those of {after.name} in {units[1]}")
    parameters = _parameters(before).to_frame("before").join(_parameters(after).rename("after"), how="inner")
    other_networks = tuple(parameters.index[parameters["before"] != parameters["after"]])
    ratios = _without(changes(before.throughputs, after.throughputs), other_networks)
    speedups = _without(ratio_changes(_log_speedups(before), _log_speedups(after)), other_networks)
    widest = max(widest_equality(before.dataset.plan), widest_equality(after.dataset.plan))
    return MeasurementComparison(
        before,
        after,
        _ordered(ratios, widest),
        _ordered(speedups, widest),
        _condition_changes(before, after),
        other_networks,
    )


def departures_from_earlier(measurements: Sequence[Measurement]) -> tuple[Change, ...]:
    """Return how the last of several measurements departs from what the earlier ones lead to expect, regressions first.

    Only of configurations that enough earlier measurements have.
    """
    *earlier, last = measurements
    ratios = departures([measurement.throughputs for measurement in earlier], last.throughputs)
    return _ordered(ratios, widest_equality(last.dataset.plan))


def _ordered(log_ratios: Mapping[str, Estimate], widest: float) -> tuple[Change, ...]:
    """Return changes with the verdicts that are made of them together: by verdict, and each by size."""
    decided = verdicts(log_ratios, widest)
    rows = [Change(identity, log_ratio, decided[identity]) for identity, log_ratio in log_ratios.items()]
    return tuple(sorted(rows, key=lambda change: (ORDER.index(change.verdict.word), change.log_ratio.mean)))


def _without(log_ratios: Mapping[str, Estimate], identities: Sequence[str]) -> dict[str, Estimate]:
    return {identity: log_ratio for identity, log_ratio in log_ratios.items() if identity not in identities}


def _log_speedups(measurement: Measurement) -> dict[str, Estimate]:
    """Return the logarithms of the speedups, by identity; without baselines, and without what has no measured one."""
    speedups = {}
    for entry in measurement.dataset.plan.entries:
        identity = entry.configuration.identity
        if identity in measurement.throughputs and not entry.is_baseline:
            try:
                speedups[identity] = throughput_ratio(entry, "baseline", measurement.throughputs)
            except BaselineError:
                # The report of that measurement says so.
                continue
    return speedups


def _parameters(measurement: Measurement) -> pd.Series:
    return measurement.dataset.configurations.set_index("identity")["parameters"].dropna()


def _condition_changes(before: Measurement, after: Measurement) -> tuple[ConditionChange, ...]:
    """Return what is recorded of the completed runs that both measured and is not the same in both.

    What only one of them recorded is no change: older evidence has no record of some.
    """
    differing = []
    for column in CONDITIONS:
        levels_before, levels_after = _levels(before, after, column), _levels(after, before, column)
        if levels_before and levels_after and set(levels_before) != set(levels_after):
            differing.append(ConditionChange(column, levels_before, levels_after))
    return tuple(differing)


def _levels(measurement: Measurement, other: Measurement, column: str) -> tuple[str, ...]:
    """Return the values of a column of the completed runs of the configurations that the other has too."""
    runs = measurement.dataset.runs
    in_both = (runs["outcome"] == Outcome.COMPLETED) & runs["identity"].isin(list(other.throughputs))
    return tuple(map(str, runs.loc[in_both, column].dropna().unique()))
