"""A study's results: pandas frames, selections with xarray's words, figures, and the tables of its report."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from dlperf_study.api import overview
from dlperf_study.api.comparison import StudyComparison, session_history
from dlperf_study.api.plot import Plot, known_metrics, require
from dlperf_study.api.predictions import StudyPredictions, requested_sizes
from dlperf_study.core.errors import DlperfStudyError, RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import unknown_name, value_text
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.history import Measurement, find_measurement, in_order, study_measurements
from dlperf_study.dataset.measurement_comparison import compare_measurements
from dlperf_study.findings import history, pages
from dlperf_study.metrics.columns import COLUMNS, Metric, column_named
from dlperf_study.metrics.parameters import varying
from dlperf_study.report import page_findings, say, series, tables
from dlperf_study.report.section import Part, Section
from dlperf_study.report.tables import prediction_tables
from dlperf_study.report.tables.diagnostic_tables import DiagnosticOverview
from dlperf_study.report.tables.latex import latex_table
from dlperf_study.report.tables.table import Table
from dlperf_study.study import renamed
from dlperf_study.study.configuration import PARAMETERS

if TYPE_CHECKING:
    import xarray

_STEP = ["configuration_id", "repetition", "rank", "window", "step"]
_BOUNDS = ("low", "high")
_SELECTABLE = ["world_size", "global_batch", *PARAMETERS]


def open_study(study: str | Path) -> "StudyResults":
    """Return the results of a study, collected anew if changed.

    ``study``: its name, ``name@1`` for an earlier measurement of it, or its folder below the outputs.

    Raises RecordError, with the names there are, when nothing was measured under it.
    """
    return StudyResults(find_measurement(str(study)))


class StudyResults:
    """The results of a study; its pandas frames may be changed."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement = measurement

    @property
    def name(self) -> str:
        """The name by which it is opened."""
        return self._measurement.name

    @property
    def dataset(self) -> Dataset:
        """The dataset, which functions of ``dlperf_study.report`` take."""
        return self._measurement.dataset

    @property
    def title(self) -> str:
        """The title in the study file."""
        return self.dataset.plan.title

    @cached_property
    def configurations(self) -> pd.DataFrame:
        """A row for each configuration with its summaries, by ``configuration_id``."""
        return self.dataset.configurations.set_index("configuration_id")

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row for each run, by ``configuration_id`` and ``repetition``."""
        return self.dataset.runs.set_index(["configuration_id", "repetition"])

    @cached_property
    def steps(self) -> pd.DataFrame:
        """A row per step, by identity, repetition, rank, window and step."""
        all_steps = self.dataset.steps
        steps = all_steps[all_steps["configuration_id"].isin(self.dataset.configurations["configuration_id"])]
        for name in ("configuration_id", "window"):
            steps = steps.assign(**{name: steps[name].cat.set_categories(steps[name].unique(), ordered=True)})
        return steps.set_index(_STEP).sort_index()

    @cached_property
    def diagnostics(self) -> pd.DataFrame:
        """A row per diagnostic, by ``configuration_id``, missing for the study's."""
        return self.dataset.diagnostics.set_index("configuration_id")

    @cached_property
    def factors(self) -> list[str]:
        """The columns that distinguish the configurations."""
        rows = self.dataset.configurations
        names = dict.fromkeys((*self.dataset.plan.factors, *PARAMETERS))
        factors: list[str] = []
        for name in varying(rows, filter(rows.__contains__, names)):
            # Other columns count if configurations with equal values of the factors before them differ in them.
            combinations = len(rows.drop_duplicates(factors)) if factors else 1
            is_independent = len(rows.drop_duplicates([*factors, name])) > combinations
            if name in self.dataset.plan.factors or is_independent:
                factors.append(name)
        return factors

    @property
    def metrics(self) -> list[str]:
        """The numbers with an interval, the main ones first."""
        return known_metrics(self.dataset.configurations)

    @property
    def columns(self) -> "Columns":
        """What each column is: its ``label``, ``unit`` and ``definition``, by name."""
        return Columns({name: column_named(name) for name in (*COLUMNS, *self.dataset.configurations)})

    def sel(self, **values: Any) -> "StudyResults":
        """Return the results with these values of factors.

        Ratios stay relative to the declared baselines, also where these are not selected.

        Raises DlperfStudyError, with the closest ones, for an unknown name or value, and if no configuration is left.
        """
        rows = self.dataset.configurations
        # Of a user's program most parameters of this package are unstated.
        selectable = [name for name in _SELECTABLE if rows[name].notna().any()]
        for name, wanted in values.items():
            require(name, [*dict.fromkeys((*self.dataset.plan.factors, *selectable))], "factor")
            rows = rows[rows[name].isin(_known_values(self.dataset.configurations[name], wanted))]
        if rows.empty:
            wanted_values = ", ".join(f"{name}={wanted!r}" for name, wanted in values.items())
            raise DlperfStudyError(f"{self.name}: no configuration has {wanted_values}")
        return StudyResults(replace(self._measurement, dataset=self.dataset.only(rows)))

    def summary(self, *metrics: str) -> pd.DataFrame:
        """Return metrics of each configuration by its ``factors``, or NaN.

        Each metric has the columns ``mean``, ``low`` and ``high``: over runs, with its 95 % interval. Without
        ``metrics`` these are the throughput, speedup and efficiency.

        Raises DlperfStudyError, with the closest one, for a column that is no number of configurations.
        """
        rows = self.dataset.configurations
        default = [name for name in (self.dataset.throughput_column, "speedup", "efficiency") if name in self.metrics]
        columns: dict[tuple[str, str], pd.Series] = {}
        for name in metrics or default or [self.dataset.throughput_column]:
            require(str(name), [column for column in rows if column in COLUMNS and COLUMNS[column].is_number], "metric")
            columns[name, "mean"] = rows[name]
            columns |= {(name, bound): rows[f"{name}_{bound}"] for bound in _BOUNDS if f"{name}_{bound}" in rows}
        values = rows[self.factors or ["world_size"]]
        index = pd.MultiIndex.from_frame(values) if len(values.columns) > 1 else pd.Index(values.squeeze(axis=1))
        return pd.DataFrame(columns).set_axis(index).rename_axis(columns=["metric", None])

    def compare(self, other: "StudyResults | str | Path") -> StudyComparison:
        """Return what changed from this study to another.

        Raises RecordError if both are the same, have throughputs in different units, or no configuration in common.
        """
        compared = other if isinstance(other, StudyResults) else open_study(other)
        pair = self._measurement, compared._measurement
        comparison = compare_measurements(*in_order(_selected_as(*pair), _selected_as(*reversed(pair))))
        if not comparison.has_common_configurations:
            raise RecordError(say.say_one(history.nothing_in_common(comparison)))
        return StudyComparison(comparison)

    def predict(self, nodes: Sequence[int] = (), devices: Sequence[int] = ()) -> "StudyPredictions":
        """Return the throughput of unmeasured numbers of nodes or devices.

        Without either, twice the largest measured size of each series, and each further doubling that has an interval.
        Raises DlperfStudyError for both, and for a size that is not a whole number from 1 to 1,000,000.
        """
        return StudyPredictions(prediction_tables.study_predictions(self.dataset, *requested_sizes(nodes, devices)))

    @cached_property
    def measurements(self) -> list["StudyResults"]:
        """The study's measurements, the last one last."""
        return list(map(StudyResults, study_measurements(self.dataset.plan.study)))

    @cached_property
    def history(self) -> pd.DataFrame:
        """A row for each session and configuration, by ``session`` and ``configuration_id``.

        Columns: ``begun``, ``configuration``, the throughput with its interval, and ``change``, the throughput / the
        throughput of the previous session, with ``change_low`` and ``change_high``.
        """
        sessions = session_history([results._measurement for results in self.measurements])
        if self.dataset.whole is None:
            return sessions
        return sessions[sessions.index.isin(self.configurations.index, level="configuration_id")]

    @property
    def plot(self) -> Plot:
        """The figures: any metric over any factor, and the report's."""
        return Plot(self.name, self.dataset)

    def findings(self, page: str = "summary") -> page_findings.PageFindings:
        """Return a page's findings; raises DlperfStudyError for unknown pages."""
        require(page, list(pages.PAGES), "page")
        return page_findings.page_findings(self.dataset, page)

    def table(self, name: str) -> Table:
        """Return a report table; raises DlperfStudyError for unknown names."""
        require(name, tables.__all__, "table")
        table: Table = getattr(tables, name)(self.dataset)
        return table

    def to_latex(self, name: str) -> str:
        """Return a report table as LaTeX; raises as ``table`` does."""
        return latex_table(self.table(name), self.dataset.plan.study)

    def to_xarray(self) -> "xarray.Dataset":
        """Return the metrics with a dimension per factor.

        Raises DlperfStudyError, with the command that installs it, without xarray.
        """
        try:
            import xarray  # noqa: F401
        except ImportError:
            raise DlperfStudyError("to_xarray needs xarray: pip install xarray") from None
        summary = self.summary(*self.metrics)
        summary.columns = [name if part == "mean" else f"{name}_{part}" for name, part in summary.columns]
        return summary.to_xarray()

    def section(self, title: str, *parts: Part | Iterable[Part]) -> Section:
        """Return tables and figures under a heading."""
        return Section.of(title, *parts).save(self._paths)

    def warnings(self, page: str = "") -> DiagnosticOverview:
        """Return a page's or all diagnostics; raises DlperfStudyError if unknown."""
        if page:
            require(page, list(pages.PAGES), "page")
        return DiagnosticOverview(self.dataset, page).save(self._paths)

    @property
    def _paths(self) -> StudyPaths:
        return StudyPaths(self.dataset.folder.parent)

    def __repr__(self) -> str:
        return overview.text(self.dataset, self.factors, self.name)

    def _repr_html_(self) -> str:
        return overview.html(self.dataset, self.factors, self.name)


class Columns(dict[str, Metric]):
    """Columns by name; an error suggests the most similar one."""

    def __missing__(self, name: str) -> Metric:
        if new := renamed.name_column(name):
            raise DlperfStudyError(f"column is {name!r}; it is named {new} now")
        raise DlperfStudyError(unknown_name("column is", name, "columns", self))


def _selected_as(measurement: Measurement, other: Measurement) -> Measurement:
    """Return a measurement with another one's selected configurations."""
    if other.dataset.whole is None:
        return measurement
    rows = measurement.dataset.configurations
    selected = rows[rows["configuration_id"].isin(other.dataset.configurations["configuration_id"])]
    return replace(measurement, dataset=measurement.dataset.only(selected))


def _known_values(column: pd.Series, wanted: Any) -> list[Any]:
    """Return values as a list; raises DlperfStudyError for unknown ones."""
    is_single = isinstance(wanted, str) or not isinstance(wanted, Iterable)
    chosen, values = [wanted] if is_single else list(wanted), series.ordered_values(column)
    for value in chosen:
        if value not in values:
            message = unknown_name(f"{column.name} is", str(value), "values", map(value_text, values))
            raise DlperfStudyError(message)
    return chosen
