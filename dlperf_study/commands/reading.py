"""Commands that read what was measured: collect, report, compare, paper."""

import argparse
from pathlib import Path

from dlperf_study.commands.output import print_aside, print_json, print_line
from dlperf_study.errors import EvidenceError, StudyFileError
from dlperf_study.paths import StudyPaths, outputs_folder


def collect(options: argparse.Namespace) -> int:
    """Build the dataset from the evidence."""
    from dlperf_study.dataset.dataset import collect

    paths = StudyPaths.of(study_name_of(options))
    collect(paths)
    if options.json:
        print_json({"study": paths.folder.name, "dataset": paths.dataset})
    else:
        print_line(f"{dataset_summary(paths)}: {paths.dataset}")
    return 0


def report(options: argparse.Namespace) -> int:
    """Build the dataset and the report."""
    from dlperf_study.report.pages.pages import build

    name = study_name_of(options)
    as_json = getattr(options, "json", False)
    page = build(name, print_aside if as_json else print_line)
    paths = StudyPaths.of(name)
    if as_json:
        print_json({"study": name, "report": page, "dataset": paths.dataset, "summary": dataset_summary(paths)})
        return 0
    print_line(dataset_summary(paths))
    print_line(f"report: {page}")
    return 0


def compare(options: argparse.Namespace) -> int:
    """Print what changed between two measurements: of one study at two dates, or of two studies."""
    from dlperf_study.history.changes import compare_measurements
    from dlperf_study.history.measurements import find_measurement
    from dlperf_study.report.sentences.history_sentences import describe, nothing_in_common

    comparison = compare_measurements(find_measurement(options.before), find_measurement(options.after))
    if not comparison.has_common_configurations:
        raise EvidenceError(nothing_in_common(comparison))
    print_line(describe(comparison))
    return 0


def paper(options: argparse.Namespace) -> int:
    """Write figures, tables, numbers and methods of a study as LaTeX, with a document that shows them."""
    from dlperf_study.paper.paper import write_paper

    folder = write_paper(StudyPaths.of(study_name_of(options)))
    print_line(f"paper: {folder}; paper.tex shows all of it")
    return 0


def study_name_of(options: argparse.Namespace) -> str:
    """Return the name of the study: that of a folder of outputs with a plan, else that of a study file.

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
    """Return the names of all folders of outputs that have a plan: measured, quick and ingested studies."""
    return sorted(path.parent.name for path in outputs_folder().glob("*/plan.json"))


def dataset_summary(paths: StudyPaths) -> str:
    """Return how many runs and diagnostics a dataset has, in one line."""
    from dlperf_study.columns import TableName
    from dlperf_study.dataset import tables
    from dlperf_study.plan.plan import Plan
    from dlperf_study.study.job import Outcome
    from dlperf_study.wording import counted

    # Not the whole dataset: it may have millions of steps.
    runs, diagnostics = tables.read(TableName.RUNS, paths.dataset), tables.read(TableName.DIAGNOSTICS, paths.dataset)
    not_fitting = int((runs["outcome"] == Outcome.OUT_OF_MEMORY).sum())
    severities = diagnostics["severity"].value_counts()
    errors, warnings = counted(severities.get("error", 0), "error"), counted(severities.get("warning", 0), "warning")
    completed = int((runs["outcome"] == Outcome.COMPLETED).sum())
    refused = f" and {len(runs) - completed} refused" if Plan.read(paths.plan_file).ingested_from else ""
    memory = f", {not_fitting} found too little memory" if not_fitting else ""
    outcomes = f"{counted(len(runs), 'run')}, {completed} of them completed{memory}{refused}"
    return f"{outcomes}, {errors} and {warnings} about them"
