"""A command named ``ssh`` for programs that start processes on other nodes by it, as ``horovodrun`` does.

It reaches a node as this package does. So the configuration file of ssh, with its names of hosts, is valid for these
programs too, and under a queue no host needs an ssh server.
"""

import json
import os
import shlex
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from dlperf_study.errors import RunError
from dlperf_study.writing import write_atomically

_SCRIPT = '#!/bin/sh\nexec {python} -m dlperf_study.guard.remote_shell {table} "$@"\n'


def install(folder: Path, prefixes: Mapping[str, Sequence[str]]) -> None:
    """Write a command ``ssh`` into a folder; ``prefixes`` are the command prefixes for a shell line, by address.

    Where nodes share the folder, each of their guards writes it: complete at once, because a shell that can't run the
    command here runs the next of that name on its path, the real one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table, unfinished = folder / "prefixes.json", folder / f".ssh.{uuid.uuid4().hex}"
    write_atomically(table, json.dumps({address: list(prefix) for address, prefix in prefixes.items()}))
    unfinished.write_text(_SCRIPT.format(python=shlex.quote(sys.executable), table=shlex.quote(str(table))))
    unfinished.chmod(0o755)
    unfinished.replace(folder / "ssh")


def command(table: Mapping[str, Sequence[str]], arguments: Sequence[str]) -> list[str]:
    """Return the argv that replaces ``ssh`` with these arguments; its options are ignored.

    Raises RunError for a host that is not of the run.
    """
    host, *rest = _without_options(arguments)
    if host not in table:
        raise RunError(f"ssh: host {host} is not of this run; those are {', '.join(table)}")
    return [*table[host], " ".join(_without_options(rest))]


def _without_options(arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments after the options; each option has a value, as in ``-o ConnectTimeout=10 -p 22``."""
    while arguments and arguments[0].startswith("-"):
        arguments = arguments[2:]
    return arguments


def main() -> None:
    """Replace this process by the command that reaches the node."""
    argv = command(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2:])
    # Without this folder: the next command named ssh must be the real one.
    this_folder = str(Path(sys.argv[1]).parent)
    folders = [folder for folder in os.environ["PATH"].split(os.pathsep) if folder != this_folder]
    os.environ["PATH"] = os.pathsep.join(folders)
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main()
