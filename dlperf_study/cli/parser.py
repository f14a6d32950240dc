"""The commands, their options and their help."""

import argparse
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from dlperf_study import __version__
from dlperf_study.cli import completion, measuring, own_program, reading
from dlperf_study.cli.output import print_line
from dlperf_study.core.resources import DOCS
from dlperf_study.core.user_commands import COMMAND
from dlperf_study.core.wording import closest
from dlperf_study.study.configuration import MAX_STEPS
from dlperf_study.study.new_study import MEASUREMENT
from dlperf_study.study.program import LAUNCHES

Command = Callable[[argparse.Namespace], int]
_CLUSTER_NAME_HELP = "a name in clusters/ of the workspace or of this package, or the path of a cluster file"
_CLUSTER_HELP = f"cluster to run on: {_CLUSTER_NAME_HELP} (default: local)"
_STUDY_HELP = "a name in studies/ of the workspace or of this package, or the path of a study file"
_MEASURED_HELP = f"a name in the outputs, {_STUDY_HELP.removeprefix('a name ')}"
_SESSION_HELP = "a study, an earlier session of it (NAME@1), or a folder with a plan"


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line; unknown ones end the program."""
    arguments, parser = sys.argv[1:] if arguments is None else arguments, command_parser()
    try:
        options, surplus = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        command = next((argument for argument in arguments if not argument.startswith("-")), "")
        parser.error(_add_suggestion(str(error), command, completion.commands_of(parser)))
    if surplus:
        name = surplus[0].partition("=")[0]
        message, options_here = (
            f"unrecognized arguments: {' '.join(surplus)}",
            list(completion.options_of(options.parser)),
        )
        if name in options_here:
            options.parser.error(f"{message}; write options after the command")
        options.parser.error(_add_suggestion(message, name, options_here))
    return options


def _add_suggestion(message: str, name: str, choices: Iterable[str]) -> str:
    return "; ".join(filter(None, [message, closest(name, choices).rstrip()]))


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; ``command`` holds the function."""
    parser = argparse.ArgumentParser(
        prog=COMMAND,
        description="Benchmark how distributed training scales, with confidence intervals.",
        epilog=f"Documentation: {DOCS}",
        exit_on_error=False,
    )
    parser.add_argument("--version", action="version", version=f"dlperf_study {__version__}")
    commands = _Commands(parser)
    _add_measure(commands)
    _add_init(commands)
    _add_plan(commands)
    _add_run(commands)
    _add_report(commands)
    _add_paper(commands)
    _add_compare(commands)
    _add_predict(commands)
    _add_ingest(commands)
    _add_audit(commands)
    _add_selftest(commands)
    _add_check_cluster(commands)
    _add_make_data(commands)
    _add_completion(commands)
    return parser


class _Commands:
    """The commands of a parser, each with its description and examples."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._subparsers = parser.add_subparsers(required=True, metavar="command")

    def add(self, name: str, command: Command, *examples: str) -> argparse.ArgumentParser:
        """Add a command, described by its function; return its parser."""
        description = (command.__doc__ or "").strip()
        lines = [f"  {COMMAND} {name} {example}".rstrip() for example in examples]
        parser = self._subparsers.add_parser(
            name,
            help=description,
            description=description,
            epilog="\n".join(["examples:", *lines]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--traceback", action="store_true", help="print where an error comes from")
        parser.set_defaults(command=command, parser=parser)
        return parser


def _add_measure(commands: _Commands) -> None:
    parser = commands.add(
        "measure",
        own_program.measure,
        "--sweep devices_per_node=1,2 --batch-per-device 16 -- \\\n"
        "      torchrun --nproc-per-node {devices_per_node} train.py --max-steps {steps}",
        "--sweep width=64,256 -- python train.py --width {width} --max-steps {steps}",
    )
    parser.usage = f"{COMMAND} measure [options] -- COMMAND"
    command_help = "the command to benchmark; {devices_per_node}, {steps}, … are filled in for each run"
    parser.add_argument("program", nargs="+", metavar="-- COMMAND", help=command_help)
    sweep_help = "values of a placeholder, such as devices_per_node=1,2; every combination is run (default: one device)"
    parser.add_argument("--sweep", action="append", default=[], metavar="NAME=A,B", help=sweep_help)
    set_help = "one value of a placeholder, for every run (default: none)"
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=set_help)
    batch_help = "samples per step and device (default: unknown, so steps are timed and no throughput is given)"
    parser.add_argument("--batch-per-device", type=_count, default=0, metavar="N", help=batch_help)
    samples_help = "global samples per step, as an expression: '{global_batch} * {accumulate}' (default: global batch)"
    parser.add_argument("--samples-per-step", default="", metavar="EXPRESSION", help=samples_help)
    tokens_help = "global tokens per step: '{global_batch} * 1024' (default: samples are counted)"
    parser.add_argument("--tokens-per-step", default="", metavar="EXPRESSION", help=tokens_help)
    data_help = "a file or folder that git ignores and the script reads; linked into each run (default: none)"
    parser.add_argument("--data", action="append", default=[], metavar="PATH", help=data_help)
    measurement_help = {
        "warmup_steps": "steps before timing",
        "measured_steps": "steps that are timed in each run",
        "repetitions": "runs per configuration, each with new processes",
    }
    for name, default in MEASUREMENT.items():
        count_help = f"{measurement_help[name]} (default: {default})"
        parser.add_argument(f"--{name.replace('_', '-')}", type=_count, default=default, metavar="N", help=count_help)
    timing_help = "source of step times: recorder, log, or a log format (default: recorder if imported, else log)"
    parser.add_argument("--timing", default="", metavar="SOURCE", help=timing_help)
    launch_help = "where the command is started (default: by the launcher in it: per-node for torchrun)"
    parser.add_argument("--launch", default="", choices=LAUNCHES, help=launch_help)
    parser.add_argument("--name", default="", help="name of the study (default: the script's)")
    _add_cluster(parser)
    _add_output(parser)
    _add_progress_options(parser)
    parser.set_defaults(quick=False, no_report=False, export_markdown=None)


def _add_init(commands: _Commands) -> None:
    parser = commands.add("init", own_program.init, "mine")
    parser.add_argument("name", help="name of the study; the file is studies/NAME.yaml")


def _add_plan(commands: _Commands) -> None:
    parser = commands.add("plan", measuring.plan, "quickstart", "resnet50 --cluster slurm --all")
    _add_study(parser, _STUDY_HELP)
    _add_cluster(parser)
    parser.add_argument("--all", action="store_true", help="list every configuration (default: the first ones)")
    _add_json(parser)


def _add_run(commands: _Commands) -> None:
    parser = commands.add("run", measuring.run, "quickstart --quick", "resnet50 --cluster slurm --watch")
    _add_study(parser, _STUDY_HELP)
    _add_cluster(parser)
    rerun_help = "re-run every configuration; keep the previous results as NAME@1"
    parser.add_argument("--rerun", action="store_true", help=rerun_help)
    reports = parser.add_mutually_exclusive_group()
    reports.add_argument("--no-report", action="store_true", help="measure only")
    _add_markdown(reports)
    _add_progress_options(parser)


def _add_report(commands: _Commands) -> None:
    parser = commands.add("report", reading.report, "quickstart", "quickstart --quick", "quickstart --data-only --json")
    _add_study(parser, _MEASURED_HELP)
    results = parser.add_mutually_exclusive_group()
    results.add_argument("--data-only", action="store_true", help="rebuild only the dataset (CSV and Parquet)")
    _add_markdown(results)
    _add_json(parser)
    _add_wait(parser)


def _add_paper(commands: _Commands) -> None:
    _add_study(commands.add("paper", reading.paper, "quickstart"), _MEASURED_HELP)


def _add_compare(commands: _Commands) -> None:
    parser = commands.add("compare", reading.compare, "quickstart@1 quickstart")
    parser.add_argument("before", help=_SESSION_HELP)
    parser.add_argument("after", help=_SESSION_HELP)
    _add_output(parser)


def _add_predict(commands: _Commands) -> None:
    parser = commands.add(
        "predict", reading.predict, "dlperf_paddle_resnet50/fp32_b128 --nodes 8 16", "resnet50 --nodes 16 32"
    )
    source_help = f"{_SESSION_HELP}, a published source, or one of its series (SOURCE/SERIES)"
    parser.add_argument("study", help=source_help)
    scales = parser.add_mutually_exclusive_group()
    nodes_help = "node counts to predict (default: 2×, 4×, … the largest measured, up to the validated range)"
    scales.add_argument("--nodes", type=_count, nargs="+", metavar="N", help=nodes_help)
    scales.add_argument("--devices", type=_count, nargs="+", metavar="N", help="device counts in one node to predict")
    _add_json(parser)
    _add_output(parser)


def _add_ingest(commands: _Commands) -> None:
    parser = commands.add("ingest", reading.ingest, "logs/", "logs/ --name megatron --yes")
    parser.add_argument("folder", type=Path, help="a folder of logs, or an archive of one")
    parser.add_argument("--name", default="", help="name of the study (default: as in metadata.yaml, else the folder)")
    parser.add_argument("--yes", action="store_true", help="confirm the inferred metadata of the logs")
    like_dlperf_help = "also write DLPerf's JSON of results, by DLPerf's rules"
    parser.add_argument("--like-dlperf", action="store_true", help=like_dlperf_help)
    parser.add_argument("--data-only", action="store_true", help="build only the dataset (CSV and Parquet)")
    _add_wait(parser)
    _add_output(parser)


def _add_audit(commands: _Commands) -> None:
    parser = commands.add(
        "audit", reading.audit, "results.csv", "results.csv --separator ';' --decimal ,", "--published"
    )
    tables = parser.add_mutually_exclusive_group(required=True)
    tables.add_argument("table", nargs="?", type=Path, metavar="FILE", help="a CSV, Markdown or Excel file")
    tables.add_argument("--published", action="store_true", help="check the published tables of this package")
    separator_help = "field separator of a CSV file, or tab (default: a comma)"
    parser.add_argument("--separator", type=_separator, default=",", metavar="SIGN", help=separator_help)
    decimal_help = "decimal sign (default: a point, if any number has one)"
    parser.add_argument("--decimal", choices=(".", ","), default="", metavar="SIGN", help=decimal_help)
    parser.add_argument("--all", action="store_true", help="print one diagnostic per number, also if many are alike")
    zero_help = "exit with 0 also after an error or a rejected part of the file"
    parser.add_argument("--exit-zero", action="store_true", help=zero_help)
    _add_json(parser)


def _add_selftest(commands: _Commands) -> None:
    parser = commands.add("selftest", measuring.selftest, "--quick")
    parser.add_argument("--quick", action="store_true", help="3 pairs and short windows, for a first look")
    pairs_help = "number of pairs (default: 20; with --quick 3)"
    parser.add_argument("--pairs", type=partial(_count, most=99), default=0, metavar="N", help=pairs_help)
    _add_cluster(parser)
    _add_wait(parser)
    _add_output(parser)


def _add_check_cluster(commands: _Commands) -> None:
    parser = commands.add("check-cluster", measuring.check_cluster, "local", "clusters/mine.yaml --json")
    parser.add_argument("cluster", help=_CLUSTER_NAME_HELP)
    _add_json(parser)


def _add_make_data(commands: _Commands) -> None:
    parser = commands.add("make-data", measuring.make_data, "", "imagenet/train")
    images_help = "a folder of images to examine (default: make the small image dataset)"
    parser.add_argument("folder", nargs="?", type=Path, help=images_help)


def _add_completion(commands: _Commands) -> None:
    parser = commands.add("completion", print_completion, "bash >> ~/.bashrc")
    parser.add_argument("shell", choices=completion.SHELLS, help="the shell that the script is for")


def print_completion(options: argparse.Namespace) -> int:
    """Print a script that completes commands, options and studies in your shell."""
    print_line(completion.completion_script(command_parser(), options.shell))
    return 0


def _add_study(parser: argparse.ArgumentParser, study_help: str) -> None:
    """Add a study, quick mode and the outputs folder."""
    parser.add_argument("study", help=study_help)
    quick_help = "quick mode: fewer steps, one run per configuration; for a first look, not for publication"
    parser.add_argument("--quick", action="store_true", help=quick_help)
    _add_output(parser)


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cluster", default="local", help=_CLUSTER_HELP)


def _add_output(parser: argparse.ArgumentParser) -> None:
    output_help = "folder of all studies' results (default: outputs/, or $DLPERF_STUDY_OUTPUTS)"
    parser.add_argument("--output", type=Path, metavar="FOLDER", help=output_help)


def _add_progress_options(parser: argparse.ArgumentParser) -> None:
    """Add what concerns a command while it measures."""
    parser.add_argument("--dry-run", action="store_true", help="print the plan; start nothing")
    parser.set_defaults(json=False, all=False)
    parser.add_argument("--quiet", action="store_true", help="print only results, warnings and errors")
    watch_help = "live progress with confidence intervals, in the terminal and in progress.html"
    parser.add_argument("--watch", action="store_true", help=watch_help)
    _add_wait(parser)


def _add_markdown(parser: "argparse.ArgumentParser | argparse._MutuallyExclusiveGroup") -> None:
    markdown_help = "also write the results as Markdown, for a review comment (default: no file)"
    parser.add_argument("--export-markdown", type=Path, metavar="FILE", help=markdown_help)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_wait(parser: argparse.ArgumentParser) -> None:
    wait_help = "wait until the process that holds the lock ends (default: exit with an error that names it)"
    parser.add_argument("--wait", action="store_true", help=wait_help)


def _count(argument: str, most: int = MAX_STEPS) -> int:
    if not argument.isdecimal() or not 1 <= int(argument) <= most:
        raise argparse.ArgumentTypeError(f"{argument!r} is not a number from 1 to {most}")
    return int(argument)


def _separator(argument: str) -> str:
    if argument in ("tab", "\\t"):
        return "\t"
    if len(argument) != 1:
        raise argparse.ArgumentTypeError(f"{argument!r} is neither one character nor tab")
    return argument
