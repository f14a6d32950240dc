"""Logs whose identity is known become the tables of a study, as measured runs do."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from dlperf_study.analysis.scaling import curve_diagnostics
from dlperf_study.columns import Table
from dlperf_study.dataset import tables
from dlperf_study.dataset.configuration_table import configurations_table
from dlperf_study.dataset.dataset import diagnostics_table
from dlperf_study.dataset.study_diagnostics import study_diagnostics
from dlperf_study.diagnostic import Diagnostic
from dlperf_study.errors import IdentityError
from dlperf_study.ingest.cross_run_checks import Seen, judged
from dlperf_study.ingest.identity import Identity, Stated
from dlperf_study.ingest.ingested_plan import ingested_plan
from dlperf_study.ingest.log_files import Found
from dlperf_study.ingest.printed_run import PrintedRun, RunToRead
from dlperf_study.ingest.read_in_parallel import read_runs
from dlperf_study.ingest.rows import diagnostics_of, run_row, steps_of
from dlperf_study.paths import StudyPaths
from dlperf_study.plan.plan import Entry, Plan
from dlperf_study.wording import counted, first_of


@dataclass(frozen=True)
class _Tables:
    """What is kept of the runs read so far; their steps are written at once."""

    steps: tables.GrowingTable
    rows: list[dict[str, Any]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def ingest(
    identity: Identity, files: Sequence[Found], folder: Path, paths: StudyPaths, read: Callable[[int], object]
) -> Plan:
    """Read the logs of every configuration and write the dataset of a study; return its plan.

    ``read`` is told how many bytes of logs were read, run by run. A run that can't be counted becomes a row with the
    reason, and a diagnostic of severity error.

    Raises:
        IdentityError: the identity contradicts itself, names logs that are not there, or the study is another one.

    """
    identity = identity.checked()
    refuse_others(paths, folder)
    tasks = list(_tasks(identity, files))
    plan = ingested_plan(identity, folder)
    paths.plan_file.unlink(missing_ok=True)
    with closing(tables.GrowingTable(Table.STEPS, paths.dataset)) as steps:
        kept = _Tables(steps)
        _read_all(plan, tasks, kept, read)
    kept.diagnostics.extend(_unnamed(identity, files))
    _write(plan, kept, paths)
    return plan


def refuse_others(paths: StudyPaths, folder: Path) -> None:
    """Raise IdentityError where the outputs lie of a study that was measured, or ingested from another folder."""
    earlier = Plan.read(paths.plan_file).ingested_from if paths.plan_file.exists() else str(folder)
    if paths.configurations.exists() or not earlier:
        raise IdentityError(f"{paths.folder}: holds a measured study of this name; give the ingested one another name")
    if earlier != str(folder):
        remedy = "give this one another name with --name, or delete that folder"
        raise IdentityError(f"{paths.folder}: holds what was ingested from {earlier}, not from {folder}; {remedy}")


def _tasks(identity: Identity, files: Sequence[Found]) -> Iterator[RunToRead]:
    known = {file.place: file for file in files}
    absent = [log for log in identity.logs if log not in known]
    if absent:
        raise IdentityError(f"logs that the identity names are not there: {first_of(absent)}")
    for stated in identity.configurations:
        for run in sorted(stated.runs, key=lambda run: run.repetition):
            logs = [known[log] for log in run.logs]
            yield RunToRead(stated, run, tuple(log.source for log in logs), sum(log.bytes for log in logs))


def _read_all(plan: Plan, tasks: Sequence[RunToRead], kept: _Tables, read: Callable[[int], object]) -> None:
    """Read one configuration after the other: its runs are judged beside each other."""
    seen, entries = Seen(), iter(plan.entries)
    for _, group in groupby(read_runs(tasks), key=lambda pair: id(pair[0].stated)):
        runs = []
        for task, run in group:
            runs.append(seen.checked(run))
            read(task.bytes)
        _add(next(entries), task.stated, runs, kept)


def _add(entry: Entry, stated: Stated, runs: Sequence[PrintedRun], kept: _Tables) -> None:
    for run in judged(runs, stated.extras.steps_planned):
        kept.rows.append(run_row(entry, stated, run))
        kept.diagnostics.extend(diagnostics_of(entry, run))
        if run.rates and not run.refusal:
            kept.steps.add(steps_of(entry, run))


def _unnamed(identity: Identity, files: Sequence[Found]) -> Iterator[Diagnostic]:
    """Yield a diagnostic where there are files that the identity names no run of."""
    others = identity.of_no_run(file.place for file in files)
    if others:
        yield Diagnostic("logs", f"{counted(len(others), 'file')} of no run, not read: {first_of(others)}")


def _write(plan: Plan, kept: _Tables, paths: StudyPaths) -> None:
    """Write what is not yet written, the plan last: without it there is no study."""
    runs = tables.frame_of_rows(Table.RUNS, kept.rows)
    configurations, lacking = configurations_table(plan, runs, {})
    found = [
        *kept.diagnostics,
        *study_diagnostics(plan, runs),
        *lacking,
        *curve_diagnostics(configurations, plan.scaling),
    ]
    tables.write(Table.RUNS, runs, paths.dataset)
    tables.write(Table.CONFIGURATIONS, configurations, paths.dataset)
    tables.write(Table.DIAGNOSTICS, diagnostics_table(found), paths.dataset)
    plan.write(paths.plan_file)
