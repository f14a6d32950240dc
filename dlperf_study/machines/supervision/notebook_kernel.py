"""A notebook's process, forked from a server that has imported this module: papermill, and a kernel of its own.

The kernel is forked from that process before it has threads or an event loop, and waits until papermill asks for it.
"""

import os
import signal
import sys
import uuid
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from jupyter_core.paths import jupyter_runtime_dir

from dlperf_study.core.signals import die_with_parent
from dlperf_study.machines.supervision.notebook import GRAMMAR, Execution, absent_module

# With debugpy each kernel would import a debugger, which takes a quarter of a second.
with absent_module(GRAMMAR), absent_module("debugpy"):
    import ipykernel.debugger  # noqa: F401
    import papermill
    from ipykernel.kernelapp import IPKernelApp
    from papermill.clientwrap import PapermillNotebookClient
    from papermill.engines import NBClientEngine, papermill_engines
    from papermill.exceptions import PapermillException

#: IPython sets up inline figures when matplotlib is imported; the server imported it before.
_OPTIONS = ("--matplotlib=inline",)


class ForkedKernel:
    """The process of one kernel; Jupyter uses it like a ``subprocess.Popen``."""

    stdin = stdout = stderr = None

    def __init__(self) -> None:
        request, self._sender = Pipe(duplex=False)
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
        # Jupyter too starts kernels in a session of their own: a signal to one process group does not reach the other.
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


def execute(execution: Execution, environment: dict[str, str]) -> NoReturn:
    """Execute a notebook in this process, and exit."""
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
