"""Commands that measure, and those about what measures: plan, run, study, selftest, check, data."""

import argparse
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from dlperf_study.cli.output import print_aside, print_json, print_line
from dlperf_study.cli.reading import print_answer, report
from dlperf_study.core.errors import StudyFileError, UnsupportedError
from dlperf_study.core.paths import StudyPaths, image_datasets_folder
from dlperf_study.core.user_commands import make_command
from dlperf_study.study.grid import DENOMINATORS

if TYPE_CHECKING:
    from dlperf_study.execution.progress import Watch
    from dlperf_study.study.plan import Plan
    from dlperf_study.study.plan_description import EarlierRuns


def plan(options: argparse.Namespace) -> int:
    """Print the configurations of a study, how long they take, and those that can't run here, each with its reason."""
    from dlperf_study.execution.pending import batch_searches, done_and_not_fitting, unmeasured_runs
    from dlperf_study.execution.planning import make_plan
    from dlperf_study.execution.progress import earlier_run_seconds
    from dlperf_study.execution.reuse import not_counted
    from dlperf_study.study.plan_description import EarlierRuns, describe

    planned, cluster = make_plan(options.study, options.cluster, options.quick)
    _require_names_of_their_own(planned)
    done, not_fitting = done_and_not_fitting(planned, cluster)
    sentences = not_counted(planned, cluster, done)
    earlier_runs = EarlierRuns(earlier_run_seconds(planned), done, not_fitting, sentences)
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
            f"study {planned.study}: the placeholder {{{keywords[0]}}} is a word of Python, and no column can have its "
            "name; rename it: the option before it keeps its name"
        )
    from dlperf_study.metrics.columns import COLUMNS

    if taken := sorted(settings & COLUMNS.keys()):
        column = COLUMNS[taken[0]]
        raise StudyFileError(
            f"study {planned.study}: the placeholder {{{taken[0]}}} has the name of a column of the dataset, "
            f"{column.words}; rename it: the option before it keeps its name"
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
    """Measure what is not measured yet."""
    code, _ = _measure(options)
    return code


def _measure(options: argparse.Namespace, again: bool = False) -> tuple[int, str]:
    """Measure what is missing, or all; return exit code and name."""
    from dlperf_study.core.wording import counted
    from dlperf_study.execution.controller import run_study
    from dlperf_study.execution.planning import make_plan

    planned, cluster = make_plan(options.study, options.cluster, options.quick)
    _require_names_of_their_own(planned)
    configurations = counted(len(planned.runnable), "configuration")
    print_line(f"study {planned.study}: {configurations}, {len(planned.unsupported)} unsupported here")
    for note in planned.notes:
        print_line(f"note: {note}")
    if not planned.runnable:
        raise UnsupportedError(f"nothing of study {planned.study} can run on cluster {cluster.name}; {_why(planned)}")
    # A command that waits for a lock begins anew, when it may have measured already what it would put aside.
    if again and not getattr(options, "has_put_aside", False):
        from dlperf_study.execution.controller import put_aside

        options.has_put_aside = True
        print_line(_kept(put_aside(planned, cluster), StudyPaths.of(planned.study)))
    with _watched(planned, options) as watch:
        from dlperf_study.dataset.further_rounds import reason_for_further_round

        result = run_study(planned, cluster, print_line, reason_for_further_round, watch)
    if not result.measured and not result.failures:
        print_line(f"nothing to do: {counted(result.already_measured, 'run')}, all measured already")
    for configuration_id, reason in result.out_of_memory.items():
        print_line(f"does not fit in memory: {configuration_id}: {reason}")
    for failure in result.failures:
        print_aside(f"failed: {failure}")
    return int(bool(result.failures)), planned.study


def _kept(put_aside: StudyPaths | None, last: StudyPaths) -> str:
    """Return where earlier results are kept."""
    if put_aside is None:
        return "nothing was measured before"
    if put_aside in last.earlier_measurements():
        return f"kept as an earlier measurement: {put_aside.folder}"
    return f"kept, but no earlier measurement, because no run is completed: {put_aside.folder}"


def _watched(planned: "Plan", options: argparse.Namespace) -> "AbstractContextManager[Watch]":
    """Return what follows each execution: with ``--watch``, the page."""
    from dlperf_study.execution.progress import unwatched

    if not getattr(options, "watch", False):
        return nullcontext(unwatched)
    from dlperf_study.cli.watching import Watcher, watched

    return watched(Watcher(StudyPaths.of(planned.study), planned.title))


def _why(planned: "Plan") -> str:
    reasons = list(dict.fromkeys(str(entry.unsupported) for entry in planned.unsupported))
    if len(reasons) > 1:
        return f"{reasons[0]}; `plan` has the other reasons"
    return reasons[0]


def study(options: argparse.Namespace) -> int:
    """Measure what is missing, then build the report, also after failed runs: these make the exit code 1."""
    from dlperf_study.dataset.inputs import is_report_current

    code, name = _measure(options, options.again)
    paths = StudyPaths.of(name)
    if is_report_current(paths):
        # The answer takes seconds where there are hundreds of configurations; who asks again needs the path.
        if markdown := getattr(options, "export_markdown", None):
            print_answer(paths, markdown)
        print_line(f"report: {paths.report_page}, built before from the same evidence; `report` builds it again")
    else:
        report(options)
        if getattr(options, "watch", False) and paths.progress_page.exists():
            from dlperf_study.cli.watching import Watcher
            from dlperf_study.study.plan import Plan

            # The page that showed what was known meanwhile now links the report.
            Watcher(paths, Plan.read(paths.plan_file).title).end("The study has ended.")
    return code


def check(options: argparse.Namespace) -> int:
    """Try everything that runs on a cluster will need, and say what to do about what is missing."""
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


def data(options: argparse.Namespace) -> int:
    """Make a small set of labelled images from photographs; or examine the images in a folder, such as ImageNet."""
    from dlperf_study.training.image_datasets import describe
    from dlperf_study.training.image_datasets._photographs import make_photographs

    if options.folder:
        print_line(describe(options.folder.resolve()))
        print_line(f"image dataset: {options.folder.resolve()}; name it under image_datasets in the cluster file")
        return 0
    folders = make_photographs(image_datasets_folder())
    for folder in folders:
        print_line(describe(folder))
    print_line(
        f"image datasets: {', '.join(folder.name for folder in folders)}; every cluster file knows them by these names"
    )
    return 0


def selftest(options: argparse.Namespace) -> int:
    """Test the instrument with known answers, on this machine; pages say when it last passed."""
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
        print_line("the same command measures the missing runs, and checks again")
    else:
        end_measurement()
    print_line(f"a report that was built before says so when it is built again: {make_command('report')}")
    print_line(f"self-test {'passed' if result.passed else 'not passed'}; report: {build_selftest()}")
    return int(not result.passed)
