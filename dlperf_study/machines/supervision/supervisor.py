"""Supervise a process: adopt and end every process that it leaves.

A mark in the environment finds most processes, but a program may start one with an empty environment, or overwrite its
own as ``setproctitle`` does. Parents are known to the system: a process whose parent dies becomes a child of the
nearest process above that adopts orphans, as this one does.
"""

import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from dlperf_study.core import signals
from dlperf_study.machines.supervision import processes

POLL_SECONDS = 0.05
STANDARD_INPUT, STANDARD_OUTPUT = 0, 1


def supervise(run: Callable[[], None], lifeline: int | None = None, grace_seconds: float = 0.0) -> int:
    """Run a function in a child process; return its exit code when no process below this one is left.

    A signal that ends the child ends this process too, and SIGTERM is passed on to the child. When the other end of
    ``lifeline``, a descriptor, is closed, the child is killed, and the exit code is 1. What the child leaves may end
    itself for ``grace_seconds``. Standard input and output are the child's alone.
    """
    signals.adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    child = os.fork()
    if child == 0:
        _run_and_exit(run)
    signal.signal(signal.SIGTERM, lambda number, frame: _kill(child, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    with open(os.devnull, "r+b") as nothing:
        os.dup2(nothing.fileno(), STANDARD_INPUT)
        os.dup2(nothing.fileno(), STANDARD_OUTPUT)
    code = _wait_for(child, lifeline)
    # The child's id may be another process's from now on.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    processes.await_children(grace_seconds)
    processes.end_children()
    if code < 0:
        # The child has left its memory on the disk, if that is wanted.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        # The first process of a container can't end itself by a signal.
        return signals.SHELL_OFFSET - code
    return code


def _run_and_exit(run: Callable[[], None]) -> NoReturn:
    code = 1
    try:
        signals.die_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        run()
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        if isinstance(ending.code, str):
            sys.stderr.write(f"{ending.code}\n")
    except Exception:
        traceback.print_exc()
    finally:
        # A stream that was closed when Python began is None.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with suppress(OSError):
                stream.flush()
        # Without the exit handlers of the process from which this one was forked.
        os._exit(code)


def _wait_for(child: int, lifeline: int | None) -> int:
    """Wait for the end of the child, and kill it when the lifeline is closed; return the exit code."""
    was_killed_here = False
    while True:
        watched = [] if lifeline is None else [lifeline]
        ended, status = os.waitpid(child, os.WNOHANG if watched else 0)
        if ended:
            return 1 if was_killed_here else os.waitstatus_to_exitcode(status)
        readable, _, _ = select.select(watched, [], [], POLL_SECONDS)
        if readable:
            _kill(child, signal.SIGKILL)
            lifeline, was_killed_here = None, True


def _kill(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)
