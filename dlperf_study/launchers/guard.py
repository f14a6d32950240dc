"""The process that stands between a run and everything that may go wrong with its driver.

Started as ``python -m dlperf_study.launchers.guard``. The first line of standard input holds the
commands; after that standard input is the lifeline: when whoever started the guard dies, for whatever
reason, it closes, and the guard ends the run. The guard's last act is one line of JSON: the ending.
"""

import json
import resource
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from dlperf_study.launchers.base import Ending, ending_words
from dlperf_study.lifeline import die_with_parent
from dlperf_study.study.job import Role
from dlperf_study.study.outcome import Outcome
from dlperf_study.supervision.processes import RUN_MARK, end_marked

POLL_SECONDS = 0.05


@dataclass
class _Started:
    name: str
    role: str
    process: subprocess.Popen[bytes]


class _Terminated(Exception):
    """Somebody asked the guard to end."""


def main() -> None:
    """Start the commands, watch them, end them, and say how it went."""
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = json.loads(sys.stdin.buffer.readline())
    meter = LoadMeter()
    outcome, reason, started = _run(order)
    codes = {s.name: s.process.poll() for s in started}
    end_marked(RUN_MARK, order["mark"])
    for one in started:
        one.process.wait()
    ending = Ending(outcome, reason, meter.seconds(), codes, meter.busy_cores(), meter.out_of_memory_kills())
    print(json.dumps(asdict(ending)), flush=True)


def _run(order: dict[str, Any]) -> tuple[Outcome, str, list[_Started]]:
    started: list[_Started] = []
    try:
        for command in order["commands"]:
            started.append(_start(command, order["mark"]))
        outcome, reason = _watch(started, order["timeout_seconds"])
    except _Terminated:
        outcome, reason = Outcome.KILLED, "the guard was asked to end the run"
    except OSError as error:
        outcome, reason = Outcome.FAILED, f"a command could not be started: {error}"
    return outcome, reason, started


def _start(command: dict[str, Any], mark: str) -> _Started:
    scratch = Path(command["log"]).parent / "scratch"
    scratch.mkdir(exist_ok=True)
    with open(command["log"], "wb") as log:
        process = subprocess.Popen(
            command["argv"],
            env=command["environment"] | {RUN_MARK: mark},
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,  # safe: the guard has one thread
        )
    return _Started(command["name"], command["role"], process)


def _watch(started: list[_Started], timeout_seconds: float) -> tuple[Outcome, str]:
    """Wait for the first of: all trainers done, a process failed, the deadline, the lifeline cut."""
    deadline = time.monotonic() + timeout_seconds
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin.buffer, selectors.EVENT_READ)
    while time.monotonic() < deadline:
        if selector.select(POLL_SECONDS):
            return Outcome.KILLED, "the process that drove the run went away"
        verdict = _verdict(started)
        if verdict:
            return verdict
    return Outcome.TIMEOUT, f"not finished after {timeout_seconds:.0f} s"


def _verdict(started: list[_Started]) -> tuple[Outcome, str] | None:
    codes = [(s, s.process.poll()) for s in started]
    for one, code in codes:
        if code not in (None, 0) or (code == 0 and one.role == Role.SERVER):
            return Outcome.FAILED, f"{one.name} {ending_words(code)}"
    if all(code == 0 for one, code in codes if one.role == Role.TRAINER):
        return Outcome.COMPLETED, ""
    return None


class LoadMeter:
    """Measures how many cores processes other than this one and its children keep busy."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._busy = _busy_seconds()
        self._own = _own_seconds()
        self._kills = _out_of_memory_kills()

    def seconds(self) -> float:
        """Return the seconds since the meter was made."""
        return time.monotonic() - self._start

    def busy_cores(self) -> float:
        """Return the mean number of cores others kept busy; children count once they have been waited for."""
        others = (_busy_seconds() - self._busy) - (_own_seconds() - self._own)
        return max(0.0, others) / max(self.seconds(), 1e-9)

    def out_of_memory_kills(self) -> int:
        """Return how many processes the kernel killed for want of memory meanwhile."""
        return _out_of_memory_kills() - self._kills


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.system + getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0))


def _own_seconds() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _out_of_memory_kills() -> int:
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


if __name__ == "__main__":
    main()
