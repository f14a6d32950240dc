"""Processor time of a command in a process of its own: unlike its time by the clock, it hardly depends on the load."""

import resource
import subprocess
import sys
import time
from dataclasses import dataclass

import psutil

#: How often the processes below a command are looked at; what a process does after the last look is not counted.
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class CommandCost:
    """What a command printed, and its seconds of processor."""

    output: str
    processor_seconds: float


def run_command(*arguments: str) -> CommandCost:
    """Run ``python -m dlperf_study`` with these arguments; raises CalledProcessError when it fails.

    Counted are the command and the processes below it that it waited for.
    """
    before = _seconds_of_children()
    command = [sys.executable, "-m", "dlperf_study", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return CommandCost(done.stdout, _seconds_of_children() - before)


def seconds_of_all_processes(*command: str) -> float:
    """Run a command; return the seconds of processor of it and of all processes below it, waited for or not.

    Raises CalledProcessError when it fails.
    """
    seconds: dict[psutil.Process, float] = {}
    with psutil.Popen(command) as process:
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            for running in (psutil.Process(process.pid), *process.children(recursive=True)):
                try:
                    times = running.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                seconds[running] = times.user + times.system
            time.sleep(LOOK_SECONDS)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return sum(seconds.values())


def _seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
