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
    rows = Counter(row for command in commands.values() for row in _option_rows(command))
    shared = [row for row, count in rows.items() if count >= _MIN_SHARED]
    sections = [f"## Options of several commands\n\n{_HEADER}" + "\n".join(shared)]
    of_all = [row for row in shared if rows[row] == len(commands)]
    sections += [_section(name, command, shared, of_all) for name, command in commands.items()]
    return "\n\n".join(sections)


def _section(name: str, parser: argparse.ArgumentParser, shared: list[str], of_all: list[str]) -> str:
    """Return the section of a command: its description, usage, examples and options."""
    positional = [action for action in parser._actions if not action.option_strings]
    usage = " ".join([COMMAND, name, "[options]", *map(_argument, positional)])
    examples = f"\n\n{parser.epilog.strip()}" if parser.epilog else ""
    arguments = [_row(_argument(action), action) for action in positional if action.help]
    options = _option_rows(parser)
    table = "\n".join([*arguments, *(row for row in options if row not in shared)])
    also = ", ".join(row.split("|")[1].strip() for row in options if row in shared and row not in of_all)
    parts = [f"## {name}", parser.description or "", f"```text\n{usage}{examples}\n```"]
    parts += [f"{_HEADER}{table}"] if table else []
    parts += [f"Also: {also}."] if also else []
    return "\n\n".join(parts)


def _option_rows(parser: argparse.ArgumentParser) -> list[str]:
    """Return a row per option, besides the one that prints the help."""
    actions = [action for action in parser._actions if action.option_strings and action.dest != "help"]
    return [_row(_flags(action), action) for action in actions if action.help is not argparse.SUPPRESS]


def _row(name: str, action: argparse.Action) -> str:
    meaning = argparse.HelpFormatter("")._expand_help(action) if action.help else ""
    return f"| `{name}` | {' '.join(meaning.split()).replace('|', _BAR)} |"


def _flags(action: argparse.Action) -> str:
    """Return the names of an option with its value, as ``--name NAME``."""
    value = "" if action.nargs == 0 else f" {_argument(action)}"
    return f"{', '.join(action.option_strings)}{value}"


def _argument(action: argparse.Action) -> str:
    """Return an argument, or the value of an option, as usage lines show it."""
    return {"?": f"[{_value(action)}]", "+": f"{_value(action)} ..."}.get(str(action.nargs), _value(action))


def _value(action: argparse.Action) -> str:
    if action.metavar:
        return str(action.metavar)
    if action.choices:
        return f"{{{','.join(map(str, action.choices))}}}"
    return action.dest.upper()
