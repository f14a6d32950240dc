"""Execute one notebook in a process of its own.

A process and not a thread: papermill changes the working directory of its whole process. Forked from a server that has
papermill and the imports of notebooks loaded: they take over two seconds, once per study instead of once per notebook.
The lifeline is a pipe: when the controller dies, in whatever way, it closes, and the process above the notebook ends
all that is below it, and itself.
"""

import multiprocessing
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from dlperf_study.core import process_pool
from dlperf_study.core.signals import INTERRUPTIONS
from dlperf_study.machines.supervision import processes, supervisor
from dlperf_study.machines.supervision.locks import OwnedFolder

#: Where Jupyter puts the sockets and keys of its kernels, and where IPython looks for what a user starts with each.
RUNTIME_VARIABLE, IPYTHON_VARIABLE = "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"
_FORK = multiprocessing.get_context("forkserver")
#: What notebooks import, once for all of them; by name, since a notebook is above this package, and its imports are not
#: this module's.
_IMPORTS = (
    "dlperf_study.execution.repetitions",
    "dlperf_study.report.configuration_page",
    "dlperf_study.report.page_findings",
    "dlperf_study.api.study_results",
    "dlperf_study.study.plan",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "matplotlib.pyplot",
    "pyarrow.dataset",
    "scipy.special",
)
_FORK.set_forkserver_preload([f"{__name__}_kernel", *_IMPORTS])
#: With this module, jsonschema compiles a grammar of addresses when it is imported: a second, for nothing here.
GRAMMAR = "rfc3987_syntax"
#: How long node agents may take to end what they started, and to redact what it printed, after their notebook's end.
GRACE_SECONDS = 10.0
#: How long what is above a notebook may take to end all below it.
ENDING_SECONDS = 2 * GRACE_SECONDS
#: The exit code that multiprocessing gives a process whose fork server ended before it.
_LOST_SERVER = 255


@contextmanager
def absent_module(name: str) -> Iterator[None]:
    """Make imports of a module fail inside the block."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


def start_server() -> None:
    """Start the server of notebooks, which imports while this process does other work."""
    with process_pool.starting_server():
        # With the server of notebooks it would unblock the signals of that.
        resource_tracker.ensure_running()
        with _interruptions_deferred():
            forkserver.ensure_running()


@dataclass(frozen=True)
class Execution:
    """A notebook to execute, with its parameters and environment."""

    source: Path
    output: Path
    parameters: dict[str, Any]
    errors: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class NotebookProcess:
    """A running execution; ``end`` leaves no process of it."""

    def __init__(self, execution: Execution) -> None:
        start_server()
        self.execution = execution
        self._mark = processes.new_mark()
        lifeline, self._lifeline = _FORK.Pipe(duplex=False)
        self._runtime = OwnedFolder()
        runtime = {
            processes.CONTROLLER_MARK: self._mark,
            RUNTIME_VARIABLE: str(self._runtime.path),
            IPYTHON_VARIABLE: str(self._runtime.path / "ipython"),
        }
        environment = {**os.environ, **execution.environment, **runtime}
        self._process = _FORK.Process(target=_execute, args=(execution, environment, lifeline))
        with closing(lifeline), ExitStack() as unless_started:
            unless_started.callback(self.end)
            with _interruptions_deferred():
                self._process.start()
            unless_started.pop_all()

    def wait(self, timeout_seconds: float) -> int | None:
        """Wait for the end; return the exit code, or None."""
        self._process.join(timeout_seconds)
        code = self._process.exitcode
        if code == _LOST_SERVER:
            self._write_reason("the process that starts notebooks was killed; start the same command again")
        elif code:
            self._write_reason(f"the notebook process {processes.ending_words(code)}")
        return self._process.exitcode

    def end(self) -> None:
        """End the process, if it was started, its kernel and everything below."""
        is_started = self._process.pid is not None
        was_running = is_started and self._process.exitcode is None
        # What is above the notebook then ends all below it, and so do node agents that have lost it.
        self._lifeline.close()
        if is_started:
            self._process.join(ENDING_SECONDS)
            self._process.kill()
            self._process.join()
            processes.await_marked(processes.CONTROLLER_MARK, self._mark, GRACE_SECONDS)
        processes.end_marked(processes.CONTROLLER_MARK, self._mark)
        self._runtime.remove()
        if was_running:
            self._write_reason("the notebook was still being executed, and was ended")

    def stopped(self) -> list[str]:
        """Return its processes that a signal has stopped."""
        return [f"{name} is stopped by a signal" for name in processes.stopped_names(self._process.pid)]

    def processor_seconds(self) -> float:
        """Return the processor time of all its processes."""
        return processes.processor_seconds(self._process.pid)

    def waits_for_disk(self) -> bool:
        """Return whether one of its processes waits for a disk."""
        return processes.waits_for_disk(self._process.pid)

    def errors(self) -> str:
        """Return what the process printed, or its reason."""
        errors = self.execution.errors
        if errors.exists():
            return errors.read_text(errors="replace").strip()
        return ""

    def _write_reason(self, reason: str) -> None:
        """Write a reason where the process printed none."""
        # On a full disk this fails, which must not stop the controller.
        with suppress(OSError):
            if not self.errors():
                self.execution.errors.write_text(f"{reason}\n")


@contextmanager
def _interruptions_deferred() -> Iterator[None]:
    """Let what interrupts a controller wait meanwhile."""
    # The server of notebooks, which the first of them starts, inherits the blocked SIGINT: a Ctrl-C in the terminal is
    # not for it. Other threads may still receive it, and the main thread then handles it.
    received: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    interruptions = INTERRUPTIONS if is_main else ()
    handlers = {each: signal.signal(each, lambda signum, _: received.append(signum)) for each in interruptions}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for interruption, handler in handlers.items():
            signal.signal(interruption, handler)
    if received:
        signal.raise_signal(received[0])


def first_done(processes: list[NotebookProcess], timeout_seconds: float) -> NotebookProcess | None:
    """Return a process that has ended, or None in time."""
    done = wait([process._process.sentinel for process in processes], timeout_seconds)
    return next((process for process in processes if process._process.sentinel in done), None)


def _execute(execution: Execution, environment: dict[str, str], lifeline: Connection) -> None:
    """Execute in a process below this one; both end with their controller."""
    # The server of notebooks has imported it: a controller does without papermill and kernels.
    from dlperf_study.machines.supervision.notebook_kernel import execute

    os.setsid()
    code = supervisor.supervise(lambda: execute(execution, environment), lifeline.fileno(), GRACE_SECONDS)
    shutil.rmtree(environment[RUNTIME_VARIABLE], ignore_errors=True)
    sys.exit(code)
