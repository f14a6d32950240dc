"""The commands and their options, and a script that completes them in a shell."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from dlperf_study import __version__
from dlperf_study.cli.measuring import check, data, plan, run, selftest, study
from dlperf_study.cli.output import print_line
from dlperf_study.cli.own_program import measure, new
from dlperf_study.cli.reading import audit, collect, compare, ingest, paper, predict, report
from dlperf_study.core.resources import DOCS, FOLDERS, named_files
from dlperf_study.core.user_commands import COMMAND, command_line
from dlperf_study.core.wording import closest
from dlperf_study.study.configuration import MAX_STEPS, SCALE
from dlperf_study.study.new_study import MEASUREMENT
from dlperf_study.study.program import DERIVED_PLACEHOLDERS, STARTS

SHELLS = ("bash", "zsh")
#: It holds all words, so a press of Tab starts no Python: importing this package takes longer than a person waits.
_FUNCTION = """{prefix}_dlperf_study() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} command word brace="{{" names="{placeholders}" last
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case $word in {commands}) command=$word; break;; esac
    done
    # In the command that is measured: a placeholder, also one that --over or --fixed has named.
    if [[ $command == measure && $current == *"$brace"* && ${{current##*"$brace"}} != *"}}"* ]]; then
        for word in "${{COMP_WORDS[@]}}"; do
            case $last in --over|--fixed) names+=" ${{word%%=*}}";; esac
            last=$word
        done
        COMPREPLY=($(compgen -P "${{current%"$brace"*}}$brace" -S "}}" -W "$names" -- "${{current##*"$brace"}}"))
        compopt +o filenames -o nospace 2>/dev/null
        return
    fi
    case $command in
{cases}
        *) COMPREPLY=($(compgen -W "{words}" -- "$current"));;
    esac
    [[ $current == -* || -z $command ]] || COMPREPLY+=($(compgen -f -- "$current"))
    # Values follow at once.
    [[ ${{COMPREPLY[0]}} != *= ]] || compopt -o nospace 2>/dev/null
}}
complete -o filenames -F _dlperf_study {script}"""
#: zsh runs completions that were written for bash.
_PREFIXES = {"bash": "", "zsh": "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"}


#: The options that give a placeholder values: those names are completed that every program may have.
_OF_PLACEHOLDERS = ("over", "fixed")


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script for a shell."""
    parsers = _commands(parser)
    cases = []
    for name, command_parser in parsers.items():
        completions = " ".join(_completions(command_parser))
        cases.append(f'        {name}) COMPREPLY=($(compgen -W "{completions}" -- "$current"));;')
    # What every command may have in braces; of several nodes, what the first one has.
    placeholders = [name for name in SCALE if name != "parameter_servers"]
    placeholders += [*DERIVED_PLACEHOLDERS, "host_0", "port_0", "interface_0", "devices_0", "run"]
    return _FUNCTION.format(
        prefix=_PREFIXES[shell],
        commands="|".join(parsers),
        cases="\n".join(cases),
        words=" ".join([*parsers, *_options(parser)]),
        script=COMMAND,
        placeholders=" ".join(placeholders),
    )


def _completions(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options of a command, and its arguments' names."""
    yield from _options(parser)
    for action in parser._actions:
        if action.dest in FOLDERS:
            yield from sorted(named_files(action.dest))
        elif action.dest in _OF_PLACEHOLDERS:
            yield from (f"{name}=" for name in SCALE if name != "parameter_servers")
        elif action.choices:
            yield from filter(None, map(str, action.choices))


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    [subparsers] = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(subparsers.choices)


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line; unknown ones end the program."""
    arguments, parser = sys.argv[1:] if arguments is None else arguments, command_parser()
    try:
        options, surplus = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        command = next((argument for argument in arguments if not argument.startswith("-")), "")
        parser.error(_add_suggestion(str(error), command, _commands(parser)))
    if surplus:
        name = surplus[0].partition("=")[0]
        message = f"unrecognized arguments: {' '.join(surplus)}"
        options.parser.error(_add_suggestion(message, name, _options(options.parser)))
    return options


def _add_suggestion(message: str, name: str, choices: Iterable[str]) -> str:
    return "; ".join(filter(None, [message, closest(name, choices).rstrip()]))


_CLUSTER_HELP = "a name in clusters/ or of this package, or a path"
_STUDY_HELP = "a name in studies/ or of this package, or the path of a study file"
_MEASURED_HELP = "a name in the outputs, in studies/ or of this package, or the path of a study file"
Command = Callable[[argparse.Namespace], int]


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; ``command`` holds the function."""
    parser = argparse.ArgumentParser(
        prog=command_line(),
        description="Measure how distributed deep-learning training scales.",
        epilog=f"The pages that messages name are in {DOCS}.",
        exit_on_error=False,
    )
    parser.add_argument("--version", action="version", version=f"dlperf_study {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_study_commands(commands)
    _add_program_commands(commands)
    compare_parser = _add_command(commands, compare)
    name_help = "a study, an earlier measurement of one as study@1, or a folder that has a plan"
    compare_parser.add_argument("before", help=name_help)
    compare_parser.add_argument("after", help="the same")
    _add_prediction_options(_add_command(commands, predict))
    check_parser = _add_command(commands, check)
    check_parser.add_argument("cluster", help=_CLUSTER_HELP)
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
        reads_outputs = command in (collect, report, paper)
        parser_of_command.add_argument("study", help=_MEASURED_HELP if reads_outputs else _STUDY_HELP)
        parser_of_command.add_argument("--cluster", default="local", help=_CLUSTER_HELP)
        quick_help = "the study in quick mode: not for publication"
        parser_of_command.add_argument("--quick", action="store_true", help=quick_help)
        if command is study:
            again_help = "measure everything again; what was measured is kept as an earlier measurement"
            parser_of_command.add_argument("--again", action="store_true", help=again_help)
        if command in (plan, collect, report):
            _add_json(parser_of_command)
        if command in (study, run, report):
            _add_wait(parser_of_command)
        if command in (study, run):
            _add_watch(parser_of_command)
        if command in (study, report):
            markdown_help = "write the answer into a file as Markdown, for a comment in a review"
            parser_of_command.add_argument("--export-markdown", type=Path, metavar="FILE", help=markdown_help)
        if command is plan:
            parser_of_command.add_argument("--all", action="store_true", help="list every configuration")


def _add_prediction_options(parser: argparse.ArgumentParser) -> None:
    study_help = "a study, an earlier measurement of one as study@1, a published source, or one series as source/series"
    parser.add_argument("study", help=study_help)
    sizes = parser.add_mutually_exclusive_group()
    nodes_help = "numbers of nodes (default: 2 times the largest measured one, and further doublings with an interval)"
    sizes.add_argument("--nodes", type=_count, nargs="+", metavar="N", help=nodes_help)
    sizes.add_argument("--devices", type=_count, nargs="+", metavar="N", help="numbers of devices in one node")
    _add_json(parser)


def _add_program_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands that begin with a program of the user."""
    _add_command(commands, new).add_argument("name", help="of the study: a file of this name in studies/")
    parser = _add_command(commands, measure)
    parser.add_argument(
        "program", nargs="+", metavar="-- COMMAND", help="with placeholders: {devices_per_node}, {steps}"
    )
    over_help = "values of a placeholder: devices_per_node=1,2"
    parser.add_argument("--over", action="append", required=True, metavar="NAME=A,B", help=over_help)
    parser.add_argument("--fixed", action="append", default=[], metavar="NAME=A", help="one value of a placeholder")
    parser.add_argument(
        "--batch-per-device", type=_count, default=0, metavar="N", help="samples of a step of one device"
    )
    parser.add_argument("--samples-per-step", default="", metavar="N", help="of all processes: 64, {global_batch} * 4")
    parser.add_argument("--tokens-per-step", default="", metavar="N", help="of all processes: {global_batch} * 1024")
    data_help = "a file or folder that git ignores and the program reads: linked into each copy of its files"
    parser.add_argument("--data", action="append", default=[], metavar="PATH", help=data_help)
    for name, default in MEASUREMENT.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=_count, default=default, metavar="N", help=f"{default}")
    parser.add_argument("--steps", default="", help="where step times come from: recorder, log, or a format of logs")
    parser.add_argument("--start", default="", choices=STARTS, help="where the command is started")
    parser.add_argument("--name", default="", help="of the study; without one, that of the script")
    parser.add_argument("--cluster", default="local", help=_CLUSTER_HELP)
    _add_wait(parser)
    _add_watch(parser)


def _count(argument: str, most: int = MAX_STEPS) -> int:
    if not argument.isdecimal() or not 1 <= int(argument) <= most:
        raise argparse.ArgumentTypeError(f"{argument!r} is not a number from 1 to {most}")
    return int(argument)


def completion(options: argparse.Namespace) -> int:
    """Print a script that completes commands, options and names of studies in a shell."""
    print_line(completion_script(command_parser(), options.shell))
    return 0


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wait", action="store_true", help="wait while another process holds a lock, and say which")


def _add_watch(parser: argparse.ArgumentParser) -> None:
    watch_help = "show what is known so far, on a page that loads itself again and in the terminal each round"
    parser.add_argument("--watch", action="store_true", help=watch_help)


def _add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", command: Command
) -> argparse.ArgumentParser:
    """Add a command, described by its function, and return its parser."""
    description = (command.__doc__ or "").strip()
    parser = commands.add_parser(command.__name__, help=description, description=description)
    parser.add_argument("-v", "--verbose", action="store_true", help="print where an error comes from")
    parser.set_defaults(command=command, parser=parser)
    return parser


def _add_selftest_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="quick mode: 3 pairs and short windows; for a first look")
    _add_wait(parser)
    pairs_help = "number of pairs (default: 20, with --quick 3)"
    parser.add_argument("--pairs", type=partial(_count, most=99), default=0, help=pairs_help)
    parser.add_argument("--cluster", default="local", help="a cluster file of this machine: a name or a path")


def _add_audit_options(parser: argparse.ArgumentParser) -> None:
    table_help = "a CSV, Markdown or Excel file; without one, the published figures"
    parser.add_argument("table", nargs="?", type=Path, help=table_help)
    parser.add_argument(
        "--separator", type=_separator, default=",", help="of the fields of a CSV file; without it a comma"
    )
    decimal_help = "the sign of decimals in the table; without it a point, where any number has one"
    parser.add_argument("--decimal", choices=(".", ","), default="", help=decimal_help)
    parser.add_argument("--all", action="store_true", help="print a diagnostic for each number, also if many are alike")
    _add_json(parser)
    parser.add_argument("--strict", action="store_true", help="end with exit code 1 if there is an error")


def _separator(argument: str) -> str:
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
