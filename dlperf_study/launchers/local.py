"""This machine: every task is a process here, under a guard."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dlperf_study.launchers.base import Command, Ending, Launcher, Submission, ending_words, passed_environment
from dlperf_study.study.job import Job, Task
from dlperf_study.study.outcome import Outcome
from dlperf_study.supervision.processes import RUN_MARK, end_marked, new_mark

HOST = "127.0.0.1"


def render(job: Job, cluster: Any, folder: Path) -> Submission:
    """Return the commands of a job, each with its log; starts nothing."""
    hosts = {f"host_{task.node}": HOST for task in job.tasks}
    return Submission(
        launcher="local",
        folder=str(folder),
        commands=tuple(_command(task, folder, hosts) for task in job.tasks),
        ports=job.ports,
        rank_output=job.rank_output,
    )


def execute(submission: Submission, timeout_seconds: float) -> Ending:
    """Run the commands to their end, within ``timeout_seconds``; leaves no process behind.

    An interrupt ends the run; the ending says so, and the caller raises once it is on disk.
    """
    mark, start = new_mark(), time.monotonic()
    interrupted = False
    with _start_guard() as guard:
        try:
            output = _converse(guard, _order(submission, timeout_seconds, mark))
        except KeyboardInterrupt:
            interrupted = True
            output, _ = guard.communicate()
        finally:
            end_marked(RUN_MARK, mark)
    keep_rank_output(Path(submission.folder), submission.rank_output)
    return _ending(output, guard.returncode, interrupted, time.monotonic() - start)


def _command(task: Task, folder: Path, hosts: dict[str, str]) -> Command:
    values = hosts | {"run": str(folder)}
    environment = {name: _fill(value, values) for name, value in task.environment.items()}
    argv = tuple(_fill(argument, values) for argument in task.argv)
    return Command(task.name, task.role, argv, environment, str(folder / f"{task.name}.log"))


def _fill(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _start_guard() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "dlperf_study.launchers.guard"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def _converse(guard: "subprocess.Popen[bytes]", order: bytes) -> bytes:
    """Give the guard its order, keep the lifeline open, and return what it says at the end."""
    assert guard.stdin
    assert guard.stdout
    guard.stdin.write(order)
    guard.stdin.flush()
    output = guard.stdout.read()
    guard.wait()
    guard.stdin.close()
    return output


def _order(submission: Submission, timeout_seconds: float, mark: str) -> bytes:
    ports = {f"port_{n}": str(port) for n, port in enumerate(_free_ports(submission.ports))}
    inherited = passed_environment()
    commands = [
        {
            "name": command.name,
            "role": command.role,
            "argv": [_fill(argument, ports) for argument in command.argv],
            "environment": inherited | {name: _fill(v, ports) for name, v in command.environment.items()},
            "log": command.log,
        }
        for command in submission.commands
    ]
    order = {"mark": mark, "timeout_seconds": timeout_seconds, "commands": commands}
    return json.dumps(order).encode() + b"\n"


def _free_ports(count: int) -> list[int]:
    """Return ``count`` ports that nothing listens on; all are held until all are chosen."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


def keep_rank_output(folder: Path, pattern: str) -> None:
    """Keep what the ranks printed; drop the rest of scratch: launchers leave the whole environment there."""
    scratch = folder / "scratch"
    for file in sorted(scratch.rglob("*") if pattern else ()):
        found = re.fullmatch(pattern, file.relative_to(scratch).as_posix())
        if found and file.stat().st_size:
            file.replace(folder / f"{_log_name(found.groupdict())}.log")
    shutil.rmtree(scratch, ignore_errors=True)


def _log_name(parts: dict[str, str]) -> str:
    """Return the name of a rank's log: ``node-0-rank-1``, ``rank-3-stderr``."""
    return "-".join(f"rank-{part}" if name == "rank" else part for name, part in parts.items())


def _ending(output: bytes, code: int, interrupted: bool, seconds: float) -> Ending:
    if not output.strip():
        return Ending(Outcome.KILLED, f"the guard of the run {ending_words(code)}", seconds, interrupted=interrupted)
    values = json.loads(output)
    outcome = Outcome(values.pop("outcome"))
    if interrupted and outcome is Outcome.KILLED:
        values["reason"] = "interrupted"
    return Ending(outcome, **values | {"interrupted": interrupted})


LAUNCHER = Launcher("local", render, execute)
