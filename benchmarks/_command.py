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


@dataclass(frozen=True)
class WholeCost:
    """What a command and all processes below it took: seconds of processor, by the clock, and memory at once."""

    processor_seconds: float
    seconds: float
    peak_bytes: int


def cost_of_all_processes(*command: str) -> WholeCost:
    """Run a command; return what it and all processes below it took, waited for or not.

    Memory that processes share is counted in each of them. Raises CalledProcessError when the command fails.
    """
    processor: dict[psutil.Process, float] = {}
    peak, started = 0, time.perf_counter()
    with psutil.Popen(command) as process:
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            held = 0
            for running in (psutil.Process(process.pid), *process.children(recursive=True)):
                try:
                    times, memory = running.cpu_times(), running.memory_info()
                except psutil.NoSuchProcess:
                    continue
                processor[running] = times.user + times.system
                held += memory.rss
            peak = max(peak, held)
            time.sleep(LOOK_SECONDS)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return WholeCost(sum(processor.values()), time.perf_counter() - started, peak)


def _seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
