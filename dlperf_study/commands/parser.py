"""The commands and their options."""

import argparse
from collections.abc import Callable
from pathlib import Path

from dlperf_study import __version__
from dlperf_study.commands.completion import SHELLS, completion_script
from dlperf_study.commands.foreign import audit, ingest
from dlperf_study.commands.machine import check, data, selftest
from dlperf_study.commands.measuring import plan, run, study
from dlperf_study.commands.output import print_line
from dlperf_study.commands.reading import collect, compare, paper, report

#: A command: from its options to the exit code.
Command = Callable[[argparse.Namespace], int]


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; the options it returns have the function of the command in ``command``."""
    parser = argparse.ArgumentParser(
        prog="python -m dlperf_study", description="Measure how distributed deep-learning training scales."
    )
    parser.add_argument("--version", action="version", version=f"dlperf_study {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_study_commands(commands)
    compare_parser = _add_command(commands, compare)
    name_help = "a study, an earlier measurement of one as study@1, or a folder that has a plan"
    compare_parser.add_argument("before", help=name_help)
    compare_parser.add_argument("after", help="the same")
    check_parser = _add_command(commands, check)
    check_parser.add_argument("cluster", help="a name in params/clusters, or a path")
    _add_json(check_parser)
    images_help = "a folder of images; without one, the set of photographs is made"
    _add_command(commands, data).add_argument("folder", nargs="?", type=Path, help=images_help)
    _add_selftest_options(_add_command(commands, selftest))
    _add_audit_options(_add_command(commands, audit))
    _add_ingest_options(_add_command(commands, ingest))
    shells = _add_command(commands, completion)
    shells.add_argument("shell", choices=SHELLS, help="put what it prints into a start-up file of that shell")
    return parser


def _add_study_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands that are given a study and a cluster."""
    for command in (study, plan, run, collect, report, paper):
        parser_of_command = _add_command(commands, command)
        parser_of_command.add_argument("study", help="a name in params/studies or in the outputs, or a path")
        parser_of_command.add_argument("--cluster", default="local", help="a name in params/clusters, or a path")
        quick_help = "the study's quick variant: not for publication"
        parser_of_command.add_argument("--quick", action="store_true", help=quick_help)
        if command is study:
            again_help = "measure everything again; what was measured is kept as an earlier measurement"
            parser_of_command.add_argument("--again", action="store_true", help=again_help)
        if command in (plan, collect, report):
            _add_json(parser_of_command)
        if command in (study, run, report):
            _add_wait(parser_of_command)
        if command is plan:
            parser_of_command.add_argument("--all", action="store_true", help="list every configuration")


def completion(options: argparse.Namespace) -> int:
    """Print a script that completes commands, options and names of studies in a shell."""
    print_line(completion_script(command_parser(), options.shell))
    return 0


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wait", action="store_true", help="wait while another process holds a lock, and say which")


def _add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", command: Command
) -> argparse.ArgumentParser:
    """Add a command, with the name and the description of its function, and return its parser."""
    description = (command.__doc__ or "").strip()
    parser = commands.add_parser(command.__name__, help=description, description=description)
    parser.add_argument("-v", "--verbose", action="store_true", help="print where an error comes from")
    parser.set_defaults(command=command)
    return parser


def _add_selftest_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="the short form: a few pairs, short windows")
    _add_wait(parser)
    parser.add_argument("--pairs", type=_number_of_pairs, default=0, help="without it 20, in the short form 3")
    parser.add_argument("--cluster", default="local", help="a cluster file of this machine: a name or a path")


def _number_of_pairs(argument: str) -> int:
    """Return a number of pairs; argparse shows the message of the error."""
    if not argument.isdecimal() or not 1 <= int(argument) <= 99:
        raise argparse.ArgumentTypeError(f"{argument!r} is not a number from 1 to 99")
    return int(argument)


def _add_audit_options(parser: argparse.ArgumentParser) -> None:
    table_help = "a CSV, Markdown or Excel file; without one, the published figures"
    parser.add_argument("table", nargs="?", type=Path, help=table_help)
    parser.add_argument(
        "--separator", type=_separator, default=",", help="of the fields of a CSV file; without it a comma"
    )
    decimal_help = "the sign of decimals in the table; without it a point, where any number has one"
    parser.add_argument("--decimal", choices=(".", ","), default="", help=decimal_help)
    parser.add_argument("--all", action="store_true", help="print every diagnostic, also if many are alike")
    _add_json(parser)
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
    _add_wait(parser)
