"""The folder of a run: created when the run starts, cleaned when it ends, packed where nodes don't share files.

It may have a command named ``ssh``, for programs that start processes on other nodes by it, as ``horovodrun`` does. It
reaches a node as this package does. So the configuration file of ssh, with its names of hosts, is valid for these
programs too, and under a queue no host needs an ssh server.
"""

import base64
import contextlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import tarfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from dlperf_study.core.errors import RunError
from dlperf_study.core.paths import RunPaths
from dlperf_study.core.writing import write_atomically
from dlperf_study.machines.node_agent.submission import Submission


def begin(submission: Submission) -> None:
    """Create an empty folder for a run; keep an older attempt."""
    run = submission.paths
    if run.folder.exists() and any(run.folder.iterdir()):
        interrupted = run.home.interrupted()
        interrupted.parent.mkdir(parents=True, exist_ok=True)
        run.folder.rename(interrupted)
        if submission.job.archive:
            # All processes of that attempt were killed at once: what they printed may still have secrets.
            passed = submission.job.variables.passed(os.environ, submission.pass_environment)
            for log in interrupted.glob("*.log"):
                submission.job.variables.redact_file(log, passed)
    run.folder.mkdir(parents=True, exist_ok=True)
    write_files(run.folder, submission.files)
    run.submission_file.write_text(submission.as_json())


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by name into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)


def write_waiting(submission: Submission, message: str) -> None:
    """Write what a run waits for before its start."""
    waiting = submission.paths.waiting
    waiting.parent.mkdir(mode=0o700, exist_ok=True)
    with open(waiting, "a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"{message}\n")


def keep_rank_output(folder: Path, pattern: str) -> None:
    """Keep the output of ranks; remove the rest of scratch."""
    scratch = RunPaths(folder).scratch
    for file in sorted(scratch.rglob("*") if pattern else ()):
        match = re.fullmatch(pattern, file.relative_to(scratch).as_posix())
        if match and file.stat().st_size:
            # node-0-rank-1, or rank-3-stderr
            parts = (f"rank-{part}" if name == "rank" else part for name, part in match.groupdict().items())
            file.replace(folder / f"{'-'.join(parts)}.log")
    shutil.rmtree(scratch, ignore_errors=True)


def pack(folder: Path) -> str:
    """Return the files of a folder as an archive in base64."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for file in sorted(folder.iterdir()):
            tar.add(file, arcname=file.name)
    return base64.b64encode(archive.getvalue()).decode()


def encoded(archive: Path) -> str:
    """Return an archive in base64; raises RunError if unreadable."""
    try:
        return base64.b64encode(archive.read_bytes()).decode()
    except OSError as error:
        raise RunError(f"{archive}: the program's files can't be read: {error.strerror}") from error


def unpack_program(archive: str, folder: Path) -> None:
    """Write the files of a program into a new folder."""
    # Where nodes share the folder, each of their node agents unpacks them: the first one's are taken, complete at once.
    unfinished = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    unfinished.mkdir()
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(archive)), mode="r:gz") as tar:
        tar.extractall(unfinished, filter="tar")
    try:
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(unfinished)


def link_data(path: Path, link: Path) -> None:
    """Link a data file or folder into the program's folder."""
    if link.is_dir() and path.is_dir():
        for entry in path.iterdir():
            link_data(entry, link / entry.name)
    elif not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            link.symlink_to(path)


def unpack(archive: str, folder: Path) -> None:
    """Write packed files into a folder; existing files stay."""
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(archive)), mode="r:gz") as tar:
        new = [member for member in tar.getmembers() if not (folder / member.name).exists()]
        tar.extractall(folder, new, filter="data")


_SCRIPT = '#!/bin/sh\nexec {python} -m dlperf_study.machines.node_agent.run_folder {table} "$@"\n'


def install(folder: Path, prefixes: Mapping[str, Sequence[str]]) -> None:
    """Write a command ``ssh`` into a folder."""
    # Where nodes share the folder, each of their node agents writes it: complete at once, because a shell that can't
    # run the command here runs the next of that name on its path, the real one.
    folder.mkdir(parents=True, exist_ok=True)
    table, unfinished = folder / "prefixes.json", folder / f".ssh.{uuid.uuid4().hex}"
    write_atomically(table, json.dumps({address: list(prefix) for address, prefix in prefixes.items()}))
    unfinished.write_text(_SCRIPT.format(python=shlex.quote(sys.executable), table=shlex.quote(str(table))))
    unfinished.chmod(0o755)
    unfinished.replace(folder / "ssh")


def command(table: Mapping[str, Sequence[str]], arguments: Sequence[str]) -> list[str]:
    """Return the argv that replaces ``ssh`` with these arguments; raises RunError."""
    host, *rest = _skip_options(arguments)
    if host not in table:
        raise RunError(f"ssh: host {host} is not part of this run; its hosts are {', '.join(table)}")
    return [*table[host], " ".join(_skip_options(rest))]


#: The options of ssh that have a value, which is the next argument unless it follows at once.
_WITH_VALUE = "BbcDEeFIiJLlmOoPpQRSWw"


def _skip_options(arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments after the options of ssh."""
    while arguments and arguments[0].startswith("-"):
        has_value = len(arguments[0]) == 2 and arguments[0][1] in _WITH_VALUE
        arguments = arguments[2 if has_value else 1 :]
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
