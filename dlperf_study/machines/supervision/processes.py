"""Find and end processes, by a mark in their environment and by their parents.

Children inherit the mark at any depth and whatever process adopts them: also a rank whose launcher was killed, and a
process with a session of its own. Those with another environment are found below the process that adopted them.
"""

import os
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import psutil

from dlperf_study.core.errors import RunError
from dlperf_study.core.signals import PASSED_ON_SIGNALS

#: The module of the node agent, the parent of what one run started on one machine; the mark is its argument.
AGENT = "dlperf_study.machines.node_agent.agent"
#: In the environment of everything that one run started.
RUN_MARK = "DLPERF_STUDY_RUN_MARK"
#: In the environment of the notebook processes and kernels that one controller started.
CONTROLLER_MARK = "DLPERF_STUDY_CONTROLLER_MARK"
#: Ending is over after so many looks in a row without a child: one look may miss a process that forks and ends.
MIN_EMPTY_LOOKS = 4
KILL_SECONDS, MAX_ENDING_SECONDS = 10.0, 60.0
POLL_SECONDS = 0.01


def new_mark() -> str:
    """Return a unique mark that names this process."""
    return f"{this_process()}-{uuid.uuid4().hex}@{socket.gethostname()}"


def this_process() -> str:
    """Return the id and the start time of this process."""
    return f"{os.getpid()}-{_start_ticks('self')}"


def is_running(process: str) -> bool:
    """Return whether the named process runs."""
    pid, _, started = process.partition("-")
    if not pid.isdecimal() or (started.isdecimal() and _start_ticks(pid) != started):
        return False
    try:
        return _is_alive(psutil.Process(int(pid)))
    except psutil.NoSuchProcess:
        return False


def _start_ticks(pid: str) -> str:
    """Return when a process started, in clock ticks."""
    # The time of day that psutil gives is another one after the clock was set.
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    # The second field, the name in parentheses, may contain spaces; the start is the field 22.
    return status.rpartition(")")[2].split()[19]


def marked(variable: str, value: str | None = None) -> list[psutil.Process]:
    """Return the other processes whose environment holds ``variable`` (with ``value``, if given)."""
    processes = []
    for process in psutil.process_iter():
        mark = None if process.pid == os.getpid() else _variable(process, variable)
        if mark is not None and value in (None, mark):
            processes.append(process)
    return processes


def end_orphans() -> tuple[str, ...]:
    """End what dead controllers left; return ``pid: program``; raises RunError."""
    orphans = _orphans()
    ended = end(orphans)
    if alive := [str(process.pid) for process in orphans if _is_alive(process)]:
        raise RunError(f"orphan processes of an earlier study cannot be killed: {', '.join(alive)}")
    return tuple(ended)


def orphan_names() -> list[str]:
    """Return ``pid: program`` of what dead controllers have left on this machine."""
    names = []
    for process in _orphans():
        with suppress(psutil.NoSuchProcess):
            if _is_alive(process):
                names.append(_name(process))
    return names


def _orphans() -> list[psutil.Process]:
    orphans = {}
    for variable in (RUN_MARK, CONTROLLER_MARK):
        for process in marked(variable):
            if _is_orphan(process, variable):
                orphans[process.pid] = process
    return list(orphans.values())


def is_marked(pid: int, variable: str, value: str) -> bool:
    """Return whether a process of this user holds a mark."""
    try:
        return _variable(psutil.Process(pid), variable) == value
    except psutil.Error:
        return False


def end_marked(variable: str, value: str) -> list[str]:
    """End all processes with this mark; return ``pid: program``."""
    ended: list[str] = []
    while processes := marked(variable, value):
        ended += end(processes)
    return ended


def await_children(seconds: float) -> None:
    """Wait until this process has no child that runs, at most some seconds."""
    _await(psutil.Process().children, seconds)


def end_children() -> list[str]:
    """End all processes below this one; return ``pid: program``."""
    # A process that is just starting a program has no environment that can be read, so its mark would not be found.
    ended: list[str] = []
    # A process that waits for a device can't be ended.
    deadline, empty_looks = time.monotonic() + MAX_ENDING_SECONDS, 0
    while time.monotonic() < deadline and empty_looks < MIN_EMPTY_LOOKS:
        children = [child for child in psutil.Process().children() if _is_alive(child)]
        empty_looks += 1
        if children:
            empty_looks = 0
        processes: dict[int, psutil.Process] = {}
        for child in children:
            with suppress(psutil.NoSuchProcess):
                processes |= {each.pid: each for each in (child, *child.children(recursive=True))}
        ended += end(processes.values())
        _kill_groups_of_children()
    return ended


def _kill_groups_of_children() -> None:
    """Kill the process groups of the children: one that forks and ends again and again is gone before it is killed."""
    groups = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            # The name of the program, in brackets, may have any character. A group of another container is 0.
            _, parent, group, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(parent) == os.getpid():
                groups.add(int(group))
    for of_child in groups - {0, os.getpgrp()}:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(of_child, signal.SIGKILL)


def await_marked(variable: str, value: str, seconds: float) -> None:
    """Wait until no process with this mark runs, at most some seconds."""
    _await(lambda: marked(variable, value), seconds)


def _await(running: Callable[[], Iterable[psutil.Process]], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(map(_is_alive, running())) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def end(processes: Iterable[psutil.Process]) -> list[str]:
    """Kill processes and wait; return ``pid: program`` of each."""
    # Kill and not terminate: nothing in them is worth waiting for, and a rank that hangs would ignore it. Dead and not
    # reaped: in a container there may be no process that reaps.
    processes = list(processes)
    names = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            name = _name(process)
            process.kill()
            names.append(name)
    _await(lambda: processes, KILL_SECONDS)
    return names


def processor_seconds(pid: int | None) -> float:
    """Return the processor time of a process and of all below it, also of those that have ended, in seconds."""
    seconds = 0.0
    for process in _with_descendants(pid):
        with suppress(psutil.NoSuchProcess):
            seconds += sum(process.cpu_times()[:4])
    return seconds


def waits_for_disk(pid: int | None) -> bool:
    """Return whether a process, or one below it, waits for a disk or a file server."""
    return bool(_names_in_state(pid, psutil.STATUS_DISK_SLEEP))


def stopped_names(pid: int | None) -> list[str]:
    """Return ``pid: program`` of all that a signal stopped."""
    return _names_in_state(pid, psutil.STATUS_STOPPED)


def _names_in_state(pid: int | None, state: str) -> list[str]:
    names = []
    for process in _with_descendants(pid):
        with suppress(psutil.NoSuchProcess):
            if process.status() == state:
                names.append(_name(process))
    return names


def _with_descendants(pid: int | None) -> Iterator[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        yield process
        yield from process.children(recursive=True)


def _name(process: psutil.Process) -> str:
    """Return ``pid: program`` without arguments that may be secret."""
    try:
        program, *arguments = process.cmdline() or [process.name()]
    except psutil.AccessDenied:
        program, arguments = process.name(), []
    if not Path(program).name.startswith("python"):
        return f"{process.pid}: {program[:120]}"
    options = list(takewhile(lambda argument: argument.startswith("-") and argument != "-c", arguments))
    module_or_script = arguments[len(options) : len(options) + 1]
    return f"{process.pid}: {' '.join([program, *options, *module_or_script])[:120]}"


def _variable(process: psutil.Process, variable: str) -> str | None:
    """Return a variable of a process, or None."""
    try:
        return process.environ().get(variable)
    except (psutil.Error, OSError):
        return None


def _is_orphan(process: psutil.Process, variable: str) -> bool:
    """Return whether the owner of a marked process is dead."""
    # The owner is the process that the mark names. On other machines than its own, and in a container with process ids
    # of its own, it is the node agent of the run.
    mark = _variable(process, variable) or ""
    name, _, host = mark.rpartition("@")
    has_our_ids = False
    with suppress(OSError):
        # A container may share the name of our host.
        has_our_ids = os.readlink(f"/proc/{process.pid}/ns/pid") == os.readlink("/proc/self/ns/pid")
    if host != socket.gethostname() or not has_our_ids:
        if variable != RUN_MARK:
            return False
        argvs = [running.info["cmdline"] or [] for running in psutil.process_iter(["cmdline"])]
        return not any(AGENT in argv and mark in argv for argv in argvs)
    return not is_running(name.rpartition("-")[0])


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def ending_words(code: int | None) -> str:
    """Return how a process ended, by its exit code."""
    if code is not None and code < 0:
        return f"was ended by signal {signal.Signals(-code).name}"
    passed_on = PASSED_ON_SIGNALS.get(code or 0)
    return f"exited with code {code}" + (f": a process of its own was ended by {passed_on}" if passed_on else "")
