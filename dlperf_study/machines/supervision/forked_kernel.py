"""A kernel forked from the process that executes its notebook, instead of started as an interpreter of its own.

The imports of a notebook take over a second of processor time. The server of notebooks has them, and so has every fork.
The kernel is forked before that process has threads or an event loop, and waits until papermill asks for it.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from ipykernel.kernelapp import IPKernelApp
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner

from dlperf_study.core.signals import die_with_parent

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
