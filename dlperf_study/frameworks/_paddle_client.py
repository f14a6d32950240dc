"""A process's connection to Paddle's parameter servers, with what has to be put right on the way."""

import ctypes
from typing import Any

from dlperf_study.frameworks import _common

CLIENT_FLAGS = "-pserver_push_dense_merge_limit=1"
#: Settings of brpc that Paddle 3.0.0 has no way to pass on, by their symbols in its library.
MESSAGE_LIMITS = ("_ZN4brpc5fLU6419FLAGS_max_body_sizeE", "_ZN4brpc5fLI6432FLAGS_socket_max_unwritten_bytesE")
MESSAGE_BYTES = 2**31 - 1


class Client:
    """This trainer's connection to the servers."""

    def __init__(self, runtime: Any, dense_tables: dict[int, list[str]]) -> None:
        self._runtime = runtime
        self._dense_tables = dense_tables

    def pull(self) -> None:
        """Fetch all dense parameters; returns when they are here."""
        import paddle

        scope = paddle.static.global_scope()
        for table, names in self._dense_tables.items():
            self._runtime._worker.pull_dense_params(scope, table, names)

    def flush(self) -> None:
        """Wait until the servers have applied every pushed gradient."""
        self._runtime._worker.client_flush()

    def barrier(self) -> None:
        """Wait for all trainers."""
        from paddle.distributed import fleet

        fleet.barrier_worker()

    def stop(self) -> None:
        """Close the connection; the servers stay."""
        from paddle.distributed import fleet

        fleet.stop_worker()


def connect() -> Client:
    """Connect to the servers, once they answer; the first trainer gives them their parameters."""
    from paddle.distributed import fleet
    from paddle.distributed.ps.utils.public import get_the_one_recv_context

    for endpoint in fleet.server_endpoints():
        _common.wait_for(endpoint)
    runtime = fleet.fleet._runtime_handle
    runtime.ps_desc_builder.ps_desc.init_gflags = CLIENT_FLAGS
    fleet.init_worker()
    tables = get_the_one_recv_context(runtime.context, split_dense_table=runtime.is_heter_ps_mode)
    return Client(runtime, dict(tables))


def join() -> None:
    """Take this process's place in the job, as its environment says."""
    from paddle.distributed import fleet

    _allow_large_messages()
    fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False))


def asynchronous() -> Any:
    """Return the strategy in which gradients are pushed without waiting for other trainers."""
    from paddle.distributed import fleet

    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    return strategy


def _allow_large_messages() -> None:
    """Lift brpc's limit of 64 MB: all parameters on one server travel in one message, ResNet-50's are 94 MB."""
    from paddle.base import libpaddle

    library = ctypes.CDLL(libpaddle.__file__)
    for symbol in MESSAGE_LIMITS:
        ctypes.c_int64.in_dll(library, symbol).value = MESSAGE_BYTES
