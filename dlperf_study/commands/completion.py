"""A script that completes the command line in a shell, made from the parser of the commands.

It holds all words, so a press of Tab starts no Python: importing this package takes longer than a person waits.
"""

import argparse
from collections.abc import Iterator

from dlperf_study.study.strict_yaml import PARAMS

SHELLS = ("bash", "zsh")
_FUNCTION = """{prefix}_dlperf_study() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} command word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case $word in {commands}) command=$word; break;; esac
    done
    case $command in
{cases}
        *) COMPREPLY=($(compgen -W "{words}" -- "$current"));;
    esac
    [[ $current == -* || -z $command ]] || COMPREPLY+=($(compgen -f -- "$current"))
}}
complete -o filenames -F _dlperf_study dlperf-study"""
#: zsh runs completions that were written for bash.
_PREFIXES = {"bash": "", "zsh": "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"}
#: The folder with the names that an argument may have, by the argument.
_NAMES = {"study": "studies", "cluster": "clusters"}


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for a shell: commands, the options of each, and the names of studies and clusters."""
    [subparsers] = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    parsers = subparsers.choices
    cases = []
    for name, command_parser in parsers.items():
        completions = " ".join(_completions(command_parser))
        cases.append(f'        {name}) COMPREPLY=($(compgen -W "{completions}" -- "$current"));;')
    commands = "|".join(parsers)
    first = " ".join([*parsers, *_options(parser)])
    return _FUNCTION.format(prefix=_PREFIXES[shell], commands=commands, cases="\n".join(cases), words=first)


def _completions(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options of a command, and the names its arguments may have."""
    yield from _options(parser)
    for action in parser._actions:
        if action.dest in _NAMES:
            yield from sorted(path.stem for path in (PARAMS / _NAMES[action.dest]).glob("*.yaml"))
        elif not action.option_strings and action.choices:
            yield from map(str, action.choices)


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
