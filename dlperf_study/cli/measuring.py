"""Commands that measure, and those about what measures: plan, run, selftest, check-cluster, make-data."""

import argparse
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from dlperf_study.cli.output import print_aside, print_json, print_line, progress_printer
from dlperf_study.cli.reading import build_report, print_answer
from dlperf_study.core.errors import StudyFileError, UnsupportedError
from dlperf_study.core.paths import StudyPaths, image_datasets_folder
from dlperf_study.core.user_commands import make_command
from dlperf_study.study.grid import DENOMINATORS

if TYPE_CHECKING:
    from dlperf_study.execution.progress import Watch
    from dlperf_study.study.plan import Plan
    from dlperf_study.study.plan_description import EarlierRuns


def plan(options: argparse.Namespace) -> int:
    """Print a study's configurations, the expected time, and why some are not supported here. Starts nothing."""
    return _print_plan(options.study, options)


def _print_plan(study: str, options: argparse.Namespace, rerun: bool = False) -> int:
    """Print the plan of a study; with ``rerun`` no run is done."""
    from dlperf_study.execution.pending import batch_searches, done_and_not_fitting, unmeasured_runs
    from dlperf_study.execution.planning import make_plan
    from dlperf_study.execution.progress import earlier_run_seconds
    from dlperf_study.execution.reuse import not_counted
    from dlperf_study.study.plan_description import EarlierRuns, describe

    planned, cluster = make_plan(study, options.cluster, options.quick)
    _require_names_of_their_own(planned)
    seconds = earlier_run_seconds(planned)
    if rerun:
        earlier_runs = EarlierRuns(seconds)
    else:
        done, not_fitting = done_and_not_fitting(planned, cluster)
        earlier_runs = EarlierRuns(seconds, done, not_fitting, not_counted(planned, cluster, done))
    if options.json:
        print_json(_plan_content(planned, earlier_runs))
    else:
        searches, unmeasured = batch_searches(planned, cluster), unmeasured_runs(planned, cluster)
        print_line(describe(planned, earlier_runs, searches, unmeasured, options.all))
    return 0


def _require_names_of_their_own(planned: "Plan") -> None:
    """Reject a program's setting named like a column of the dataset."""
    settings = {name for entry in planned.entries for name in entry.configuration.own_settings}
    if not settings:
        return
    if keywords := sorted(filter(iskeyword, settings)):
        raise StudyFileError(
            f"study {planned.study}: the placeholder {{{keywords[0]}}} is a keyword of Python; rename the placeholder, "
            "and keep the name of the option before it"
        )
    from dlperf_study.metrics.columns import COLUMNS

    if taken := sorted(settings & COLUMNS.keys()):
        column = COLUMNS[taken[0]]
        raise StudyFileError(
            f"study {planned.study}: the placeholder {{{taken[0]}}} has the name of a column of the dataset, "
            f"{column.words}; rename the placeholder, and keep the name of the option before it"
        )


def _plan_content(planned: "Plan", earlier_runs: "EarlierRuns") -> dict[str, Any]:
    configurations = []
    for entry in planned.entries:
        configuration_id = entry.configuration.configuration_id
        references: dict[str, str | None] = {kind: entry.denominator(kind) for kind in DENOMINATORS}
        obstacle = entry.unsupported or earlier_runs.not_fitting.get(configuration_id)
        runs = {"repetitions": entry.configuration.repetitions, "done": earlier_runs.done.get(configuration_id, 0)}
        measured = {**runs, "earlier_run_seconds": earlier_runs.run_seconds.get(configuration_id)}
        identified = {"configuration_id": configuration_id, "why_not": obstacle}
        configurations.append({**identified, **references, **measured, "parameters": entry.parameters})
    head = {name: getattr(planned, name) for name in ("study", "cluster", "title", "scaling", "quick", "factors")}
    return {**head, "not_counted": earlier_runs.not_counted, "configurations": configurations}


def run(options: argparse.Namespace) -> int:
    """Run a study, skipping finished runs, and build its report. Exits with 1 if a run failed."""
    return run_study_file(options.study, options, options.rerun)


def run_study_file(study: str, options: argparse.Namespace, rerun: bool) -> int:
    """Run a study and build its report, as ``options`` say; return the exit code."""
    if options.dry_run:
        return _print_plan(study, options, rerun)
    code, name = _measure(study, options, rerun)
    if not options.no_report:
        _report_on(StudyPaths.of(name), options)
    return code


def _measure(study: str, options: argparse.Namespace, rerun: bool) -> tuple[int, str]:
    """Measure what is missing, or all; return exit code and name."""
    from dlperf_study.core.wording import counted
    from dlperf_study.execution.controller import run_study
    from dlperf_study.execution.planning import make_plan

    say = progress_printer(options)
    planned, cluster = make_plan(study, options.cluster, options.quick)
    _require_names_of_their_own(planned)
    configurations = counted(len(planned.runnable), "configuration")
    say(f"study {planned.study}: {configurations}, {len(planned.unsupported)} not supported here")
    for note in planned.notes:
        print_line(f"note: {note}")
    if not planned.runnable:
        raise UnsupportedError(f"nothing of study {planned.study} can run on cluster {cluster.name}; {_why(planned)}")
    # A command that waits for a lock begins anew, when it may have measured already what it would put aside.
    if rerun and not getattr(options, "has_put_aside", False):
        from dlperf_study.execution.controller import put_aside

        say(_kept(put_aside(planned, cluster), StudyPaths.of(planned.study)))
        options.has_put_aside = True
    with _watched(planned, options) as watch:
        from dlperf_study.dataset.further_rounds import reason_for_further_round
        from dlperf_study.report.labels import planned_labels

        labels = planned_labels(planned)
        result = run_study(planned, cluster, say, reason_for_further_round, watch, labels)
    if not result.measured and not result.failures:
        say(f"nothing to do: {counted(result.already_measured, 'run')}, all finished")
    for configuration_id, reason in result.out_of_memory.items():
        print_line(f"out of memory: {labels.get(configuration_id, configuration_id)}: {reason}")
    for failure in result.failures:
        print_aside(f"failed: {failure}")
    return int(bool(result.failures)), planned.study


def _kept(put_aside: StudyPaths | None, last: StudyPaths) -> str:
    """Return where earlier results are kept."""
    if put_aside is None:
        return "no earlier results to keep"
    if put_aside in last.earlier_measurements():
        return f"kept the earlier session: {put_aside.folder}"
    return f"kept what was run, but no session, because no run completed: {put_aside.folder}"


def _watched(planned: "Plan", options: argparse.Namespace) -> "AbstractContextManager[Watch]":
    """Return what follows each execution: with ``--watch``, the page."""
    from dlperf_study.execution.progress import unwatched

    if not options.watch:
        return nullcontext(unwatched)
    from dlperf_study.cli.watching import Watcher, watched

    return watched(Watcher(StudyPaths.of(planned.study), planned.title))


def _why(planned: "Plan") -> str:
    reasons = list(dict.fromkeys(str(entry.unsupported) for entry in planned.unsupported))
    if len(reasons) > 1:
        return f"{reasons[0]}; `plan` lists the other reasons"
    return reasons[0]


def _report_on(paths: StudyPaths, options: argparse.Namespace) -> None:
    """Build the report of what was measured, unless it is up to date."""
    from dlperf_study.dataset.inputs import is_report_current

    if is_report_current(paths):
        # The results take seconds if there are hundreds of configurations; a second call needs the path.
        if options.export_markdown:
            print_answer(paths, options.export_markdown)
        print_line(f"report: {paths.report_page}, up to date; `report` rebuilds it")
        return
    build_report(paths, options)
    if options.watch and paths.progress_page.exists():
        from dlperf_study.cli.watching import Watcher
        from dlperf_study.study.plan import Plan

        # The page that showed progress now links the report.
        Watcher(paths, Plan.read(paths.plan_file).title).end("The study has ended.")


def check_cluster(options: argparse.Namespace) -> int:
    """Check what a cluster needs for runs, and print how to fix what is missing."""
    from dlperf_study.execution.planning import load_cluster
    from dlperf_study.machines import launchers
    from dlperf_study.machines.check import CheckStatus, describe, queue_seconds
    from dlperf_study.training.questions import program_facts

    cluster = load_cluster(options.cluster)
    launcher = launchers.load(cluster.launcher)
    if queue := launcher.queue(cluster):
        seconds = queue_seconds(queue.start_within_seconds)
        print_aside(f"the check waits in the queue, at most {seconds:.0f} s …")
    results = list(launcher.check(cluster, program_facts()))
    missing = sum(result.status is CheckStatus.MISSING for result in results)
    if options.json:
        print_json({"cluster": cluster.name, "missing": missing, "results": list(map(asdict, results))})
    else:
        print_line(describe(results))
        print_line(f"{cluster.name}: {f'missing: {missing}' if missing else 'nothing is missing'}")
    return int(missing > 0)


def make_data(options: argparse.Namespace) -> int:
    """Make a small image dataset from photographs; with a folder, examine the images in it, such as ImageNet."""
    from dlperf_study.training.image_datasets import describe
    from dlperf_study.training.image_datasets._photographs import make_photographs

    if options.folder:
        print_line(describe(options.folder.resolve()))
        print_line(f"image dataset: {options.folder.resolve()}; name it under image_datasets in the cluster file")
        return 0
    folders = make_photographs(image_datasets_folder())
    for folder in folders:
        print_line(describe(folder))
    print_line(f"image datasets: {', '.join(folder.name for folder in folders)}; use these names in a study file")
    return 0


def selftest(options: argparse.Namespace) -> int:
    """Self-test: measure known answers on this machine, to check intervals and false positives."""
    from dlperf_study.execution.selftest_studies import (
        BITS_PER_SECOND,
        PAIRS,
        QUICK_PAIRS,
        end_measurement,
        measure_studies,
    )
    from dlperf_study.report.pages import build_selftest
    from dlperf_study.selftest.evaluation import describe, evaluate

    pairs = options.pairs or (QUICK_PAIRS if options.quick else PAIRS)
    measured = measure_studies(pairs, options.quick, options.cluster, print_line)
    is_quick = options.quick or pairs < PAIRS
    result = evaluate(measured.pairs, measured.others, measured.obstacles, BITS_PER_SECOND, is_quick)
    print_line(describe(result))
    if result.undecided:
        print_line("the same command measures the missing runs and repeats the checks")
    else:
        end_measurement()
    print_line(f"rebuild earlier reports to show this result: {make_command('report')}")
    print_line(f"self-test {'passed' if result.passed else 'not passed'}; report: {build_selftest()}")
    return int(not result.passed)
