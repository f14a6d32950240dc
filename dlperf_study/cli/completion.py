"""A script that completes commands, options, names of studies and placeholders in a shell."""

import argparse
from collections.abc import Iterator

from dlperf_study.core.resources import FOLDERS, named_files
from dlperf_study.core.user_commands import COMMAND
from dlperf_study.study.configuration import SCALE
from dlperf_study.study.program import DERIVED_PLACEHOLDERS

SHELLS = ("bash", "zsh")
#: It holds all words, so a press of Tab starts no Python: importing this package takes longer than a person waits.
_FUNCTION = """{prefix}_dlperf_study() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} command word brace="{{" names="{placeholders}" last
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case $word in {commands}) command=$word; break;; esac
    done
    # In the command that is measured: a placeholder, also one that --sweep or --set has named.
    if [[ $command == measure && $current == *"$brace"* && ${{current##*"$brace"}} != *"}}"* ]]; then
        for word in "${{COMP_WORDS[@]}}"; do
            case $last in --sweep|--set) names+=" ${{word%%=*}}";; esac
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
_PLACEHOLDER_OPTIONS = ("sweep", "set")


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script for a shell."""
    parsers = commands_of(parser)
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
        words=" ".join([*parsers, *options_of(parser)]),
        script=COMMAND,
        placeholders=" ".join(placeholders),
    )


def _completions(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options of a command, and its arguments' names."""
    yield from options_of(parser)
    for action in parser._actions:
        if action.dest in FOLDERS:
            yield from sorted(named_files(action.dest))
        elif action.dest in _PLACEHOLDER_OPTIONS:
            yield from (f"{name}=" for name in SCALE if name != "parameter_servers")
        elif action.choices:
            yield from filter(None, map(str, action.choices))


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of all commands by name."""
    [subparsers] = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(subparsers.choices)


def options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options of a parser."""
    for action in parser._actions:
        yield from action.option_strings
