"""A trainer's connection to the parameter servers: asynchronous, or synchronous with averaged gradients."""

import ctypes
import time
from collections.abc import Callable
from typing import Any, Protocol

from dlperf_study.frameworks import _common
from dlperf_study.frameworks._base import Drain
from dlperf_study.frameworks._paddle_communicator import SynchronousCommunicator

CLIENT_FLAGS = "-pserver_push_dense_merge_limit=1"
#: Settings of brpc that Paddle 3.0.0 has no way to pass on, by their symbols in its library.
MESSAGE_LIMITS = ("_ZN4brpc5fLU6419FLAGS_max_body_sizeE", "_ZN4brpc5fLI6432FLAGS_socket_max_unwritten_bytesE")
MESSAGE_BYTES = 2**31 - 1


class Client(Protocol):
    """What a trainer does with its servers."""

    def finish_step(self) -> None:
        """Exchange what the program of a step has not; then this trainer has the parameters of the next step."""

    def exchange(self, push_zeros: Callable[[], Any]) -> Callable[[], None]:
        """Return one exchange alone; ``push_zeros`` runs the program that makes gradients of zeros."""

    def settle(self) -> Drain:
        """Wait until all updates are applied and pulled; return how long those of this trainer were pending."""

    def barrier(self) -> None:
        """Wait for all trainers."""

    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all trainers."""

    def stop(self) -> None:
        """Close the connection; the servers stay."""


class _Connection:
    """What both kinds of client do: pull, and what travels among the trainers and not over the servers."""

    def __init__(self, runtime: Any, dense_tables: dict[int, list[str]]) -> None:
        self._runtime = runtime
        self._dense_tables = dense_tables

    def pull(self) -> None:
        """Fetch all dense parameters; returns when they are here."""
        import paddle

        scope = paddle.static.global_scope()
        for table, names in self._dense_tables.items():
            self._runtime._worker.pull_dense_params(scope, table, names)

    def barrier(self) -> None:
        """Wait for all trainers."""
        from paddle.distributed import fleet

        fleet.barrier_worker()

    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all trainers."""
        from paddle.distributed import fleet

        return float(fleet.all_reduce(float(value), "max"))

    def stop(self) -> None:
        """Close the connection; the servers stay."""
        from paddle.distributed import fleet

        fleet.stop_worker()


class AsynchronousClient(_Connection):
    """The program of a step pushes its gradients, and nobody waits until they are applied."""

    def finish_step(self) -> None:
        """Pull, because Paddle's executor never does."""
        self.pull()

    def exchange(self, push_zeros: Callable[[], Any]) -> Callable[[], None]:
        """Return a push of zeros and a pull: what a trainer waits for."""

        def exchange() -> None:
            push_zeros()
            self.pull()

        return exchange

    def settle(self) -> Drain:
        """Wait until every pushed gradient of all trainers is applied, then pull.

        A flush looks every 100 ms whether gradients are pending, and not before the first of these. So a second one,
        of nothing, is taken off, and it is how much longer they may have been pending.
        """
        flushes = []
        for _ in range(2):
            start = time.perf_counter()
            self._runtime._worker.client_flush()
            flushes.append(time.perf_counter() - start)
        pending, empty = flushes
        self.barrier()
        self.pull()
        self.barrier()
        return Drain(max(0.0, pending - empty), empty)


class SynchronousClient(_Connection):
    """Each step ends when the servers have applied the mean of all trainers' gradients, and this trainer has pulled."""

    def __init__(self, runtime: Any, dense_tables: dict[int, list[str]]) -> None:
        super().__init__(runtime, dense_tables)
        self._communicator = SynchronousCommunicator(runtime, dense_tables)

    def finish_step(self) -> None:
        """Push the gradients, wait until their mean is applied, and pull.

        The last barrier is among the trainers: one that began its next barrier of the servers, while a server has not
        yet released another trainer from the last, would make both wait forever.
        """
        self._communicator.push()
        self._communicator.apply_mean()
        self.pull()
        self.barrier()

    def exchange(self, push_zeros: Callable[[], Any]) -> Callable[[], None]:
        """Make the zeros once; return the end of a step."""
        push_zeros()
        return self.finish_step

    def settle(self) -> Drain:
        """Return that nothing is pending: at the end of a step everything is applied and pulled."""
        return Drain()


def connect(strategy: str) -> Client:
    """Connect to the servers, once they answer; the first trainer gives them their parameters."""
    from paddle.distributed import fleet
    from paddle.distributed.ps.utils.public import get_the_one_recv_context

    for endpoint in fleet.server_endpoints():
        _common.wait_for(endpoint)
    runtime = fleet.fleet._runtime_handle
    runtime.ps_desc_builder.ps_desc.init_gflags = CLIENT_FLAGS
    fleet.init_worker()
    tables = dict(get_the_one_recv_context(runtime.context, split_dense_table=runtime.is_heter_ps_mode))
    return SynchronousClient(runtime, tables) if strategy == "sync" else AsynchronousClient(runtime, tables)


def join() -> None:
    """Join the job with the role that the environment of this process gives it."""
    from paddle.base import libpaddle
    from paddle.distributed import fleet

    # Lift brpc's limit of 64 MB: all parameters on one server travel in one message, ResNet-50's are 94 MB.
    library = ctypes.CDLL(libpaddle.__file__)
    for symbol in MESSAGE_LIMITS:
        ctypes.c_int64.in_dll(library, symbol).value = MESSAGE_BYTES
    fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False))
