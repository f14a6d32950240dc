"""Writes the tables of a study from identified logs, and its plan: the configurations and their baselines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, cast

from dlperf_study.core.errors import Diagnostic, MetadataError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import closest, counted, list_first, path_text, unknown_name
from dlperf_study.dataset import tables
from dlperf_study.dataset.dataset import dataset_from_runs
from dlperf_study.dataset.ingestion.copies import DuplicateLogs, copies_of_other_configurations
from dlperf_study.dataset.ingestion.ingested_rows import run_diagnostics, run_row, step_rows
from dlperf_study.dataset.ingestion.run_reader import PrintedRun, RunToRead, check_runs, read_runs
from dlperf_study.logs.log_files import LogFile
from dlperf_study.logs.metadata import UNSTATED, Extras, LogMetadata, StudyMetadata
from dlperf_study.metrics.columns import TableName
from dlperf_study.study.configuration import shared_batch
from dlperf_study.study.grid import format_values
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.plan import Entry, Plan, varying
from dlperf_study.study.precision import COMPUTED_IN, canonical_precision

#: What printed throughputs can answer; they do not say what part of a step is communication.
SECTIONS = ("scaling", "audit", "quality", "prediction")
_NO_LOG = "no ingested log belongs to it"


def ingest(
    study: StudyMetadata,
    files: Sequence[LogFile],
    folder: Path,
    paths: StudyPaths,
    report_bytes: Callable[[int], object],
) -> Plan:
    """Read all logs, write a study's dataset, return its plan.

    ``report_bytes`` is called with the bytes of the logs of each run that was read. A run that can't be counted becomes
    a row with the reason, and a diagnostic of severity error.

    Raises:
        MetadataError: the metadata contradict themselves, name logs that are missing, or the study is a different one.

    """
    study = study.checked()
    refuse_others(paths, folder)
    tasks = _runs_to_read(study, files)
    plan = ingested_plan(study, folder)
    paths.plan_file.unlink(missing_ok=True)
    copies = copies_of_other_configurations(study, {file.relative_path: file for file in files})
    rows, diagnostics = _read_all(copies, plan, tasks, paths, report_bytes)
    unused = study.unused_files(files)
    if unused:
        remedy = "add a configuration.json to the folder of a log"
        message = f"{counted(len(unused), 'file')} not read, not in the metadata: {list_first(unused)}; {remedy}"
        diagnostics.append(Diagnostic("logs", message))
    diagnostics += _misspelt_precisions(study)
    # It may not be the batch of a device × devices.
    global_batches = {}
    for metadata in study.configurations:
        global_batches[metadata.configuration(study.name).configuration_id] = {"global_batch": metadata.global_batch}
    runs = tables.frame_of_rows(TableName.RUNS, rows)
    dataset_from_runs(plan, paths.dataset, runs, global_batches, diagnostics).write()
    plan.write(paths.plan_file)
    return plan


def _misspelt_precisions(study: StudyMetadata) -> Iterator[Diagnostic]:
    """Yield a warning for each precision that is nearly known."""
    for metadata in study.configurations:
        precision = str(metadata.parameters["precision"])
        if canonical_precision(precision) not in COMPUTED_IN and closest(precision, COMPUTED_IN):
            message = unknown_name(f"{metadata.source}: precision is", precision, "known precisions", COMPUTED_IN)
            yield Diagnostic("precision", message, configuration_id=metadata.configuration(study.name).configuration_id)


def refuse_others(paths: StudyPaths, folder: Path) -> None:
    """Raise MetadataError if the outputs are of another study."""
    ingested_from = Plan.read(paths.plan_file).ingested_from if paths.plan_file.exists() else path_text(folder)
    if paths.configurations.exists() or not ingested_from:
        raise MetadataError(
            f"{paths.folder}: is a measured study; give the ingested study a different name with --name"
        )
    if ingested_from != path_text(folder):
        remedy = "give this study a different name with --name, or delete the folder"
        raise MetadataError(f"{paths.folder}: was ingested from {ingested_from}, not from {folder}; {remedy}")


def ingested_plan(study: StudyMetadata, folder: Path) -> Plan:
    """Return the plan of identified logs, with declared baselines."""
    entries = _plan_entries(study)
    return Plan(
        study=study.name,
        cluster=UNSTATED,
        title=f"Logs ingested from {path_text(folder.name)}",
        about=f"Throughputs from third-party logs; baseline: {format_values(study.baseline) or 'none declared'}.",
        scaling=cast(Literal["weak", "strong"], study.scaling),
        sections=SECTIONS,
        factors=varying(entries, ()),
        quick=False,
        entries=entries,
        ingested_from=path_text(folder),
    )


def _plan_entries(study: StudyMetadata) -> tuple[Entry, ...]:
    """Return an entry per configuration, then the baselines without logs."""
    configurations = {metadata.key: metadata.configuration(study.name) for metadata in study.configurations}
    entries: list[Entry] = []
    without_logs: dict[str, Entry] = {}
    for metadata in study.configurations:
        declared = _declared_baseline(metadata, study)
        baseline = configurations.get(declared.key) or declared.configuration(study.name)
        if declared.key not in configurations:
            absent = replace(baseline, repetitions=0)
            without_logs[baseline.configuration_id] = Entry(
                configuration=absent,
                baseline_id=baseline.configuration_id,
                unsupported=_NO_LOG,
                unstated=declared.unstated,
            )
        configuration = metadata.configuration(study.name)
        unstated = metadata.unstated
        entries.append(Entry(configuration=configuration, baseline_id=baseline.configuration_id, unstated=unstated))
    return (*entries, *without_logs.values())


def _declared_baseline(metadata: LogMetadata, study: StudyMetadata) -> LogMetadata:
    """Return the metadata of a configuration's declared baseline."""
    values: dict[str, Scalar] = {**metadata.parameters, **study.baseline}
    if study.scaling == "strong" and "batch_per_device" not in study.baseline:
        devices = int(values["nodes"]) * int(values["devices_per_node"])
        values["batch_per_device"] = shared_batch(metadata.global_batch, devices)
    return LogMetadata(values, (), metadata.source, Extras())


def _runs_to_read(study: StudyMetadata, files: Sequence[LogFile]) -> list[RunToRead]:
    """Return the runs of all configurations; raises MetadataError without logs."""
    files_by_path = {file.relative_path: file for file in files}
    missing = [log for log in study.logs if log not in files_by_path]
    if missing:
        raise MetadataError(f"logs named in the metadata are missing: {list_first(missing)}")
    runs = []
    for metadata in study.configurations:
        for run in sorted(metadata.runs, key=lambda run: run.repetition):
            logs = [files_by_path[log] for log in run.logs]
            runs.append(RunToRead(metadata, run, tuple(log.source for log in logs), sum(log.bytes for log in logs)))
    return runs


def _read_all(
    copies: Mapping[str, str],
    plan: Plan,
    tasks: Sequence[RunToRead],
    paths: StudyPaths,
    report_bytes: Callable[[int], object],
) -> tuple[list[dict[str, Any]], list[Diagnostic]]:
    """Return the rows of all runs and their diagnostics; write their steps.

    Without ``copies``. A copy that was packed, or has other ends of lines, is known only when both logs are read, and
    the first one's steps are written by then: everything is read again, without either.
    """
    duplicates = DuplicateLogs(copies)
    rows: list[dict[str, Any]] = []
    diagnostics: list[Diagnostic] = []
    groups = groupby(read_runs(tasks), key=lambda pair: id(pair[0].metadata))
    with tables.growing_table(TableName.STEPS, paths.dataset) as steps:
        # The last entries are baselines without logs.
        for entry, (_, group) in zip(plan.entries, groups, strict=False):
            runs: list[PrintedRun] = []
            for task, run in group:
                runs.append(duplicates.checked(run, entry.configuration.configuration_id))
                report_bytes(task.bytes)
            for run in check_runs(runs, task.metadata.extras.steps_planned):
                rows.append(run_row(entry, task.metadata, run))
                diagnostics.extend(run_diagnostics(entry, run))
                if run.throughputs and not run.refusal:
                    for piece in step_rows(entry, task.metadata, run):
                        steps.add(piece)
    if duplicates.further_copies:
        return _read_all({**duplicates.further_copies, **copies}, plan, tasks, paths, lambda read: None)
    return rows, diagnostics
