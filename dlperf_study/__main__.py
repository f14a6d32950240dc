"""The command line: ``python -m dlperf_study``."""

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dlperf_study import __version__
from dlperf_study.diagnostic import Severity
from dlperf_study.errors import DlperfStudyError, UnsupportedError
from dlperf_study.interruption import interrupt_once
from dlperf_study.paths import StudyPaths, image_sets_folder, outputs_folder
from dlperf_study.writing import full_disk, naming

#: A command: from its options to the exit code.
_Command = Callable[[argparse.Namespace], int]

INTERRUPTED = 130
#: What messages call the standard output.
STANDARD_OUTPUT = Path("standard output")


def main(arguments: list[str] | None = None) -> int:
    """Do one command; return the exit code: 0 done, 1 an error or a failed run, 130 interrupted."""
    options = _parser().parse_args(arguments)
    command: _Command = options.command
    try:
        interrupt_once()
        return command(options)
    except DlperfStudyError as error:
        return _fail(str(error))
    except OSError as error:
        if error.filename == str(STANDARD_OUTPUT):
            # Otherwise Python would try to write the rest when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail(f"{error.filename or 'a file'}: {error.strerror or error}")
    except KeyboardInterrupt:
        print(f"interrupted{_CONTINUATION.get(command, '. The same command starts over.')}", file=sys.stderr)
        return INTERRUPTED


def plan(options: argparse.Namespace) -> int:
    """Print the configurations of a study, how long they take, and those that can't run here, each with its reason."""
    from dlperf_study.execution.batch_trials import batch_searches
    from dlperf_study.execution.driver import make_plan
    from dlperf_study.execution.pending import out_of_memory_reasons
    from dlperf_study.execution.progress import earlier_run_seconds
    from dlperf_study.plan.description import describe

    planned, cluster = make_plan(options.study, options.cluster, options.quick)
    not_fitting = out_of_memory_reasons(planned, cluster)
    searches = batch_searches(planned, cluster)
    _print(describe(planned, earlier_run_seconds(planned), not_fitting, searches, options.all))
    return 0


def run(options: argparse.Namespace) -> int:
    """Measure what is not measured yet."""
    code, _ = _measure(options)
    return code


def _measure(options: argparse.Namespace) -> tuple[int, str]:
    """Measure what is not measured yet; return the exit code, and the name of the study."""
    from dlperf_study.execution.driver import make_plan, run_study
    from dlperf_study.wording import counted

    planned, cluster = make_plan(options.study, options.cluster, options.quick)
    configurations = counted(len(planned.runnable), "configuration")
    _print(f"study {planned.study}: {configurations}, {len(planned.unsupported)} unsupported here")
    if planned.why_not_gpu:
        _print(f"note: {planned.why_not_gpu}")
    if not planned.runnable:
        raise UnsupportedError(f"nothing of study {planned.study} can run on cluster {cluster.name}; `plan` says why")
    if planned.precision is None:
        result = run_study(planned, cluster, _print)
    else:
        from dlperf_study.dataset.precision import configurations_too_wide

        result = run_study(planned, cluster, _print, configurations_too_wide)
    if not result.measured and not result.failures:
        _print(f"nothing to do: {counted(result.already_measured, 'run')}, all measured already")
    for identity, reason in result.out_of_memory.items():
        _print(f"does not fit in memory: {identity}: {reason}")
    for failure in result.failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if result.failures else 0, planned.study


def collect(options: argparse.Namespace) -> int:
    """Build the dataset from the evidence."""
    from dlperf_study.dataset.dataset import collect

    paths = StudyPaths.of(_study_name(options))
    collect(paths)
    _print(f"{_dataset_summary(paths)}: {paths.dataset}")
    return 0


def report(options: argparse.Namespace) -> int:
    """Build the dataset and the report."""
    name = _study_name(options)
    page = _build_report(name)
    _print(_dataset_summary(StudyPaths.of(name)))
    _print(f"report: {page}")
    return 0


def study(options: argparse.Namespace) -> int:
    """Measure what is missing, then build the report, also after failed runs: these make the exit code 1."""
    from dlperf_study.report.report_inputs import is_current

    if options.again:
        _put_aside(options)
    code, name = _measure(options)
    paths = StudyPaths.of(name)
    if is_current(paths):
        _print(f"report: {paths.report_page}, built before from the same evidence; `report` builds it again")
    else:
        report(options)
    return code


def compare(options: argparse.Namespace) -> int:
    """Print what changed between two measurements: of one study at two dates, or of two studies."""
    from dlperf_study.history.changes import compare_measurements
    from dlperf_study.history.measurements import find_measurement
    from dlperf_study.report.sentences.history_sentences import describe

    _print(describe(compare_measurements(find_measurement(options.before), find_measurement(options.after))))
    return 0


def paper(options: argparse.Namespace) -> int:
    """Write figures, tables, numbers and methods of a study as LaTeX, with a document that shows them."""
    from dlperf_study.paper.paper import write_paper

    folder = write_paper(StudyPaths.of(_study_name(options)))
    _print(f"paper: {folder}; paper.tex shows all of it")
    return 0


def check(options: argparse.Namespace) -> int:
    """Try everything that runs on a cluster will need, and say what to do about what is missing."""
    from dlperf_study import launchers
    from dlperf_study.check.result import CheckStatus, describe, queue_seconds
    from dlperf_study.execution.support import load_cluster

    cluster = load_cluster(options.cluster)
    launcher = launchers.load(cluster.launcher)
    if queue := launcher.queue(cluster):
        seconds = queue_seconds(queue.start_within_seconds)
        _print(f"the check waits in the queue, at most {seconds:.0f} s …")
    results = list(launcher.check(cluster))
    _print(describe(results))
    missing = sum(result.status is CheckStatus.MISSING for result in results)
    _print(f"{cluster.name}: " + (f"missing: {missing}" if missing else "nothing is missing"))
    return 1 if missing else 0


def data(options: argparse.Namespace) -> int:
    """Make a small set of labelled images from photographs; or examine the images in a folder, such as ImageNet."""
    from dlperf_study.image_sets.opening import describe
    from dlperf_study.image_sets.photographs import make_photographs

    if options.folder:
        _print(describe(options.folder.resolve()))
        _print(f"image set: {options.folder.resolve()}; name it under image_sets in the cluster file")
        return 0
    folders = make_photographs(image_sets_folder())
    for folder in folders:
        _print(describe(folder))
    _print(f"image sets: {', '.join(folder.name for folder in folders)}; every cluster file knows them by these names")
    return 0


def audit(options: argparse.Namespace) -> int:
    """Recompute a table of results from its own numbers, or all published ones, and say what can't be right."""
    from dlperf_study.audit.audit import audit, describe
    from dlperf_study.audit.reading.description import describe_columns
    from dlperf_study.audit.reading.files import TableFormat
    from dlperf_study.audit.result_frames import results_of_sources
    from dlperf_study.audit.table_file import read_tables

    if options.table:
        tables = read_tables(options.table, TableFormat(options.separator, options.decimal))
        _print(f"{describe_columns(tables)}\n")
        results = tables.results
    else:
        results = results_of_sources()
    check_results = audit(results)
    _print(describe(check_results, options.all))
    is_wrong = any(result.count(Severity.ERROR) for result in check_results)
    return 1 if options.strict and is_wrong else 0


def ingest(options: argparse.Namespace) -> int:
    """Build the dataset and the report from logs of other programs; say first which runs they are of."""
    from dlperf_study.ingest.identification import describe, identify_logs
    from dlperf_study.ingest.ingestion import ingest, refuse_others
    from dlperf_study.ingest.like_dlperf import write_like_dlperf
    from dlperf_study.supervision.locks import lock
    from dlperf_study.terminal import progress_display

    logs = identify_logs(options.folder, options.name, options.accept)
    if not logs.confirmed:
        _print(describe(logs))
        return 1
    paths = StudyPaths.of(logs.identity.study)
    refuse_others(paths, logs.folder)
    size = sum(file.bytes for file in logs.files)
    with (
        lock(paths.ingestion_lock, f"ingesting logs into study {paths.folder.name}", "would mix their tables"),
        progress_display("bytes") as display,
    ):
        task = display.add_task("reading", total=size)
        ingest(logs.identity, logs.files, logs.folder, paths, partial(display.advance, task))
    _print(f"{_dataset_summary(paths)}: {paths.dataset}")
    if options.like_dlperf:
        for line in write_like_dlperf(paths):
            _print(line)
    if not options.no_report:
        _print(f"report: {_build_report(logs.identity.study)}")
    return 0


def selftest(options: argparse.Namespace) -> int:
    """Test the instrument with known answers, on this machine; pages say when it last passed."""
    from dlperf_study.execution.selftest_studies import PAIRS, QUICK_PAIRS, end_measurement, measure_studies
    from dlperf_study.execution.shaped_link import BITS_PER_SECOND
    from dlperf_study.report.pages.pages import build_selftest
    from dlperf_study.selftest.evaluation import describe, evaluate

    pairs = options.pairs or (QUICK_PAIRS if options.quick else PAIRS)
    measured = measure_studies(pairs, options.quick, options.cluster, _print)
    is_quick = options.quick or pairs < PAIRS
    result = evaluate(measured.pairs, measured.straggler, measured.link, measured.obstacles, BITS_PER_SECOND, is_quick)
    _print(describe(result))
    if result.undecided:
        _print("the same command measures the missing runs, and checks again")
    else:
        end_measurement()
    _print("a report that was built before says so when it is built again: make report")
    _print(f"self-test {'passed' if result.passed else 'not passed'}; report: {build_selftest()}")
    return 0 if result.passed else 1


def _put_aside(options: argparse.Namespace) -> None:
    """Keep what was measured of a study as an earlier measurement."""
    from dlperf_study.execution.anew import put_aside
    from dlperf_study.execution.driver import make_plan

    earlier = put_aside(*make_plan(options.study, options.cluster, options.quick))
    _print(f"kept as an earlier measurement: {earlier.folder}" if earlier else "nothing was measured before")


def _build_report(study_name: str) -> Path:
    """Build the report of a study that was measured or ingested; return its first page."""
    from dlperf_study.report.pages.pages import build

    return build(study_name, _print)


def _dataset_summary(paths: StudyPaths) -> str:
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


#: The message for commands that continue where they were interrupted.
_CONTINUATION: dict[_Command, str] = dict.fromkeys(
    (study, run, selftest), "; no training process is left. The same command continues."
)


def _study_name(options: argparse.Namespace) -> str:
    """Return the name of the study, which is that of its folder; one of ingested logs has no study file."""
    from dlperf_study.ingest.ingestion import is_ingested
    from dlperf_study.study.study_file import load_study

    if not options.quick and is_ingested(options.study):
        return str(options.study)
    return load_study(options.study, options.quick).name


def _number_of_pairs(argument: str) -> int:
    """Return a number of pairs; argparse shows the message of the error."""
    if not argument.isdecimal() or not 1 <= int(argument) <= 99:
        raise argparse.ArgumentTypeError(f"{argument!r} is not a number from 1 to 99")
    return int(argument)


def _print(text: str) -> None:
    with naming(STANDARD_OUTPUT):
        print(text, flush=True)


def _fail(message: str) -> int:
    """Print an error, and whether the disk that commands write to is full; return the exit code."""
    print("; ".join(filter(None, [f"error: {message}", full_disk(outputs_folder())])), file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dlperf_study", description="Measure how distributed deep-learning training scales."
    )
    parser.add_argument("--version", action="version", version=f"dlperf_study {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in (study, plan, run, collect, report, paper):
        command_parser = _add_command(commands, command)
        _add_study_options(command_parser)
        if command is study:
            again_help = "measure everything again; what was measured is kept as an earlier measurement"
            command_parser.add_argument("--again", action="store_true", help=again_help)
        if command is plan:
            command_parser.add_argument("--all", action="store_true", help="list every configuration")
    _add_compare_options(_add_command(commands, compare))
    _add_command(commands, check).add_argument("cluster", help="a name in params/clusters, or a path")
    images_help = "a folder of images; without one, the set of photographs is made"
    _add_command(commands, data).add_argument("folder", nargs="?", type=Path, help=images_help)
    _add_selftest_options(_add_command(commands, selftest))
    _add_audit_options(_add_command(commands, audit))
    _add_ingest_options(_add_command(commands, ingest))
    return parser


def _add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", command: _Command
) -> argparse.ArgumentParser:
    """Add a command, with the name and the description of its function, and return its parser."""
    parser = commands.add_parser(command.__name__, help=(command.__doc__ or "").strip())
    parser.set_defaults(command=command)
    return parser


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", help="a name in params/studies, or a path")
    parser.add_argument("--cluster", default="local", help="a name in params/clusters, or a path")
    parser.add_argument("--quick", action="store_true", help="the study's quick variant: not for publication")


def _add_compare_options(parser: argparse.ArgumentParser) -> None:
    name_help = "a study, an earlier measurement of one as study@1, or a folder that has a plan"
    parser.add_argument("before", help=name_help)
    parser.add_argument("after", help="the same")


def _add_selftest_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="the short form: a few pairs, short windows")
    parser.add_argument("--pairs", type=_number_of_pairs, default=0, help="without it 20, in the short form 3")
    parser.add_argument("--cluster", default="local", help="a cluster file of this machine: a name or a path")


def _add_audit_options(parser: argparse.ArgumentParser) -> None:
    table_help = "a CSV, Markdown or Excel file; without one, the published figures"
    parser.add_argument("table", nargs="?", type=Path, help=table_help)
    parser.add_argument(
        "--separator", type=_separator, default=",", help="of the fields of a CSV file; without it a comma"
    )
    decimal_help = "the sign of decimals in the table; without it a point, where any number has one"
    parser.add_argument("--decimal", choices=(".", ","), default="", help=decimal_help)
    parser.add_argument("--all", action="store_true", help="print every diagnostic, also if many are alike")
    parser.add_argument("--strict", action="store_true", help="end with exit code 1 if there is an error")


def _separator(argument: str) -> str:
    """Return the separator of fields; argparse shows the message of the error."""
    if argument in ("tab", "\\t"):
        return "\t"
    if len(argument) != 1:
        raise argparse.ArgumentTypeError(f"{argument!r} is no single character, nor tab")
    return argument


def _add_ingest_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="a folder of logs, or an archive")
    parser.add_argument("--name", default="", help="of the study; without one, as the identity file or the folder says")
    parser.add_argument("--accept", action="store_true", help="confirm the inferred metadata of the logs")
    like_dlperf_help = "write DLPerf's JSON of results too, by the rules of DLPerf"
    parser.add_argument("--like-dlperf", action="store_true", help=like_dlperf_help)
    parser.add_argument("--no-report", action="store_true", help="build the dataset only")


if __name__ == "__main__":
    sys.exit(main())
