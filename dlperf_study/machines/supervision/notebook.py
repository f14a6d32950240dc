"""Execute one notebook in a process of its own.

A process and not a thread: papermill changes the working directory of its whole process. Forked from a server that has
papermill and the imports of notebooks loaded: they take over two seconds, once per study instead of once per notebook.
The lifeline is a pipe: when the controller dies, in whatever way, it closes, and the process ends its kernel and
itself. The kernel is forked from that process too, before it has threads or an event loop, and waits until papermill
asks for it.
"""

import multiprocessing
import os
import shutil
import signal
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

from ipykernel.kernelapp import IPKernelApp
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from jupyter_core.paths import jupyter_runtime_dir

from dlperf_study.core.signals import INTERRUPTIONS, die_with_parent
from dlperf_study.machines.supervision import processes
from dlperf_study.machines.supervision.locks import OwnedFolder


@contextmanager
def absent_module(name: str) -> Iterator[None]:
    """Let a module be missing for imports meanwhile."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


# With it, jsonschema compiles a grammar of addresses when it is imported: a second of each process, for nothing here.
with absent_module("rfc3987_syntax"):
    import papermill
    from papermill.clientwrap import PapermillNotebookClient
    from papermill.engines import NBClientEngine, papermill_engines
    from papermill.exceptions import PapermillException

#: Where Jupyter puts the sockets and keys of its kernels.
RUNTIME_VARIABLE = "JUPYTER_RUNTIME_DIR"
_FORK = multiprocessing.get_context("forkserver")
#: What notebooks import, once for all of them; by name, since a notebook is above this package, and its imports are not
#: this module's.
_IMPORTS = (
    "dlperf_study.execution.repetitions",
    "dlperf_study.report.configuration_page",
    "dlperf_study.report.page_findings",
    "dlperf_study.api.study_results",
    "dlperf_study.study.plan",
)
_FORK.set_forkserver_preload([__name__, *_IMPORTS])


#: A kernel shows figures once matplotlib is imported in it, which here was earlier.
_OPTIONS = ("--matplotlib=inline",)


class ForkedKernel:
    """The process of one kernel; Jupyter uses it like a ``subprocess.Popen``."""

    stdin = stdout = stderr = None

    def __init__(self) -> None:
        request, self._sender = multiprocessing.Pipe(duplex=False)
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            self._sender.close()
            _wait_and_serve(request)
        request.close()

    def start(self, connection_file: str, folder: str | None, environment: Mapping[str, str]) -> None:
        """Let the kernel listen on the sockets that the connection file names."""
        self._sender.send((connection_file, folder, dict(environment)))
        self._sender.close()

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None."""
        return self._exit_code(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait for the end; return the exit code."""
        return self._exit_code(0)

    def _exit_code(self, options: int) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, options)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the kernel has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the kernel at once, from any thread."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class ForkedKernelProvisioner(LocalProvisioner):  # type: ignore[misc]
    """Uses a forked kernel where Jupyter would start a process."""

    def __init__(self, kernel: ForkedKernel, **settings: Any) -> None:
        super().__init__(**settings)
        self._kernel = kernel

    async def launch_kernel(self, cmd: list[str], **settings: Any) -> KernelConnectionInfo:
        """Start the kernel; ``cmd`` would start one without what is imported here."""
        self._kernel.start(self.parent.connection_file, settings.get("cwd"), settings["env"])
        self.process = self._kernel
        self.pid = self.pgid = self._kernel.pid
        return self.connection_info


def _wait_and_serve(request: Connection) -> NoReturn:
    """Serve as a kernel in this process, which ends with its parent."""
    code = 1
    try:
        die_with_parent()
        # As a kernel that Jupyter starts has: a signal to the group of either is not for the other.
        os.setsid()
        connection_file, folder, environment = request.recv()
        os.environ.clear()
        os.environ.update(environment)
        if folder:
            os.chdir(folder)
        IPKernelApp.launch_instance(argv=["-f", connection_file, *_OPTIONS], parent_handle=os.getppid())
        code = 0
    except EOFError:
        # The notebook has ended before it asked for a kernel.
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Without the exit handlers of the process from which this one was forked.
        os._exit(code)


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
        # It would be started with the server of notebooks, and unblock signals then.
        resource_tracker.ensure_running()
        self.execution = execution
        self._mark = processes.new_mark()
        lifeline, self._lifeline = _FORK.Pipe(duplex=False)
        self._runtime = OwnedFolder()
        runtime = {processes.CONTROLLER_MARK: self._mark, RUNTIME_VARIABLE: str(self._runtime.path)}
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
        if code := self._process.exitcode:
            self._write_reason(f"the notebook process {processes.ending_words(code)}")
        return self._process.exitcode

    def end(self) -> None:
        """End the process, if it was started, its kernel and everything below."""
        is_started = self._process.pid is not None
        was_running = is_started and self._process.exitcode is None
        if is_started:
            self._process.kill()
            self._process.join()
        processes.end_marked(processes.CONTROLLER_MARK, self._mark)
        self._runtime.remove()
        self._lifeline.close()
        if was_running:
            self._write_reason("the notebook was still being executed, and was ended")

    def stopped(self) -> list[str]:
        """Return its processes that a signal has stopped."""
        return [f"{name} is stopped by a signal" for name in processes.stopped_names(self._process.pid)]

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
    """Execute in this process; it ends with its controller."""

    def end_with_controller() -> None:
        lifeline.poll(None)
        # First of all: it would record that what it measures was ended, and the run as one that failed.
        kernel.kill()
        processes.end_marked(processes.CONTROLLER_MARK, environment[processes.CONTROLLER_MARK])
        shutil.rmtree(os.environ[RUNTIME_VARIABLE], ignore_errors=True)
        os._exit(1)

    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # The server has the environment of its start; the controller's may have changed since.
    os.environ.clear()
    os.environ.update(environment)
    with open(os.devnull) as nothing, open(execution.errors, "w") as file:
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    kernel = ForkedKernel()
    threading.Thread(target=end_with_controller, daemon=True).start()
    sys.exit(_papermill(execution, kernel))


def _papermill(execution: Execution, kernel: ForkedKernel) -> int:
    """Execute the notebook; return the exit code."""
    papermill_engines.register("ipc", IpcEngine)
    try:
        papermill.execute_notebook(
            str(execution.source),
            str(execution.output),
            execution.parameters,
            engine_name="ipc",
            kernel_name="python3",
            forked_kernel=kernel,
            progress_bar=False,
            request_save_on_cell_execute=False,
            autosave_cell_every=0,
        )
    except (PapermillException, RuntimeError, OSError) as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    return 0


class IpcKernelManager(AsyncKernelManager):  # type: ignore[misc]
    """A manager of a forked kernel, over IPC sockets.

    It also avoids papermill's race for free TCP ports between kernels started at the same time.
    """

    def __init__(self, kernel: ForkedKernel, **settings: Any) -> None:
        super().__init__(**settings)
        self.transport = "ipc"
        # By default, every kernel of a folder uses the same sockets there, and keys are in the temporary folder.
        sockets = Path(jupyter_runtime_dir()) / uuid.uuid4().hex[:8]
        self.ip = str(sockets)
        self.connection_file = f"{sockets}.json"
        self.kernel_id = uuid.uuid4().hex
        self.provisioner = ForkedKernelProvisioner(
            kernel, kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self
        )
        #: Whether no cell is executed any more.
        self.is_done = False

    async def _async_interrupt_kernel(self) -> None:
        """Interrupt the kernel if it is busy; a shutdown begins with this whether it is or not."""
        # A kernel that has sent its last reply, and is about to be idle, would print the interrupt as an error.
        if not self.is_done:
            await super()._async_interrupt_kernel()


class NotebookClient(PapermillNotebookClient):  # type: ignore[misc]
    """Papermill's own client, which tells its :class:`IpcKernelManager` when the cells are done."""

    def papermill_execute_cells(self) -> None:
        """Execute the cells, up to the first that fails."""
        super().papermill_execute_cells()
        self.km.is_done = True


class IpcEngine(NBClientEngine):  # type: ignore[misc]
    """Papermill's own engine with :class:`NotebookClient`."""

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man: Any,
        kernel_name: str,
        log_output: bool,
        start_timeout: int,
        *,
        forked_kernel: ForkedKernel,
        **settings: Any,
    ) -> Any:
        """Execute the notebook; its outputs are stored in ``nb_man``."""
        client = NotebookClient(
            nb_man,
            km=IpcKernelManager(forked_kernel, kernel_name=kernel_name),
            startup_timeout=start_timeout,
            timeout=None,
            log_output=log_output,
        )
        # Otherwise a client leaves a manager that it did not create, with its kernel, as it is.
        return client.execute(cleanup_kc=True)
