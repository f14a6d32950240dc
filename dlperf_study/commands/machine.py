"""Commands about this machine: check, data, selftest."""

import argparse
from dataclasses import asdict

from dlperf_study.commands.output import print_aside, print_json, print_line
from dlperf_study.paths import image_sets_folder


def check(options: argparse.Namespace) -> int:
    """Try everything that runs on a cluster will need, and say what to do about what is missing."""
    from dlperf_study import launchers
    from dlperf_study.check.result import CheckStatus, describe, queue_seconds
    from dlperf_study.execution.support import load_cluster

    cluster = load_cluster(options.cluster)
    launcher = launchers.load(cluster.launcher)
    if queue := launcher.queue(cluster):
        seconds = queue_seconds(queue.start_within_seconds)
        print_aside(f"the check waits in the queue, at most {seconds:.0f} s …")
    results = list(launcher.check(cluster))
    missing = sum(result.status is CheckStatus.MISSING for result in results)
    if options.json:
        print_json({"cluster": cluster.name, "missing": missing, "results": list(map(asdict, results))})
    else:
        print_line(describe(results))
        print_line(f"{cluster.name}: " + (f"missing: {missing}" if missing else "nothing is missing"))
    return 1 if missing else 0


def data(options: argparse.Namespace) -> int:
    """Make a small set of labelled images from photographs; or examine the images in a folder, such as ImageNet."""
    from dlperf_study.image_sets.opening import describe
    from dlperf_study.image_sets.photographs import make_photographs

    if options.folder:
        print_line(describe(options.folder.resolve()))
        print_line(f"image set: {options.folder.resolve()}; name it under image_sets in the cluster file")
        return 0
    folders = make_photographs(image_sets_folder())
    for folder in folders:
        print_line(describe(folder))
    print_line(
        f"image sets: {', '.join(folder.name for folder in folders)}; every cluster file knows them by these names"
    )
    return 0


def selftest(options: argparse.Namespace) -> int:
    """Test the instrument with known answers, on this machine; pages say when it last passed."""
    from dlperf_study.execution.selftest_studies import PAIRS, QUICK_PAIRS, end_measurement, measure_studies
    from dlperf_study.execution.shaped_link import BITS_PER_SECOND
    from dlperf_study.report.pages.pages import build_selftest
    from dlperf_study.selftest.evaluation import describe, evaluate

    pairs = options.pairs or (QUICK_PAIRS if options.quick else PAIRS)
    measured = measure_studies(pairs, options.quick, options.cluster, print_line)
    is_quick = options.quick or pairs < PAIRS
    result = evaluate(measured.pairs, measured.straggler, measured.link, measured.obstacles, BITS_PER_SECOND, is_quick)
    print_line(describe(result))
    if result.undecided:
        print_line("the same command measures the missing runs, and checks again")
    else:
        end_measurement()
    print_line("a report that was built before says so when it is built again: make report")
    print_line(f"self-test {'passed' if result.passed else 'not passed'}; report: {build_selftest()}")
    return 0 if result.passed else 1
