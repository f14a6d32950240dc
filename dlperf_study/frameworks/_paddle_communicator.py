"""Paddle's own synchronous communicator, which its runtime no longer makes, used without its thread.

Paddle 3.0.0's servers average: a table of a synchronous job adds the gradients that it gets, and when all trainers are
in its barrier, it applies their mean once. What is missing is the trainer's side. The program of a step ends with
``send_barrier``, whose communicator the runtime makes for other modes only: hence the segmentation fault. Made here,
it would run a thread that looks every 10 ms whether a step has ended, so it is not started. Its function that pushes
the gradients of a table, and returns when the servers have them, has no Python name; it is called by its symbol.
"""

import ctypes
from typing import Any

from dlperf_study.errors import RunError

PUSH_OF_A_TABLE = "_ZN6paddle11distributed12Communicator12RpcSendDenseERKNS0_11CommContextERKNS_9framework5ScopeE"
THE_COMMUNICATOR = "_ZN6paddle11distributed12Communicator13communicator_E"
#: The barrier of the servers that applies the mean, by its number in Paddle's source.
SEND_BARRIER = 0


class SynchronousCommunicator:
    """Pushes this trainer's gradients, and has their mean over all trainers applied."""

    def __init__(self, runtime: Any, dense_tables: dict[int, list[str]]) -> None:
        """Make the communicator of a connected trainer.

        Raises RunError if this build of Paddle keeps its objects in another way than 3.0.0 does.
        """
        import paddle
        from paddle.base import libpaddle

        self._worker = runtime._worker
        # The library keeps no reference to it.
        self._communicator = _communicator(runtime, dense_tables)
        library = ctypes.CDLL(libpaddle.__file__)
        address = ctypes.c_void_p.in_dll(library, THE_COMMUNICATOR).value
        if address != _address(self._communicator.communicator_):
            raise RunError(f"strategy sync needs paddlepaddle 3.0.0: {paddle.__version__} has another object layout")
        self._push_of_a_table = library[PUSH_OF_A_TABLE]
        self._push_of_a_table.restype = None
        self._push_of_a_table.argtypes = [ctypes.c_void_p] * 3
        scope = _address(paddle.static.global_scope())
        contexts = [context for context in runtime._send_ctx.values() if not context.is_sparse()]
        self._pushes = [(address, _address(context), scope) for context in contexts]

    def push(self) -> None:
        """Push the gradients, which are persistable variables of the global scope; returns when servers have them."""
        for push in self._pushes:
            self._push_of_a_table(*push)

    def apply_mean(self) -> None:
        """Wait until all trainers have pushed and every server has applied the mean of their gradients."""
        self._worker.barrier(SEND_BARRIER)


def _communicator(runtime: Any, dense_tables: dict[int, list[str]]) -> Any:
    """Make the synchronous communicator as Paddle's runtime makes that of other modes."""
    import paddle
    from paddle.distributed.communicator import Communicator
    from paddle.distributed.ps.utils.public import DistributedMode

    roles, description = runtime.role_maker, runtime.ps_desc_builder
    settings = {
        "need_global_step": "0",
        "trainer_id": roles._role_id(),
        "trainers": roles._worker_num(),
        "barrier_table_id": description.barrier_table_id,
        "pserver_endpoints": roles._get_pserver_endpoints(),
    }
    flags = runtime.context["trainer"].get_communicator_flags()
    communicator = Communicator(DistributedMode.SYNC, settings, flags)
    scope, hosts = paddle.static.global_scope(), runtime.string_hosts
    communicator.init_with_ctx(runtime._send_ctx, dense_tables, description.build_worker_desc(), hosts, scope)
    return communicator


def _address(instance: Any) -> int | None:
    """Return the address of the C++ object of a pybind11 instance, which keeps it directly after its header."""
    return ctypes.c_void_p.from_address(id(instance) + object.__basicsize__).value
