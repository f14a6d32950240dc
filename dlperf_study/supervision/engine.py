"""The papermill engine of this project: kernels speak over IPC sockets, not over open TCP ports."""

import uuid
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from jupyter_core.paths import jupyter_runtime_dir
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine


class IpcKernelManager(AsyncKernelManager):  # type: ignore[misc]
    """A kernel manager that nobody else on the machine or the network can talk to.

    It also ends papermill's race for free TCP ports between kernels started at the same time.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.transport = "ipc"
        # Left alone, every kernel of a folder would use the same sockets there.
        self.ip = str(Path(jupyter_runtime_dir()) / uuid.uuid4().hex[:8])


class IpcEngine(NBClientEngine):  # type: ignore[misc]
    """Papermill's own engine with :class:`IpcKernelManager`."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, log_output: bool = False, start_timeout: int = 60, **settings: Any
    ) -> Any:
        """Execute the notebook; its outputs are stored in ``nb_man``."""
        client = PapermillNotebookClient(
            nb_man,
            kernel_name=kernel_name,
            kernel_manager_class=IpcKernelManager,
            startup_timeout=start_timeout,
            timeout=None,
            log_output=log_output,
        )
        return client.execute()
