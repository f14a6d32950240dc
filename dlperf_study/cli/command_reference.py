"""The commands and their options in Markdown, for ``docs/command-line.md``."""

import argparse
from collections import Counter

from dlperf_study.cli import completion
from dlperf_study.core.user_commands import COMMAND

#: Options of at least as many commands are described once.
_MIN_SHARED = 3
_BAR = "\\|"
_HEADER = "| option | meaning |\n|---|---|\n"


def command_reference(parser: argparse.ArgumentParser) -> str:
    """Return the options of several commands, and a section for each command."""
    commands = completion.commands_of(parser)
    rows: Counter[str] = Counter()
    for command in commands.values():
        rows.update(_option_rows(command))
    shared = [row for row, count in rows.items() if count >= _MIN_SHARED]
    sections = [f"## Options of several commands\n\n{_HEADER}" + "\n".join(shared)]
    for name, command in commands.items():
        sections.append(_section(name, command, shared))
    return "\n\n".join(sections)


def _section(name: str, parser: argparse.ArgumentParser, shared: list[str]) -> str:
    """Return the section of a command: its description, usage, examples and options."""
    usage, rows, also = f"{COMMAND} {name} [options]", [], []
    for action in parser._actions:
        if not action.option_strings:
            usage += f" {_argument(action)}"
            rows.append(_row(_argument(action), action))
    for row in _option_rows(parser):
        if row in shared:
            also.append(row.split("|")[1].strip())
        else:
            rows.append(row)
    parts = [f"## {name}", parser.description or "", f"```text\n{usage}\n\n{(parser.epilog or '').strip()}\n```"]
    if rows:
        parts.append(_HEADER + "\n".join(rows))
    parts.append(f"Also: {', '.join(also)}.")
    return "\n\n".join(parts)


def _option_rows(parser: argparse.ArgumentParser) -> list[str]:
    """Return a row per option, besides the one that prints the help."""
    rows = []
    for action in parser._actions:
        if action.option_strings and action.dest != "help":
            rows.append(_row(_flags(action), action))
    return rows


def _row(name: str, action: argparse.Action) -> str:
    meaning = " ".join(argparse.HelpFormatter("")._expand_help(action).split())
    return f"| `{name}` | {meaning.replace('|', _BAR)} |"


def _flags(action: argparse.Action) -> str:
    """Return the names of an option with its value, as ``--name NAME``."""
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    return f"{names} {_argument(action)}"


def _argument(action: argparse.Action) -> str:
    """Return an argument, or the value of an option, as usage lines show it."""
    value = _value(action)
    if action.nargs == "?":
        return f"[{value}]"
    if action.nargs == "+":
        return f"{value} ..."
    return value


def _value(action: argparse.Action) -> str:
    if action.metavar:
        return str(action.metavar)
    if action.choices:
        return f"{{{','.join(map(str, action.choices))}}}"
    return action.dest.upper()
