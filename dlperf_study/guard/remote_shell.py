"""A command named ``ssh`` for those who reach other nodes by it, as ``horovodrun`` does: it goes the way we go.

So a configuration file of ssh, and the names hosts have in it, hold for them too, and under Slurm no host
needs an ssh server at all.
"""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dlperf_study.errors import RunError

_SCRIPT = '#!/bin/sh\nexec {python} -m dlperf_study.guard.remote_shell {table} "$@"\n'


def install(folder: Path, reach: Mapping[str, Sequence[str]]) -> None:
    """Put a command ``ssh`` into a folder; ``reach`` is what a text for a shell is put behind, by address of a node."""
    folder.mkdir(parents=True, exist_ok=True)
    table, script = folder / "reach.json", folder / "ssh"
    table.write_text(json.dumps({address: list(words) for address, words in reach.items()}))
    script.write_text(_SCRIPT.format(python=shlex.quote(sys.executable), table=shlex.quote(str(table))))
    script.chmod(0o755)


def command(table: Mapping[str, Sequence[str]], arguments: Sequence[str]) -> list[str]:
    """Return the argv that stands for ``ssh`` with these arguments; its options are ours to choose.

    Raises RunError for a host that is not of the run.
    """
    host, *rest = _without_options(arguments)
    if host not in table:
        raise RunError(f"ssh: host {host} is not of this run; those are {', '.join(table)}")
    return [*table[host], " ".join(_without_options(rest))]


def _without_options(words: Sequence[str]) -> Sequence[str]:
    """Return what follows the options; each has a value of its own, as in ``-o ConnectTimeout=10 -p 22``."""
    while words and words[0].startswith("-"):
        words = words[2:]
    return words


def main() -> None:
    """Become the command that reaches the node."""
    argv = command(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2:])
    # Without this folder in front: the next command named ssh must be the real one.
    own = str(Path(sys.argv[1]).parent)
    os.environ["PATH"] = os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if p != own)
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main()
