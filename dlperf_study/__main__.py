"""The command line: ``python -m dlperf_study``."""

import argparse
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from dlperf_study.errors import DlperfStudyError
from dlperf_study.paths import StudyPaths

if TYPE_CHECKING:
    from dlperf_study.analysis.dataset import Dataset

INTERRUPTED = 130
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)


def main(arguments: list[str] | None = None) -> int:
    """Do one command; return the exit code: 0 done, 1 a mistake or a failed run, 130 interrupted."""
    options = _parser().parse_args(arguments)
    for number in INTERRUPTIONS:
        signal.signal(number, _interrupt)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except DlperfStudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; no training process is left. The same command continues.", file=sys.stderr)
        return INTERRUPTED


def plan(options: argparse.Namespace) -> int:
    """Print the configurations of a study, and those that can't run here, each with its reason."""
    from dlperf_study.execution.driver import make_plan
    from dlperf_study.study.describe import describe

    print(describe(make_plan(options.study, options.cluster, options.quick)[0]))
    return 0


def run(options: argparse.Namespace) -> int:
    """Measure what is not measured yet."""
    from dlperf_study.execution.driver import make_plan, run_study

    planned, cluster = make_plan(options.study, options.cluster, options.quick)
    _say(f"study {planned.study}: {len(planned.runnable)} configurations, {len(planned.unsupported)} unsupported here")
    result = run_study(planned, cluster, _say)
    if not result.measured and not result.failures:
        _say(f"nothing to do: all {result.found} runs are measured already")
    for failure in result.failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if result.failures else 0


def collect(options: argparse.Namespace) -> int:
    """Build the dataset from the evidence."""
    from dlperf_study.analysis.dataset import collect

    paths = StudyPaths.of(_name(options))
    _say(f"{_found(collect(paths))}: {paths.dataset}")
    return 0


def report(options: argparse.Namespace) -> int:
    """Build the dataset and the report."""
    from dlperf_study.analysis.dataset import Dataset
    from dlperf_study.report.pages import build

    paths = StudyPaths.of(_name(options))
    _say("building the report, about half a minute …")
    page = build(_name(options))
    _say(_found(Dataset.load(paths)))
    _say(f"report: {page}")
    return 0


def study(options: argparse.Namespace) -> int:
    """Measure what is missing, then build the report; a failed run makes the exit code 1, not the report vanish."""
    code = run(options)
    report(options)
    return code


def _found(dataset: "Dataset") -> str:
    """Return in words what a dataset holds, errors first: a number that is missing or wrong."""
    severities = dataset.complaints["severity"].value_counts()
    errors, doubts = severities.get("error", 0), severities.get("doubt", 0)
    return f"{len(dataset.runs)} runs, {errors} errors and {doubts} doubts about them"


def _name(options: argparse.Namespace) -> str:
    """Return the name of the study as its folder has it."""
    from dlperf_study.study.study_file import load_study

    return load_study(options.study, options.quick).name


def _say(text: str) -> None:
    print(text, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt, once: a second Ctrl-C must not cut short the ending of the training processes."""
    for again in INTERRUPTIONS:
        signal.signal(again, signal.SIG_IGN)
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dlperf_study", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in (study, plan, run, collect, report):
        sub = commands.add_parser(command.__name__, help=(command.__doc__ or "").strip())
        sub.add_argument("study", help="a name in params/studies, or a path")
        sub.add_argument("--cluster", default="local", help="a name in params/clusters, or a path")
        sub.add_argument("--quick", action="store_true", help="the study's quick variant: not for publication")
        sub.set_defaults(command=command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
