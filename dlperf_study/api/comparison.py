"""What changed between measurements, as frames and as the command ``compare`` prints it."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise

import pandas as pd

from dlperf_study.dataset.history import Measurement
from dlperf_study.dataset.measurement_comparison import Change, MeasurementComparison, compare_measurements
from dlperf_study.report import page_findings
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.history_tables import (
    comparison_labels,
    condition_changes,
    describe,
    speedup_changes,
    throughput_changes,
)

_BOUNDS = ("", "_low", "_high")
_CHANGE = (
    "configuration",
    *(f"{name}{bound}" for name in ("change", "change_against_mean") for bound in _BOUNDS),
    "significance",
)


class StudyComparison:
    """What changed from one measurement to another; regressions come first."""

    def __init__(self, changes: MeasurementComparison) -> None:
        self._changes = changes

    @cached_property
    def throughputs(self) -> pd.DataFrame:
        """Throughput after / before, by ``configuration_id``.

        Columns: ``configuration``; ``change`` with ``change_low`` and ``change_high``, its interval within these two
        measurements; ``change_against_mean``: after / the mean of all earlier measurements, with the interval of
        one further one, and ``significance`` of it. Both are missing with fewer than five earlier measurements.
        """
        return self._frame(self._changes.throughputs)

    @cached_property
    def speedups(self) -> pd.DataFrame:
        """Speedup after / before, with the columns of ``throughputs``."""
        return self._frame(self._changes.speedups)

    @cached_property
    def conditions(self) -> pd.DataFrame:
        """The recorded conditions that differ, by ``column``."""
        return pd.DataFrame(self._changes.conditions, columns=["column", "before", "after"]).set_index("column")

    @property
    def changes(self) -> MeasurementComparison:
        """The comparison, which functions of ``dlperf_study.report`` take."""
        return self._changes

    def findings(self) -> page_findings.PageFindings:
        """Return what changed."""
        return page_findings.history(self._changes)

    def _frame(self, changes: Iterable[Change]) -> pd.DataFrame:
        labels, rows = comparison_labels(self._changes), {}
        for change in changes:
            change_against_mean = change.dates.change_against_mean
            over_dates = change_against_mean.bounded_factor if change_against_mean else (None, None, None)
            within_dates = change.dates.log_ratio.bounded_factor
            rows[change.configuration_id] = (
                labels[change.configuration_id],
                *within_dates,
                *over_dates,
                change.significance.word,
            )
        return pd.DataFrame.from_dict(rows, orient="index", columns=list(_CHANGE)).rename_axis(index="configuration_id")

    def __repr__(self) -> str:
        return describe(self._changes)

    def _repr_html_(self) -> str:
        page = self.findings()._repr_html_()
        for build in (throughput_changes, speedup_changes, condition_changes):
            table = build(self._changes)
            if not table.is_empty:
                page += table._repr_html_()
        return page


def session_history(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """Return each session's throughputs and their changes, the last session last."""
    changes: dict[str, tuple[Change, ...]] = {}
    for before, after in pairwise(measurements):
        changes[after.name] = compare_measurements(before, after, earlier=()).throughputs
    frames = {}
    for measurement in measurements:
        dataset, column = measurement.dataset, measurement.dataset.throughput_column
        frame = dataset.configurations.set_index("configuration_id")[[f"{column}{bound}" for bound in _BOUNDS]]
        frame = frame.dropna(subset=column)
        frame.insert(0, "configuration", frame.index.map(configuration_labels(dataset)))
        frame.insert(0, "begun", measurement.begun)
        rows = {row.configuration_id: row.dates.log_ratio.bounded_factor for row in changes.get(measurement.name, ())}
        changed = pd.DataFrame.from_dict(rows, orient="index", columns=_CHANGE[1:4], dtype=float)
        frames[measurement.name] = frame.join(changed)
    return pd.concat(frames, names=["session", "configuration_id"])
