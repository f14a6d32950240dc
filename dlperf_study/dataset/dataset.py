"""From a study's evidence to its four tables."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from dlperf_study.analysis.comparison import network_diagnostics
from dlperf_study.analysis.scaling import curve_diagnostics
from dlperf_study.columns import DATASET_TABLES, Table, columns_of
from dlperf_study.dataset import tables
from dlperf_study.dataset.configuration_table import configurations_table
from dlperf_study.dataset.run_diagnostics import UNEVEN, run_diagnostics
from dlperf_study.dataset.run_table import StepColumns, run_row
from dlperf_study.dataset.study_diagnostics import study_diagnostics
from dlperf_study.dataset.traces import read_traces
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.run import DuplicateRuns, read_run
from dlperf_study.paths import ConfigurationPaths, RunPaths, StudyPaths
from dlperf_study.plan.plan import Plan

# The runs of one configuration, read by themselves: what its own notebook shows.


def runs_and_steps(paths: ConfigurationPaths) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables of runs and of steps of one configuration.

    Raises:
        EvidenceError: there is no run yet, or one can't be read.

    """
    duplicates = DuplicateRuns()
    runs = [duplicates.checked(read_run(run)) for run in paths.runs()]
    if not runs:
        raise EvidenceError(f"{paths.folder}: no run yet")
    steps = StepColumns()
    for run in runs:
        steps.add(run)
    return tables.frame_of_rows(Table.RUNS, [run_row(run) for run in runs]), steps.frame()


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
        """Read the tables that ``collect`` wrote; raises EvidenceError when it hasn't."""
        return cls(Plan.read(paths.plan_file), **{table: tables.read(table, paths.dataset) for table in DATASET_TABLES})

    def write(self, paths: StudyPaths) -> None:
        """Write every table as Parquet and as CSV."""
        for table in DATASET_TABLES:
            tables.write(table, getattr(self, table), paths.dataset)


def up_to_date(paths: StudyPaths) -> Dataset:
    """Return the dataset of a study: collected afresh from evidence, or as its logs were ingested."""
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
    reading = _read(paths, plan)
    runs = tables.frame_of_rows(Table.RUNS, reading.rows)
    traces = read_traces(plan, paths, runs)
    uneven = {diagnostic.identity for diagnostic in reading.diagnostics if diagnostic.subject == UNEVEN}
    configurations, partner_diagnostics = configurations_table(plan, runs, traces.columns, uneven)
    diagnostics = [
        *reading.diagnostics,
        *traces.diagnostics,
        *study_diagnostics(plan, runs),
        *partner_diagnostics,
        *network_diagnostics(configurations),
        *curve_diagnostics(configurations, plan.scaling),
    ]
    dataset = Dataset(plan, runs, reading.steps.frame(), configurations, diagnostics_table(diagnostics))
    dataset.write(paths)
    return dataset


@dataclass(frozen=True)
class _Reading:
    """What is kept of the runs read so far."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    steps: StepColumns = field(default_factory=StepColumns)
    duplicates: DuplicateRuns = field(default_factory=DuplicateRuns)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def _read(paths: StudyPaths, plan: Plan) -> _Reading:
    """Read one run after the other, in the order of the plan."""
    reading = _Reading()
    for identity in (entry.configuration.identity for entry in plan.entries):
        for run_paths in paths.configuration(identity).runs():
            _read_run(identity, run_paths, reading)
    reading.diagnostics.extend(_unplanned(paths, plan))
    return reading


def _read_run(identity: str, paths: RunPaths, reading: _Reading) -> None:
    try:
        run = reading.duplicates.checked(read_run(paths))
    except EvidenceError as error:
        reading.diagnostics.append(_unreadable(identity, paths, error))
        return
    reading.rows.append(run_row(run))
    reading.steps.add(run)
    reading.diagnostics.extend(run_diagnostics(run))


def _unreadable(identity: str, paths: RunPaths, error: EvidenceError) -> Diagnostic:
    interrupted = "interrupted, it has no run.json" if not paths.run_file.exists() else str(error)
    return Diagnostic("evidence", f"not counted: {interrupted}", Severity.ERROR, identity, int(paths.folder.name))


def _unplanned(paths: StudyPaths, plan: Plan) -> Iterator[Diagnostic]:
    """Yield a diagnostic for every measured configuration that the plan no longer knows."""
    planned = {entry.configuration.identity for entry in plan.entries}
    for folder in sorted(paths.configurations.glob("*")):
        if folder.name not in planned:
            yield Diagnostic("plan", "measured, but not in the plan: not counted", identity=folder.name)


def diagnostics_table(diagnostics: Iterable[Diagnostic]) -> pd.DataFrame:
    """Return the table of diagnostics."""
    names = [column.name for column in columns_of(Table.DIAGNOSTICS)]
    rows = [{name: getattr(diagnostic, name) for name in names} for diagnostic in diagnostics]
    return tables.frame_of_rows(Table.DIAGNOSTICS, rows)
