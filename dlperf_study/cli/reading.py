"""Commands that read what was measured, here or by others: report, compare, predict, paper, audit, ingest."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dlperf_study.cli.output import print_error, print_json, print_line, progress_printer
from dlperf_study.core.errors import PublishedError, RecordError, Severity, StudyFileError
from dlperf_study.core.part_search import use_parts_next_to
from dlperf_study.core.paths import StudyPaths, outputs_folder
from dlperf_study.core.wording import closest, counted, list_first, path_text, unknown_name
from dlperf_study.core.writing import write_atomically

if TYPE_CHECKING:
    from dlperf_study.logs.identification import IdentifiedLogs
    from dlperf_study.prediction.curves import Curve

#: How many runs that are refused for one reason, and how many diagnostics of one severity, are printed at most.
MAX_REJECTED, MAX_DIAGNOSTICS = 3, 10


def report(options: argparse.Namespace) -> int:
    """Rebuild the dataset and the report from the run records, and print the results."""
    paths = StudyPaths.of(_find_study_name(options))
    if options.data_only:
        _build_dataset(paths, options)
    else:
        build_report(paths, options)
    return 0


def _build_dataset(paths: StudyPaths, options: argparse.Namespace) -> None:
    from dlperf_study.dataset.dataset import collect

    collect(paths, progress_printer(options))
    if options.json:
        print_json({"study": paths.folder.name, "dataset": paths.dataset, "summary": _dataset_summary(paths)})
    else:
        print_line(f"{_dataset_summary(paths)}: {paths.dataset}")


def build_report(paths: StudyPaths, options: argparse.Namespace) -> None:
    """Build the dataset and the report, and print the results."""
    from dlperf_study.machines.supervision.notebook import start_server

    # It imports what notebooks need while this process imports what reads evidence.
    start_server()
    from dlperf_study.report.pages import build

    page = build(paths.folder.name, progress_printer(options))
    if getattr(options, "json", False):
        _write_markdown(paths, options.export_markdown)
        summary = _dataset_summary(paths)
        print_json({"study": paths.folder.name, "report": page, "dataset": paths.dataset, "summary": summary})
        return
    _print_report(paths, page, options.export_markdown)


def _print_report(paths: StudyPaths, page: Path, markdown: Path | None = None) -> None:
    """Print a report's answer, its size, and its first page's address."""
    print_answer(paths, markdown)
    print_line(_dataset_summary(paths))
    print_line(f"report: {page}")


def print_answer(paths: StudyPaths, markdown: Path | None) -> None:
    """Print a report's answer; also write it as Markdown if requested."""
    from dlperf_study.dataset.dataset import up_to_date
    from dlperf_study.report.terminal_answer import in_terminal

    print_line(in_terminal(up_to_date(paths)))
    if markdown:
        _write_markdown(paths, markdown)
        print_line(f"Markdown: {markdown}")


def _write_markdown(paths: StudyPaths, file: Path | None) -> None:
    """Write a report's answer as Markdown into a file, if given."""
    from dlperf_study.dataset.dataset import up_to_date
    from dlperf_study.report.terminal_answer import in_markdown

    if file:
        write_atomically(file, in_markdown(up_to_date(paths)))


def compare(options: argparse.Namespace) -> int:
    """Compare two sessions of a study, or two studies: what became faster or slower."""
    from dlperf_study.dataset.history import find_measurement
    from dlperf_study.dataset.measurement_comparison import compare_measurements
    from dlperf_study.findings.history import nothing_in_common
    from dlperf_study.report.say import say_one
    from dlperf_study.report.tables.history_tables import describe

    comparison = compare_measurements(find_measurement(options.before), find_measurement(options.after))
    if not comparison.has_common_configurations:
        raise RecordError(say_one(nothing_in_common(comparison)))
    print_line(describe(comparison))
    return 0


def predict(options: argparse.Namespace) -> int:
    """Predict throughput at unmeasured scales, from a study or a published source."""
    from dlperf_study.api.predictions import requested_sizes
    from dlperf_study.prediction.prediction import predict, select_predictions
    from dlperf_study.report.tables.prediction_tables import describe, predictions_content

    unit, sizes = requested_sizes(options.nodes or (), options.devices or ())
    results = predict(_curves_named(options.study), unit, sizes)
    if options.json:
        print_json({"study": options.study, "predictions": predictions_content(results)})
    else:
        print_line(describe(results))
    return int(not any(select_predictions(results)))


def _curves_named(name: str) -> "list[Curve]":
    """Return the curves of a study, a source, or ``source/series``.

    Raises RecordError, with the names there are, if nothing has this name.
    """
    from dlperf_study.audit.published import source_names
    from dlperf_study.dataset.history import find_measurement, measurement_names, paths_of_measurement
    from dlperf_study.prediction.curves import curves_of_sources
    from dlperf_study.report.tables.prediction_tables import study_curves

    source, _, label = name.partition("/")
    if paths_of_measurement(name).plan_file.exists():
        return study_curves(find_measurement(name).dataset)
    if source not in source_names():
        measured, sources = list(measurement_names()), source_names()
        raise RecordError(
            f"{name}: no session and no published source has this name; {closest(name, [*measured, *sources])}"
            f"measured: {', '.join(measured) or 'none'}; published: {', '.join(sources)}"
        )
    curves = list(curves_of_sources((source,)))
    labels = dict.fromkeys(curve.label for curve in curves)
    if label and label not in labels:
        raise PublishedError(unknown_name(f"{source} has no series", label, "series", labels))
    return [curve for curve in curves if label in ("", curve.label)]


def paper(options: argparse.Namespace) -> int:
    """Write a study's figures, tables, numbers and methods as LaTeX for a paper."""
    from dlperf_study.report.paper import write_paper

    folder = write_paper(StudyPaths.of(_find_study_name(options)))
    print_line(f"paper: {folder}; paper.tex shows how each file is used")
    return 0


def _find_study_name(options: argparse.Namespace) -> str:
    """Return the study's name from its outputs or study file.

    Raises StudyFileError if there is neither; the message has the names of both.
    """
    from dlperf_study.study.study_file import load_study

    if not options.quick and options.study in _measured_studies():
        return str(options.study)
    try:
        return load_study(options.study, options.quick).name
    except StudyFileError as error:
        if Path(options.study).name != options.study or not _measured_studies():
            raise
        raise StudyFileError(f"{error}; {outputs_folder()} has {', '.join(_measured_studies())}") from None


def _measured_studies() -> list[str]:
    """Return the names of all outputs folders that have a plan."""
    return sorted(path.parent.name for path in outputs_folder().glob("*/plan.json"))


def _dataset_summary(paths: StudyPaths) -> str:
    """Return how many runs and diagnostics a dataset has."""
    from dlperf_study.dataset import tables
    from dlperf_study.metrics.columns import TableName
    from dlperf_study.study.job import RunStatus
    from dlperf_study.study.plan import Plan

    # Not the whole dataset: it may have millions of steps.
    runs, diagnostics = tables.read(TableName.RUNS, paths.dataset), tables.read(TableName.DIAGNOSTICS, paths.dataset)
    not_fitting = int((runs["status"] == RunStatus.OUT_OF_MEMORY).sum())
    severities = diagnostics["severity"].value_counts()
    errors, warnings = counted(severities.get("error", 0), "error"), counted(severities.get("warning", 0), "warning")
    completed = int((runs["status"] == RunStatus.COMPLETED).sum())
    statuses = f"{counted(len(runs), 'run')}, {completed} completed"
    if not_fitting:
        statuses += f", {not_fitting} out of memory"
    if Plan.read(paths.plan_file).ingested_from:
        statuses += f", {len(runs) - completed} rejected"
    return f"{statuses}; {errors} and {warnings}"


def audit(options: argparse.Namespace) -> int:
    """Check a results table for internal consistency. Exits with 1 after an error or a rejected part of the file."""
    from dlperf_study.audit.audit import audit, columns_content, content, describe, describe_columns, significance
    from dlperf_study.audit.reading.files import TableFormat
    from dlperf_study.audit.reading.table_file import read_tables
    from dlperf_study.audit.result_frames import read_published_results

    tables, source = None, "published figures"
    if options.table:
        use_parts_next_to(options.table.parent)
        tables = read_tables(options.table, TableFormat(options.separator, options.decimal))
        source = path_text(options.table.name)
    check_results = audit(tables.results if tables else read_published_results(), options.all)
    if options.json:
        columns = columns_content(tables, check_results) if tables else {}
        print_json({"table": options.table, **columns, **content(check_results)})
    else:
        if tables:
            print_line(f"{describe_columns(tables, check_results)}\n")
        print_line(describe(check_results))
        print_line(f"\n{significance(check_results, source)}")
    is_wrong = any(result.count(Severity.ERROR) for result in check_results)
    is_refused = tables is not None and bool(tables.refused)
    return int((is_refused or is_wrong) and not options.exit_zero)


def ingest(options: argparse.Namespace) -> int:
    """Import logs from other training frameworks. Without --yes it prints the inferred runs, and stops."""
    from dlperf_study.api.other_results import read_identified_logs
    from dlperf_study.dataset.ingestion.like_dlperf import write_like_dlperf
    from dlperf_study.logs.identification import describe, identify_logs

    use_parts_next_to(options.folder.parent)
    logs = identify_logs(options.folder, options.name, options.yes)
    if not logs.confirmed:
        print_line(describe(logs))
        return 1
    paths = read_identified_logs(logs)
    print_line(f"{_dataset_summary(paths)}: {paths.dataset}")
    is_usable = _print_refusals(logs, paths)
    _print_diagnostics(paths)
    if options.like_dlperf:
        for line in write_like_dlperf(paths):
            print_line(line)
    if not options.data_only:
        # It loads papermill and matplotlib, which a dataset alone does not need.
        from dlperf_study.report.pages import build

        _print_report(paths, build(logs.study.name, print_line))
    return int(not is_usable)


def _print_refusals(logs: "IdentifiedLogs", paths: StudyPaths) -> bool:
    from dlperf_study.dataset import tables
    from dlperf_study.metrics.columns import TableName
    from dlperf_study.study.job import RunStatus

    runs, names_of_logs = tables.read(TableName.RUNS, paths.dataset), logs.study.first_logs
    is_refused = runs["status"] != RunStatus.COMPLETED
    for reason, refused in runs[is_refused].groupby("reason", sort=False):
        names = [names_of_logs[run.configuration_id, run.repetition] for run in refused.itertuples()]
        prefix = "" if names[0] in reason else f"{list_first(names, MAX_REJECTED)}: "
        print_line(f"rejected: {prefix}{reason}")
    if is_refused.all():
        print_error("no run can be used; the lines above have the reasons")
    return not is_refused.all()


def _print_diagnostics(paths: StudyPaths) -> None:
    """Print the errors and warnings that concern no single run."""
    from dlperf_study.dataset import tables
    from dlperf_study.metrics.columns import TableName

    diagnostics = tables.read(TableName.DIAGNOSTICS, paths.dataset)
    diagnostics = diagnostics[diagnostics["repetition"].isna()].fillna({"configuration_id": ""})
    for severity in (Severity.ERROR, Severity.WARNING):
        of_severity = diagnostics[diagnostics["severity"] == severity]
        for row in of_severity.head(MAX_DIAGNOSTICS).itertuples():
            print_line(": ".join(filter(None, (severity, row.configuration_id, row.message))))
        if len(of_severity) > MAX_DIAGNOSTICS:
            file = paths.dataset / f"{TableName.DIAGNOSTICS}.csv"
            print_line(f"{counted(len(of_severity) - MAX_DIAGNOSTICS, severity.value)} more: {file}")
