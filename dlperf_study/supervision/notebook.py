"""One execution of one notebook, in a process of its own.

A process and not a thread: papermill changes the working directory of its whole process. Forked from a
server that has papermill loaded, and not started anew: papermill takes over a second to import, once per
study instead of once per notebook. The lifeline is a pipe: when the driver dies, however it dies, it
closes, and the process takes its kernel along.
"""

import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import papermill
from papermill.engines import papermill_engines
from papermill.exceptions import PapermillException

from dlperf_study.supervision.engine import IpcEngine
from dlperf_study.supervision.processes import DRIVER_MARK, end_marked, ending_words, new_mark

#: Where Jupyter puts the sockets of its kernels.
RUNTIME_VARIABLE = "JUPYTER_RUNTIME_DIR"
_FORK = multiprocessing.get_context("forkserver")
_FORK.set_forkserver_preload([__name__])


@dataclass(frozen=True)
class Execution:
    """What to execute: ``errors`` takes what the process prints of itself; ``environment`` is added to that here."""

    source: Path
    output: Path
    parameters: dict[str, Any]
    errors: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class NotebookProcess:
    """A running execution. Always call ``end``: it leaves no kernel and nothing below one behind."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self._mark = new_mark()
        listening, self._lifeline = _FORK.Pipe(duplex=False)
        # The path of an IPC socket may have 107 characters: a short folder, and one nobody else can read.
        self._sockets = tempfile.mkdtemp(prefix="dlperf")
        environment = {**os.environ, **execution.environment, DRIVER_MARK: self._mark, RUNTIME_VARIABLE: self._sockets}
        self._process = _FORK.Process(target=_execute, args=(execution, environment, listening))
        with _deaf_to_interrupts():
            self._process.start()
        listening.close()

    def wait(self, timeout_seconds: float) -> int | None:
        """Wait for the end; return the exit code, or None when it is still running."""
        self._process.join(timeout_seconds)
        if code := self._process.exitcode:
            self._say_for_it(f"the notebook process {ending_words(code)}")
        return self._process.exitcode

    def end(self) -> None:
        """End the process, its kernel and everything below."""
        was_running = self._process.exitcode is None
        self._process.kill()
        self._process.join()
        end_marked(DRIVER_MARK, self._mark)
        shutil.rmtree(self._sockets, ignore_errors=True)
        self._lifeline.close()
        if was_running:
            self._say_for_it("the notebook was still being executed, and was ended")

    def errors(self) -> str:
        """Return what the process said about itself, or what was said for it."""
        errors = self.execution.errors
        return errors.read_text(errors="replace").strip() if errors.exists() else ""

    def _say_for_it(self, words: str) -> None:
        """Leave a reason where the process left none: one that is ended by a signal says nothing."""
        # On a full disk there is no room for words, and nobody must be kept from going on by that.
        with suppress(OSError):
            if not self.errors():
                self.execution.errors.write_text(f"{words}\n")


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let the server of notebooks, which the first of them starts, inherit that Ctrl-C means nothing to it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def first_done(processes: list[NotebookProcess], timeout_seconds: float) -> NotebookProcess | None:
    """Return one of the processes that has ended, waiting for it; None when none does in time."""
    done = wait([process._process.sentinel for process in processes], timeout_seconds)
    return next((process for process in processes if process._process.sentinel in done), None)


def _execute(execution: Execution, environment: dict[str, str], listening: Connection) -> None:
    """Be the process: cut loose from the driver's terminal, then execute."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The server has the environment of the day it started; the driver's may have changed since.
    os.environ.clear()
    os.environ.update(environment)
    _redirect_output(execution.errors)
    threading.Thread(target=_watch, args=(listening, environment[DRIVER_MARK]), daemon=True).start()
    sys.exit(_papermill(execution))


def _papermill(execution: Execution) -> int:
    papermill_engines.register("ipc", IpcEngine)
    try:
        papermill.execute_notebook(
            str(execution.source),
            str(execution.output),
            execution.parameters,
            engine_name="ipc",
            kernel_name="python3",
            progress_bar=False,
            request_save_on_cell_execute=False,
            autosave_cell_every=0,
        )
    except (PapermillException, RuntimeError, OSError) as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    return 0


def _redirect_output(errors: Path) -> None:
    with open(os.devnull) as nothing, open(errors, "w") as file:
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


def _watch(listening: Connection, mark: str) -> None:
    """Wait for the driver's end of the pipe to close: then there is nobody left to execute for."""
    listening.poll(None)
    end_marked(DRIVER_MARK, mark)
    shutil.rmtree(os.environ[RUNTIME_VARIABLE], ignore_errors=True)
    os._exit(1)
