"""Find and end processes by a mark in their environment.

Children inherit the mark however deep they are and whoever adopts them, so nothing a run started can
hide: not a rank whose launcher was killed, not a process that made a session of its own.
"""

import os
import signal
import socket
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress

import psutil

# How a process ended, in words.


_DEADLY = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)
#: How one who starts processes says that one was ended by a signal: shells by 128 + its number, Paddle by minus that.
PASSED_ON_SIGNALS = {code: s.name for s in _DEADLY for code in (128 + s, 256 - s)}


def ending_words(code: int | None) -> str:
    """Return how a process ended, by its exit code as ``subprocess`` and ``multiprocessing`` give it."""
    if code is not None and code < 0:
        return f"was ended by signal {signal.Signals(-code).name}"
    passed_on = PASSED_ON_SIGNALS.get(code or 0)
    return f"exited with code {code}" + (f": a process of its own was ended by {passed_on}" if passed_on else "")


#: The module whose process stands behind what one run started on one machine; the mark is its argument.
GUARD = "dlperf_study.guard.guard"
#: Carried by everything one run started.
RUN_MARK = "DLPERF_STUDY_RUN_MARK"
#: Carried by the notebook processes and kernels that one driver started.
DRIVER_MARK = "DLPERF_STUDY_DRIVER_MARK"
KILL_SECONDS = 10.0
POLL_SECONDS = 0.01


def new_mark() -> str:
    """Return a mark no other has; it names this process, so that others can tell whether it still lives."""
    return f"{os.getpid()}-{uuid.uuid4().hex}@{socket.gethostname()}"


def marked(variable: str, value: str | None = None) -> list[psutil.Process]:
    """Return the other processes whose environment holds ``variable`` (with ``value``, if given)."""
    own = os.getpid()
    found = []
    for process in psutil.process_iter():
        mark = None if process.pid == own else _variable(process, variable)
        if mark is not None and value in (None, mark):
            found.append(process)
    return found


def orphans() -> list[psutil.Process]:
    """Return the marked processes whose marker is dead: nobody waits for them, and nobody will end them."""
    pairs = ((process, mark) for mark in (RUN_MARK, DRIVER_MARK) for process in marked(mark))
    return list({process.pid: process for process, mark in pairs if _left(process, mark)}.values())


def end_survivors() -> tuple[str, ...]:
    """End what drivers that are dead left behind, and name it."""
    return tuple(end(orphans()))


def end_marked(variable: str, value: str) -> list[str]:
    """End all processes with this mark, until none is left; return what was ended."""
    ended: list[str] = []
    while processes := marked(variable, value):
        ended += end(processes)
    return ended


def end(processes: Iterable[psutil.Process]) -> list[str]:
    """Kill processes and wait until they are dead; return ``pid: command`` of each.

    Kill and not terminate: nothing they hold is worth waiting for, and a rank that hangs would not listen.
    Dead and not gone: in a container nobody may take the dead away.
    """
    processes = list(processes)
    names = [_describe(process) for process in processes]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    deadline = time.monotonic() + KILL_SECONDS
    while any(map(_lives, processes)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return names


def _variable(process: psutil.Process, variable: str) -> str | None:
    """Return a variable of a living process; None for one that is gone, a zombie, or not ours to read."""
    try:
        return process.environ().get(variable)
    except (psutil.Error, OSError):
        return None


def _left(process: psutil.Process, variable: str) -> bool:
    """Return whether nobody stands behind a marked process any more.

    On the machine of the process that set the mark, and is named in it, that is when this one is dead;
    on others, and in a container that counts its processes by itself, when the guard of the run is gone.
    """
    mark = _variable(process, variable) or ""
    marker, host = mark.partition("-")[0], mark.rpartition("@")[2]
    if host != socket.gethostname() or not _counts_as_we_do(process):
        return variable == RUN_MARK and not _is_guarded(mark)
    try:
        return not _lives(psutil.Process(int(marker)))
    except (ValueError, psutil.NoSuchProcess):
        return True


def _counts_as_we_do(process: psutil.Process) -> bool:
    """Return whether a process id means the same to this process as to us; a container may share our host's name."""
    with suppress(OSError):
        return os.readlink(f"/proc/{process.pid}/ns/pid") == os.readlink("/proc/self/ns/pid")
    return False


def _is_guarded(mark: str) -> bool:
    commands = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    return any(GUARD in words and mark in words for words in commands)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid}: {' '.join(process.cmdline())[:120]}"
    except psutil.Error:
        return f"{process.pid}: already gone"
