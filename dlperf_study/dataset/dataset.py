"""From the evidence of a study to its four tables."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from dlperf_study.analysis.comparison import network_diagnostics
from dlperf_study.analysis.scaling import curve_diagnostics
from dlperf_study.analysis.steady_state import TOLERANCE
from dlperf_study.columns import DATASET_TABLES, TableName
from dlperf_study.dataset import tables
from dlperf_study.dataset.configuration_table import configurations_table, throughputs_of
from dlperf_study.dataset.precision import precision_diagnostics
from dlperf_study.dataset.run_diagnostics import UNEVEN, run_diagnostics
from dlperf_study.dataset.run_table import StepColumns, run_row
from dlperf_study.dataset.study_diagnostics import study_diagnostics
from dlperf_study.dataset.traces import read_traces
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.run import DuplicateRuns, read_run
from dlperf_study.paths import ConfigurationPaths, RunPaths, StudyPaths
from dlperf_study.plan.plan import Plan


@dataclass(frozen=True)
class Dataset:
    """The tables of one study, with the columns that ``columns`` defines, and its plan."""

    plan: Plan
    runs: pd.DataFrame
    steps: pd.DataFrame
    configurations: pd.DataFrame
    diagnostics: pd.DataFrame

    @classmethod
    def load(cls, paths: StudyPaths) -> "Dataset":
        """Read the tables of a study; raises EvidenceError if one of them was not written."""
        frames = {str(table): tables.read(table, paths.dataset) for table in DATASET_TABLES}
        return cls(Plan.read(paths.plan_file), **frames)

    def write(self, paths: StudyPaths) -> None:
        """Write every table as Parquet and as CSV."""
        for table in DATASET_TABLES:
            tables.write(table, getattr(self, table), paths.dataset)


def up_to_date(paths: StudyPaths) -> Dataset:
    """Return the dataset of a study: collected from its evidence, or as its logs were ingested."""
    return Dataset.load(paths) if Plan.read(paths.plan_file).ingested_from else collect(paths)


def collect(paths: StudyPaths) -> Dataset:
    """Read all evidence of a study, write its tables, and return them.

    Broken evidence becomes a diagnostic of severity error, and its run is not counted.

    Raises:
        EvidenceError: the study has no readable plan, or was not measured but ingested.

    """
    plan = Plan.read(paths.plan_file)
    if plan.ingested_from:
        source = plan.ingested_from
        raise EvidenceError(f"{paths.folder}: was not measured but ingested; `python -m dlperf_study ingest {source}`")
    evidence = _Evidence(_tolerance(plan))
    for entry in plan.entries:
        identity = entry.configuration.identity
        evidence.read_all(identity, paths.configuration(identity))
    runs = tables.frame_of_rows(TableName.RUNS, evidence.rows)
    traces = read_traces(plan, paths, runs)
    uneven = {diagnostic.identity for diagnostic in evidence.diagnostics if diagnostic.subject == UNEVEN}
    configurations, ratio_diagnostics = configurations_table(plan, runs, traces.columns, uneven)
    throughputs = throughputs_of(runs, plan)
    diagnostics = [
        *evidence.diagnostics,
        *_unplanned_configurations(paths, plan),
        *traces.diagnostics,
        *study_diagnostics(plan, runs),
        *ratio_diagnostics,
        *network_diagnostics(configurations),
        *curve_diagnostics(configurations, throughputs, plan.scaling),
        *precision_diagnostics(plan, runs, throughputs),
    ]
    dataset = Dataset(plan, runs, evidence.steps.frame(), configurations, diagnostics_table(diagnostics))
    dataset.write(paths)
    return dataset


@dataclass(frozen=True)
class _Evidence:
    """What the tables need of the runs that were read so far; a run itself may be large.

    ``tolerance``: by how much the parts of a steady window may differ.
    """

    tolerance: float
    rows: list[dict[str, Any]] = field(default_factory=list)
    steps: StepColumns = field(default_factory=StepColumns)
    duplicates: DuplicateRuns = field(default_factory=DuplicateRuns)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def read_all(self, identity: str, paths: ConfigurationPaths) -> None:
        """Read all runs of a configuration; a folder among them that is none is a diagnostic."""
        for run_paths in paths.runs():
            self._read(identity, run_paths)
        for folder in paths.misnamed_runs():
            message = f"{folder}: not counted: the name of a run's folder is its repetition, an integer from 1"
            self.diagnostics.append(Diagnostic("evidence", message, Severity.ERROR, identity))

    def _read(self, identity: str, paths: RunPaths) -> None:
        """Read one run of a configuration; an unreadable one is a diagnostic."""
        try:
            run = self.duplicates.checked(read_run(paths))
        except EvidenceError as error:
            reason = str(error) if paths.run_file.exists() else "interrupted, it has no run.json"
            repetition = int(paths.folder.name)
            message = f"not counted: {reason}"
            self.diagnostics.append(Diagnostic("evidence", message, Severity.ERROR, identity, repetition))
            return
        self.rows.append(run_row(run, self.tolerance))
        self.steps.add(run)
        self.diagnostics.extend(run_diagnostics(run, self.tolerance))


def diagnostics_table(diagnostics: Iterable[Diagnostic]) -> pd.DataFrame:
    """Return the table of diagnostics."""
    rows = []
    for diagnostic in diagnostics:
        row = vars(diagnostic).copy()
        for name in ("message", "identity"):
            # The name of a file may be no text, and no table can hold it.
            row[name] = row[name] and row[name].encode(errors="backslashreplace").decode()
        rows.append(row)
    return tables.frame_of_rows(TableName.DIAGNOSTICS, rows)


def runs_and_steps(paths: ConfigurationPaths) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables of runs and of steps of one configuration, without those of its study.

    Whether a run is steady depends on the precision of the study; one that is measured by hand has no plan.

    Raises:
        EvidenceError: there is no run yet, or one or the plan can't be read.

    """
    duplicates, steps = DuplicateRuns(), StepColumns()
    plan_file = paths.study.plan_file
    tolerance = _tolerance(Plan.read(plan_file)) if plan_file.exists() else TOLERANCE
    rows = []
    for run_paths in paths.runs():
        run = duplicates.checked(read_run(run_paths))
        rows.append(run_row(run, tolerance))
        steps.add(run)
    if not rows:
        raise EvidenceError(f"{paths.folder}: no run yet")
    return tables.frame_of_rows(TableName.RUNS, rows), steps.frame()


def _tolerance(plan: Plan) -> float:
    """Return by how much the parts of a steady window may differ, a share of a step: the precision of the study."""
    return plan.precision or TOLERANCE


def _unplanned_configurations(paths: StudyPaths, plan: Plan) -> Iterator[Diagnostic]:
    """Yield a diagnostic for every measured configuration that is not in the plan any more."""
    planned = {entry.configuration.identity for entry in plan.entries}
    for folder in sorted(paths.configurations.glob("*")):
        if folder.name not in planned:
            yield Diagnostic("plan", "measured, but not in the plan: not counted", identity=folder.name)
