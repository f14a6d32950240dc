"""What changed from one measurement of a study to another: throughputs, speedups, and the conditions of both."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pandas as pd

from dlperf_study.core.errors import BaselineError, RecordError
from dlperf_study.dataset.history import Measurement, earlier_dates, share_identities
from dlperf_study.metrics import columns, comparison, drift, run_status, statistics

#: A speedup is higher or lower, also if its configuration is as fast as before: its baseline may have changed.
HIGHER, LOWER = "higher", "lower"
WORDS_OF_SPEEDUPS = {comparison.FASTER: HIGHER, comparison.SLOWER: LOWER}
#: Regressions first, and last what nothing can be said of.
ORDER = (
    comparison.SLOWER,
    LOWER,
    comparison.FASTER,
    HIGHER,
    comparison.NO_SIGNIFICANT_DIFFERENCE,
    comparison.EQUAL,
    None,
)
CONDITIONS = (
    *("cluster", "launcher", "host", "device", "device_name", "interconnect", "cpu_model", "cores", "memory_bytes"),
    *("gpu_driver", "cuda_version", "cudnn_version", "communication_library"),
    *("library", "library_version", "python_version", "library_settings", "measuring_code", "git_commit"),
)


@dataclass(frozen=True)
class Change:
    """The change of one configuration's throughput or speedup, and its significance.

    No significance has a word before enough earlier dates tell how dates differ.
    """

    configuration_id: str
    dates: drift.DateChange
    significance: comparison.Significance


@dataclass(frozen=True)
class ConditionChange:
    """A column of the runs whose values differ between measurements."""

    column: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class MeasurementComparison:
    """Two measurements and what changed between them.

    ``earlier``: the measurements that tell how dates differ. ``throughputs`` and ``speedups`` have regressions first.
    ``other_networks``: identities under which the two trained different numbers of parameters, which are not compared.
    """

    before: Measurement
    after: Measurement
    earlier: tuple[Measurement, ...]
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
        return [
            configuration_id
            for configuration_id in self.before.throughputs
            if configuration_id not in self.after.throughputs
        ]

    @property
    def only_after(self) -> list[str]:
        """The identities of which only the later one has completed runs."""
        return [
            configuration_id
            for configuration_id in self.after.throughputs
            if configuration_id not in self.before.throughputs
        ]


def compare_measurements(
    before: Measurement, after: Measurement, earlier: Sequence[Measurement] | None = None
) -> MeasurementComparison:
    """Return what changed from one measurement to another.

    ``earlier``: the measurements that tell how dates differ; those of ``earlier_dates`` if left out.
    Raises RecordError when both are the same measurement, or their throughputs have different units.
    """
    if before.dataset.folder.resolve() == after.dataset.folder.resolve():
        raise RecordError(f"{before.name} and {after.name} are the same session; name two different sessions")
    earlier = tuple(earlier_dates(before, after) if earlier is None else earlier)
    after = share_identities(before, after)
    units = [columns.COLUMNS[measurement.dataset.throughput_column].unit for measurement in (before, after)]
    if units[0] != units[1]:
        raise RecordError(
            f"the throughputs of {before.name} are in {units[0]}, but the throughputs of {after.name} are in {units[1]}"
        )
    throughputs = _changes(_log_throughputs, before, after, earlier)
    speedups = _changes(_log_speedups, before, after, earlier, _without_common_baseline)
    widest = max(comparison.widest_equality(before.dataset.plan), comparison.widest_equality(after.dataset.plan))
    changes_of_throughput, changes_of_speedup = _ordered(throughputs, speedups, widest)
    return MeasurementComparison(
        before,
        after,
        earlier,
        changes_of_throughput,
        changes_of_speedup,
        _condition_changes(before, after),
        _other_networks(before, after),
    )


def _other_networks(before: Measurement, after: Measurement) -> tuple[str, ...]:
    """Return the identities with different numbers of parameters."""
    earlier = _parameters(before)
    later = _parameters(after).reindex(earlier.index)
    return tuple(earlier.index[later.notna() & (later != earlier)])


def _without_common_baseline(before: Measurement, after: Measurement) -> set[str]:
    """Return the identities whose speedups have no common baseline."""
    networks = _other_networks(before, after)
    later_entries = after.dataset.plan.by_id
    not_common = set(networks)
    for configuration_id, entry in before.dataset.plan.by_id.items():
        later = later_entries.get(configuration_id)
        has_same_baseline = later is not None and later.baseline_id == entry.baseline_id
        if entry.baseline_id in networks or not has_same_baseline:
            not_common.add(configuration_id)
    return not_common


def _changes(
    values: Callable[[Measurement], Mapping[str, statistics.Estimate]],
    before: Measurement,
    after: Measurement,
    earlier: Sequence[Measurement],
    not_compared: Callable[[Measurement, Measurement], Collection[str]] = _other_networks,
) -> dict[str, drift.DateChange]:
    """Return the changes of values by identity, except ``not_compared``."""
    comparable = []
    for date in (before, *earlier):
        is_in_unit = date.dataset.throughput_column == after.dataset.throughput_column
        left_out = not_compared(date, after) if is_in_unit else tuple(date.throughputs)
        comparable.append(
            {
                configuration_id: value
                for configuration_id, value in values(date).items()
                if configuration_id not in left_out
            }
        )
    return drift.date_changes(comparable[0], values(after), comparable[1:])


def _ordered(
    throughputs: Mapping[str, drift.DateChange], speedups: Mapping[str, drift.DateChange], widest: float
) -> Iterator[tuple[Change, ...]]:
    """Yield the changes of each kind by significance and size."""
    changes_against_mean = {}
    for kind, changes in (("throughput", throughputs), ("speedup", speedups)):
        for configuration_id, change in changes.items():
            changes_against_mean[f"{kind} {configuration_id}"] = change.change_against_mean or statistics.Estimate(0.0)
    significances = comparison.significances(changes_against_mean, widest)
    for kind, changes, renamed in (("throughput", throughputs, {}), ("speedup", speedups, WORDS_OF_SPEEDUPS)):
        rows = []
        for configuration_id, change in changes.items():
            significance = significances[f"{kind} {configuration_id}"]
            significance = replace(significance, word=renamed.get(significance.word or "", significance.word))
            rows.append(Change(configuration_id, change, significance))
        yield tuple(sorted(rows, key=lambda row: (ORDER.index(row.significance.word), row.dates.log_ratio.mean)))


def _log_throughputs(measurement: Measurement) -> dict[str, statistics.Estimate]:
    """Return each configuration's mean log throughput, by identity."""
    return {
        configuration_id: sample.logarithms.estimate for configuration_id, sample in measurement.throughputs.items()
    }


def _log_speedups(measurement: Measurement) -> dict[str, statistics.Estimate]:
    """Return the log speedups by identity, without baselines."""
    speedups = {}
    for entry in measurement.dataset.plan.entries:
        configuration_id = entry.configuration.configuration_id
        if configuration_id in measurement.throughputs and not entry.is_baseline:
            # The report of that measurement says if there is no baseline. That of a selection may not be selected.
            with suppress(BaselineError):
                speedups[configuration_id] = comparison.throughput_ratio(
                    entry, "baseline", measurement.dataset.throughputs
                )
    return speedups


def _parameters(measurement: Measurement) -> pd.Series:
    return measurement.dataset.configurations.set_index("configuration_id")["parameters"].dropna()


def _condition_changes(before: Measurement, after: Measurement) -> tuple[ConditionChange, ...]:
    """Return the conditions recorded in both and different."""
    differing = []
    for column in CONDITIONS:
        values_before, values_after = _values(before, after, column), _values(after, before, column)
        if values_before and values_after and set(values_before) != set(values_after):
            differing.append(ConditionChange(column, values_before, values_after))
    return tuple(differing)


def _values(measurement: Measurement, other: Measurement, column: str) -> tuple[str, ...]:
    """Return a column's values over the runs of common configurations."""
    completed = run_status.select_completed(measurement.dataset.runs)
    in_both = completed["configuration_id"].isin(list(other.throughputs))
    return tuple(map(str, completed.loc[in_both, column].dropna().unique()))
