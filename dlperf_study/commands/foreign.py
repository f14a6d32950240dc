"""Commands about numbers of others: audit and ingest."""

import argparse
from functools import partial
from typing import TYPE_CHECKING

from dlperf_study.commands.output import print_error, print_json, print_line
from dlperf_study.commands.reading import dataset_summary
from dlperf_study.diagnostic import Severity
from dlperf_study.paths import StudyPaths
from dlperf_study.wording import counted, first_of

if TYPE_CHECKING:
    from dlperf_study.ingest.identification import IdentifiedLogs

#: How many runs that are refused for one reason, and how many diagnostics of one severity, are printed at most.
MOST_REFUSED, MOST_DIAGNOSTICS = 3, 10


def audit(options: argparse.Namespace) -> int:
    """Recompute a table of results from its own numbers, or all published ones, and say what can't be right."""
    from dlperf_study.audit.audit import audit, content, describe
    from dlperf_study.audit.reading.description import columns_content, describe_columns
    from dlperf_study.audit.reading.files import TableFormat
    from dlperf_study.audit.result_frames import results_of_sources
    from dlperf_study.audit.table_file import read_tables

    tables = read_tables(options.table, TableFormat(options.separator, options.decimal)) if options.table else None
    check_results = audit(tables.results if tables else results_of_sources())
    if options.json:
        print_json({"table": options.table, **(columns_content(tables) if tables else {}), **content(check_results)})
    else:
        if tables:
            print_line(f"{describe_columns(tables)}\n")
        print_line(describe(check_results, options.all))
    is_wrong = any(result.count(Severity.ERROR) for result in check_results)
    return 1 if options.strict and is_wrong else 0


def ingest(options: argparse.Namespace) -> int:
    """Build the dataset and the report from logs of other programs; say first which runs they are of."""
    from dlperf_study.ingest.identification import describe, identify_logs
    from dlperf_study.ingest.like_dlperf import write_like_dlperf

    logs = identify_logs(options.folder, options.name, options.accept)
    if not logs.confirmed:
        print_line(describe(logs))
        return 1
    paths = StudyPaths.of(logs.identity.study)
    _read_logs(logs, paths)
    print_line(f"{dataset_summary(paths)}: {paths.dataset}")
    is_usable = _print_refusals(logs, paths)
    _print_diagnostics(paths)
    if options.like_dlperf:
        for line in write_like_dlperf(paths):
            print_line(line)
    if not options.no_report:
        # It loads papermill and matplotlib, which a dataset alone does not need.
        from dlperf_study.report.pages.pages import build

        print_line(f"report: {build(logs.identity.study, print_line)}")
    return 0 if is_usable else 1


def _read_logs(logs: "IdentifiedLogs", paths: StudyPaths) -> None:
    """Write the tables of a study from identified logs, and show how much of them is read."""
    from dlperf_study.ingest.ingestion import ingest, refuse_others
    from dlperf_study.supervision.locks import lock
    from dlperf_study.terminal import progress_display

    refuse_others(paths, logs.folder)
    size = sum(file.bytes for file in logs.files)
    with (
        lock(paths.ingestion_lock, f"ingesting logs into study {paths.folder.name}", "would mix their tables"),
        progress_display("bytes") as display,
    ):
        task = display.add_task("reading", total=size)
        ingest(logs.identity, logs.files, logs.folder, paths, partial(display.advance, task))


def _print_refusals(logs: "IdentifiedLogs", paths: StudyPaths) -> bool:
    """Print why runs are not counted, each reason with a log of its runs; return whether any run is."""
    from dlperf_study.columns import TableName
    from dlperf_study.dataset import tables
    from dlperf_study.study.job import Outcome

    runs, names_of_logs = tables.read(TableName.RUNS, paths.dataset), logs.identity.first_logs
    is_refused = runs["outcome"] != Outcome.COMPLETED
    for reason, refused in runs[is_refused].groupby("reason", sort=False):
        names = [names_of_logs[run.identity, run.repetition] for run in refused.itertuples()]
        prefix = "" if names[0] in reason else f"{first_of(names, MOST_REFUSED)}: "
        print_line(f"refused: {prefix}{reason}")
    if is_refused.all():
        print_error("no run can be used")
    return not is_refused.all()


def _print_diagnostics(paths: StudyPaths) -> None:
    """Print the errors and warnings that are about no single run, each with the configuration that it is about."""
    from dlperf_study.columns import TableName
    from dlperf_study.dataset import tables

    diagnostics = tables.read(TableName.DIAGNOSTICS, paths.dataset)
    diagnostics = diagnostics[diagnostics["repetition"].isna()].fillna({"identity": ""})
    for severity in (Severity.ERROR, Severity.WARNING):
        of_severity = diagnostics[diagnostics["severity"] == severity]
        for row in of_severity.head(MOST_DIAGNOSTICS).itertuples():
            print_line(f"{severity}: {f'{row.identity}: ' if row.identity else ''}{row.message}")
        if len(of_severity) > MOST_DIAGNOSTICS:
            file = paths.dataset / f"{TableName.DIAGNOSTICS}.csv"
            print_line(f"{counted(len(of_severity) - MOST_DIAGNOSTICS, severity.value)} more: {file}")
