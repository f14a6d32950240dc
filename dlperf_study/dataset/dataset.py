"""From the evidence of a study to its four tables."""

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from dlperf_study.core.arrays import Integers
from dlperf_study.core.errors import Diagnostic, RecordError, Severity
from dlperf_study.core.paths import ConfigurationPaths, StudyPaths, is_building_report
from dlperf_study.core.progress import Progress, Say, say_nothing
from dlperf_study.core.user_commands import command_line
from dlperf_study.core.writing import write_atomically
from dlperf_study.dataset import study_diagnostics, tables, uncounted_runs
from dlperf_study.dataset.configuration_table import configurations_table, counted_throughputs, throughput_column
from dlperf_study.dataset.inputs import dataset_digest, is_dataset_current
from dlperf_study.dataset.run_table import read_measured_runs, run_row, step_rows, window_steadiness
from dlperf_study.dataset.serious_diagnostics import SeriousDiagnostic, serious_diagnostics, with_problems
from dlperf_study.dataset.target_ci import Precision, corrected_looks, precision_diagnostics, widest
from dlperf_study.metrics import comparison, computation, run_status, scaling, statistics, steady_state
from dlperf_study.metrics.columns import TableName
from dlperf_study.records.run import DuplicateRuns, read_run, unexpected_as_record_error
from dlperf_study.study.configuration import DEFAULTS, PARAMETERS
from dlperf_study.study.plan import Plan

TABLES_IN_MEMORY = (TableName.RUNS, TableName.CONFIGURATIONS, TableName.DIAGNOSTICS)


@dataclass(frozen=True, eq=False)
class Dataset:
    """The tables of one study, its plan, and its folder.

    Its tables do not change: what is derived from them is kept. ``whole``: the dataset of which it has some
    configurations only; what is looked up by identity, such as the runs of a baseline, is found there.
    """

    plan: Plan
    folder: Path
    runs: pd.DataFrame
    configurations: pd.DataFrame
    diagnostics: pd.DataFrame
    whole: "Dataset | None" = None

    @classmethod
    def load(cls, paths: StudyPaths) -> "Dataset":
        """Read the tables of a study; raises RecordError if one is missing."""
        tables.require(TableName.STEPS, paths.dataset)
        plan = Plan.read(paths.plan_file)
        # What other programs logged says nothing of parameters that were added later.
        is_measured = not plan.ingested_from
        defaults = {name: DEFAULTS.get(name) for name, each in PARAMETERS.items() if each.always_known or is_measured}
        return cls(plan, paths.dataset, *(tables.read(table, paths.dataset, defaults) for table in TABLES_IN_MEMORY))

    def write(self) -> None:
        """Write the tables except steps."""
        for table in TABLES_IN_MEMORY:
            tables.write(table, getattr(self, table), self.folder)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """The table of steps, read on demand; it may have millions."""
        return tables.read(TableName.STEPS, self.folder)

    def select_steps(self, configuration_ids: Collection[str]) -> pd.DataFrame:
        """Return the steps of some configurations."""
        return tables.read(TableName.STEPS, self.folder, configuration_ids=configuration_ids)

    @cached_property
    def throughputs(self) -> comparison.Throughputs:
        """The throughputs of completed runs by identity, of the whole study."""
        return counted_throughputs((self.whole or self).runs, self.plan)

    @cached_property
    def measured(self) -> pd.DataFrame:
        """The configurations with a throughput, of at least one completed run."""
        return self.configurations.dropna(subset=self.throughput_column)

    @cached_property
    def completed_runs(self) -> pd.DataFrame:
        """The completed runs."""
        return run_status.select_completed(self.runs)

    @cached_property
    def counted_runs(self) -> pd.DataFrame:
        """The counted runs of the whole study."""
        return run_status.select_counted((self.whole or self).runs)

    @cached_property
    def disturbed_runs(self) -> int:
        """How many completed runs had background load."""
        return int(run_status.had_background_load(self.completed_runs).sum())

    @property
    def has_interval(self) -> bool:
        """Whether a measured configuration has completed runs enough for an interval."""
        return bool((self.measured["runs_completed"] >= statistics.MINIMUM_RUNS).any())

    @cached_property
    def reached_ci_widths(self) -> tuple[Precision, ...]:
        """Each configuration's widest interval; empty without a target precision."""
        if self.plan.target_ci is None:
            return ()
        selected = set(self.configurations["configuration_id"])
        entries = [entry for entry in self.plan.runnable if entry.configuration.configuration_id in selected]
        return tuple(filter(None, (widest(entry, self.throughputs) for entry in entries)))

    @cached_property
    def missed_ci_widths(self) -> tuple[Precision, ...]:
        """Those that are wider than the target."""
        target = self.plan.target_ci or 0.0
        return tuple(precision for precision in self.reached_ci_widths if precision.is_wider_than(target))

    @property
    def looks(self) -> int:
        """How many looks the intervals are corrected for: see ``Estimate``."""
        return corrected_looks(self.throughputs)

    @cached_property
    def serious_diagnostics(self) -> list[SeriousDiagnostic]:
        """The errors that make numbers doubtful, the most serious first."""
        return serious_diagnostics(self.configurations, (self.whole or self).runs, self.diagnostics)

    @cached_property
    def doubtful_numbers(self) -> Mapping[tuple[str, str], list[str]]:
        """The subjects of serious diagnostics, by identity and column."""
        subjects: dict[tuple[str, str], list[str]] = {}
        for diagnostic in self.serious_diagnostics:
            for column in diagnostic.columns:
                subjects.setdefault((diagnostic.configuration_id, column), []).append(diagnostic.subject)
        return subjects

    @cached_property
    def throughput_column(self) -> str:
        """The column of its ratios: ``throughput`` or ``token_throughput``."""
        return throughput_column(self.configurations, self.plan)

    def only(self, rows: pd.DataFrame) -> "Dataset":
        """Return the dataset of these configurations."""
        configuration_ids = rows["configuration_id"]
        runs = self.runs[self.runs["configuration_id"].isin(configuration_ids)]
        is_kept = (
            self.diagnostics["configuration_id"].isin(configuration_ids) | self.diagnostics["configuration_id"].isna()
        )
        diagnostics = self.diagnostics[is_kept]
        return replace(self, configurations=rows, runs=runs, diagnostics=diagnostics, whole=self.whole or self)

    @cached_property
    def configuration_rows(self) -> Mapping[str, Any]:
        """The configurations of the whole study as tuples, by identity."""
        rows = (self.whole or self).configurations
        return dict(zip(rows["configuration_id"], rows.itertuples(), strict=True))

    def select_runs(self, configuration_id: str) -> pd.DataFrame:
        """Return the runs of a configuration."""
        whole = self.whole or self
        positions = whole._run_positions.get(configuration_id, np.empty(0, np.int64))
        if len(positions) and positions[-1] - positions[0] == len(positions) - 1:
            # To copy rows out of so many columns takes ten times as long as to look at a piece of them.
            return whole.runs.iloc[positions[0] : positions[-1] + 1]
        return whole.runs.iloc[positions]

    @cached_property
    def run_counts(self) -> Mapping[Any, int]:
        """The number of runs of each configuration with runs."""
        counts: Mapping[Any, int] = (self.whole or self).runs["configuration_id"].value_counts().to_dict()
        return counts

    def select_diagnostics(self, configuration_id: str) -> pd.DataFrame:
        """Return the diagnostics about a configuration and its runs."""
        return self.diagnostics.iloc[self._diagnostic_positions.get(configuration_id, [])]

    @cached_property
    def derived(self) -> dict[tuple[Any, ...], Any]:
        """The kept results, by function and further arguments."""
        return {}

    # Comparing every row with an identity takes a table of many configurations a time that grows with their square.
    @cached_property
    def _run_positions(self) -> Mapping[Any, Integers]:
        positions: Mapping[Any, Integers] = self.runs.groupby("configuration_id").indices
        return positions

    @cached_property
    def _diagnostic_positions(self) -> Mapping[Any, Integers]:
        positions: Mapping[Any, Integers] = self.diagnostics.groupby("configuration_id").indices
        return positions


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def kept_with_dataset(
    function: Callable[Concatenate[Dataset, _Arguments], _Result],
) -> Callable[Concatenate[Dataset, _Arguments], _Result]:
    """Return the function with its results kept in the dataset."""

    @wraps(function)
    def kept(dataset: Dataset, /, *arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        key = (function, arguments, *sorted(options.items()))
        if key not in dataset.derived:
            dataset.derived[key] = function(dataset, *arguments, **options)
        result: _Result = dataset.derived[key]
        return result

    return kept


def up_to_date(paths: StudyPaths, say: Say = say_nothing) -> Dataset:
    """Return a study's dataset, collected anew unless a report is built."""
    if Plan.read(paths.plan_file).ingested_from or is_building_report() or is_dataset_current(paths):
        return Dataset.load(paths)
    return collect(paths, say)


def collect(paths: StudyPaths, say: Say = say_nothing) -> Dataset:
    """Read all evidence of a study, write its tables, return them.

    ``say`` prints every few seconds how far it is. Broken evidence becomes a diagnostic of severity error, and its run
    is not counted.

    Raises:
        RecordError: the study has no readable plan, or was not measured but ingested.

    """
    plan = Plan.read(paths.plan_file)
    if plan.ingested_from:
        command = command_line(f"ingest {shlex.quote(plan.ingested_from)} --name {plan.study}")
        raise RecordError(f"{paths.folder}: is a study of ingested logs; run `{command}` to read the logs again")
    inputs = dataset_digest(paths)
    # The steps replace the old ones when all else is computed: an interrupted command leaves no tables of two moments.
    with tables.growing_table(TableName.STEPS, paths.dataset) as steps:
        runs, diagnostics = _read_runs(plan, paths, steps, say)
        runs, round_diagnostics = study_diagnostics.leave_out_of_rounds(runs)
        batches, reports = (
            uncounted_runs.read_largest_batches(plan, paths),
            uncounted_runs.read_nccl_reports(plan, paths),
        )
        separate = {}
        for configuration_id in plan.by_id:
            separate[configuration_id] = batches.columns.get(configuration_id, {}) | reports.columns.get(
                configuration_id, {}
            )
        for name in sorted({folder.name for folder in paths.configurations.glob("*")} - plan.by_id.keys()):
            if name not in batches.configuration_ids:
                diagnostics.append(
                    Diagnostic("plan", "measured, but not in the plan: not counted", configuration_id=name)
                )
        diagnostics += [*batches.diagnostics, *reports.diagnostics, *round_diagnostics]
        dataset = dataset_from_runs(plan, paths.dataset, runs, separate, diagnostics)
    dataset.write()
    # The digest was taken before the evidence was read: what came later was perhaps not read.
    write_atomically(paths.dataset_inputs, inputs)
    return dataset


def _read_runs(
    plan: Plan, paths: StudyPaths, steps: tables.GrowingTable, say: Say
) -> tuple[pd.DataFrame, list[Diagnostic]]:
    """Read all runs and write their steps; unreadable ones become diagnostics."""
    configurations = list(map(paths.configuration, plan.by_id))
    runs = tables.GrowingFrame(TableName.RUNS)
    diagnostics = []
    for configuration in configurations:
        for folder in configuration.misnamed_runs():
            message = f"{folder}: not counted: a run's folder is named after its repetition, an integer from 1"
            diagnostics.append(Diagnostic("evidence", message, Severity.ERROR, configuration.folder.name))
    progress = Progress("reading the runs", "configuration", len(configurations), say)
    for run in read_measured_runs(configurations, steady_state.steadiness_tolerance(plan.target_ci), progress):
        diagnostics += run.diagnostics
        if run.row is not None:
            runs.add(run.row)
        if run.steps is not None:
            steps.add(run.steps)
    return runs.frame, diagnostics


def dataset_from_runs(
    plan: Plan,
    folder: Path,
    runs: pd.DataFrame,
    separate: Mapping[str, dict[str, Any]],
    diagnostics: Sequence[Diagnostic],
) -> Dataset:
    """Return the dataset of a table of runs.

    ``separate``: see ``configurations_table``. ``diagnostics``: what reading the runs revealed.
    """
    uneven = {diagnostic.configuration_id for diagnostic in diagnostics if diagnostic.subject == computation.UNEVEN}
    configurations, ratio_diagnostics = configurations_table(plan, runs, separate, uneven)
    throughputs, throughput = counted_throughputs(runs, plan), throughput_column(configurations, plan)
    doubtful = list(scaling.doubtful_speedups(configurations, plan.scaling))
    configuration_ids = {diagnostic.configuration_id for diagnostic in doubtful}
    every = [
        *diagnostics,
        *study_diagnostics.study_diagnostics(plan, runs),
        *study_diagnostics.outliers(runs, diagnostics),
        *ratio_diagnostics,
        *comparison.network_diagnostics(configurations),
        *study_diagnostics.longer_than_the_communication(configurations),
        *doubtful,
        *scaling.curve_diagnostics(configurations, throughputs, plan.scaling, throughput, configuration_ids),
        *precision_diagnostics(plan, runs, throughputs),
    ]
    table = _diagnostics_table(every)
    serious = serious_diagnostics(configurations, runs, table)
    return Dataset(plan, folder, runs, with_problems(configurations, serious), table)


def _diagnostics_table(diagnostics: Iterable[Diagnostic]) -> pd.DataFrame:
    rows = []
    for diagnostic in diagnostics:
        row = vars(diagnostic).copy()
        for name in ("message", "configuration_id"):
            # The name of a file may be no text, and no table can hold it.
            row[name] = row[name] and row[name].encode(errors="backslashreplace").decode()
        rows.append(row)
    return tables.frame_of_rows(TableName.DIAGNOSTICS, rows)


def runs_and_steps(paths: ConfigurationPaths) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one configuration's runs and steps; raises RecordError without any."""
    duplicates = DuplicateRuns()
    plan_file = paths.study.plan_file
    tolerance = steady_state.steadiness_tolerance(Plan.read(plan_file).target_ci if plan_file.exists() else None)
    rows, steps = [], []
    for run_paths in paths.runs():
        with unexpected_as_record_error(run_paths):
            run = duplicates.checked(read_run(run_paths))
            rows.append(run_row(run, window_steadiness(run, tolerance)))
            if run.ranks:
                steps.append(step_rows(run))
    if not rows:
        raise RecordError(f"{paths.folder}: no run yet")
    return tables.frame_of_rows(TableName.RUNS, rows), tables.joined(TableName.STEPS, steps).to_pandas()
