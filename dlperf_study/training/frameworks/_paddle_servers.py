"""A trainer with Paddle's parameter servers: its static graph, and its connection, asynchronous or synchronous.

Paddle 3.0.0's servers average: a table of a synchronous job adds the gradients that it gets, and when all trainers are
in its barrier, it applies their mean once. What is missing is the trainer's side. The program of a step ends with
``send_barrier``, whose communicator the runtime makes for other modes only: hence the segmentation fault. Made here,
it would run a thread that looks every 10 ms whether a step has ended, so it is not started. Its function that pushes
the gradients of a table, and returns when the servers have them, has no Python name; it is called by its symbol.
"""

import ctypes
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.study.communication import Drain
from dlperf_study.training.frameworks import _processes
from dlperf_study.training.libraries import _base
from dlperf_study.training.libraries.paddle import Paddle, environment_rank

#: What Paddle appends to the program of a trainer; the barrier in synchronous mode only.
SENDING_OPERATORS = ("send", "send_barrier")
#: Operators that multiply and add most, each with the name of its output.
PRODUCTS = {"conv2d": "Output", "matmul_v2": "Out"}


class StaticProgram:
    """The static graph of one trainer or server; ``main`` is as Paddle makes it."""

    def __init__(self, library: Paddle) -> None:
        import paddle
        from paddle.distributed import fleet

        paddle.enable_static()
        configuration = library.configuration
        size, count = configuration.image_size, configuration.batch_per_device
        self._library = library
        shape = [count, size, size, 3] if configuration.memory_format == "nhwc" else [count, 3, size, size]
        self._images = paddle.static.data("images", shape, "float32")
        self._labels = paddle.static.data("labels", [count, 1], "int64")
        if configuration.parameter_servers:
            join()
        self.loss = library.built(*environment_rank())(self._images, self._labels)
        optimizer = paddle.optimizer.SGD(_base.LEARNING_RATE)
        if configuration.parameter_servers:
            strategy = fleet.DistributedStrategy()
            strategy.a_sync = configuration.strategy == "async"
            optimizer = fleet.distributed_optimizer(optimizer, strategy)
        optimizer.minimize(self.loss)
        self.main = paddle.static.default_main_program()
        self.startup = paddle.static.default_startup_program()
        self._is_synchronous = configuration.strategy == "sync"

    def feed(self, images: Any, labels: Any) -> dict[str, Any]:
        """Return what the executor is fed at every step."""
        import numpy as np

        # While static graphs are enabled, Paddle's own loader returns tensors that have no methods.
        images, labels = np.asarray(images), np.asarray(labels)
        return {"images": self._library.in_layout(images), "labels": labels.reshape(-1, 1)}

    @cached_property
    def step(self) -> Any:
        """The program that a trainer runs in each step."""
        # With asynchronous servers its ``send`` operator pushes the gradients. With synchronous ones it has none: it
        # leaves the gradients in the global scope, from where the client pushes them.
        if not self._is_synchronous:
            return self.main
        for name in self._send_operator().input("X"):
            self.main.global_block().var(name).persistable = True
        return self.local_program

    @cached_property
    def local_program(self) -> Any:
        """The program with no ``send`` operator: forward and backward alone."""
        program = self.main.clone()
        block = program.global_block()
        for index in reversed(range(len(block.ops))):
            if block.ops[index].type in SENDING_OPERATORS:
                block._remove_op(index)
        return program

    @cached_property
    def zero_gradients(self) -> Any:
        """A program that pushes or keeps gradients of zeros."""
        import paddle

        program = paddle.static.Program()
        send = self._send_operator()
        block = program.global_block()
        for name in send.input("X"):
            shape = self.main.global_block().var(name).shape
            variable = block.create_var(name=name, shape=shape, dtype="float32", persistable=self._is_synchronous)
            attributes = {"shape": list(shape), "value": 0.0, "dtype": variable.dtype}
            block.append_op(type="fill_constant", outputs={"Out": variable}, attrs=attributes)
        if not self._is_synchronous:
            attributes = {name: send.attr(name) for name in ("send_varnames", "is_sparse", "table_id", "op_role")}
            inputs = {"X": [block.var(name) for name in send.input("X")]}
            block.append_op(type="send", inputs=inputs, outputs={"Out": []}, attrs=attributes)
        return program

    @property
    def first_product(self) -> str:
        """The output of the first convolution, or matrix product."""
        outputs: dict[str, str] = {}
        for operator in self.main.global_block().ops:
            if operator.type in PRODUCTS:
                outputs.setdefault(operator.type, operator.output(PRODUCTS[operator.type])[0])
        return next((outputs[kind] for kind in PRODUCTS if kind in outputs), "")

    @property
    def memory_format(self) -> str:
        """The memory format of the first convolution, or nothing."""
        convolutions = [operator for operator in self.main.global_block().ops if operator.type == "conv2d"]
        if convolutions:
            return str(convolutions[0].attr("data_format")).lower()
        return ""

    def parameter_elements(self) -> list[int]:
        """Return the number of elements of each trained parameter."""
        import numpy as np

        return [int(np.prod(p.shape)) for p in self.main.all_parameters() if p.trainable]

    def parameter_values(self) -> list[Any]:
        """Return the values of the trained parameters, sorted by name."""
        import numpy as np
        import paddle

        scope = paddle.static.global_scope()
        names = sorted(p.name for p in self.main.all_parameters() if p.trainable)
        return [np.asarray(scope.find_var(name).get_tensor()) for name in names]

    def _send_operator(self) -> Any:
        (send,) = [operator for operator in self.main.global_block().ops if operator.type == "send"]
        return send


CLIENT_FLAGS = "-pserver_push_dense_merge_limit=1"
#: Settings of brpc that Paddle 3.0.0 has no way to pass on, by their symbols in its library.
MESSAGE_LIMITS = ("_ZN4brpc5fLU6419FLAGS_max_body_sizeE", "_ZN4brpc5fLI6432FLAGS_socket_max_unwritten_bytesE")
MESSAGE_BYTES = 2**31 - 1


class Client(ABC):
    """What a trainer does with its servers, and with other trainers."""

    def __init__(self, runtime: Any, dense_tables: dict[int, list[str]]) -> None:
        self._runtime = runtime
        self._dense_tables = dense_tables

    @abstractmethod
    def finish_step(self) -> None:
        """Communicate the rest of a step."""

    @abstractmethod
    def communicate(self, push_zeros: Callable[[], Any]) -> Callable[[], None]:
        """Return one communication alone, of pushed zeros."""

    @abstractmethod
    def settle(self) -> Drain:
        """Wait for all updates; return how long own ones took."""

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


class AsynchronousClient(Client):
    """The program of a step pushes its gradients, and nobody waits until they are applied."""

    def finish_step(self) -> None:
        """Pull, because Paddle's executor never does."""
        self.pull()

    def communicate(self, push_zeros: Callable[[], Any]) -> Callable[[], None]:
        def communicate() -> None:
            push_zeros()
            self.pull()

        return communicate

    def settle(self) -> Drain:
        """Wait until all pushed gradients are applied, then pull."""
        # A flush looks every 100 ms whether gradients are pending, and not before the first of these. So a second one,
        # of nothing, is taken off, and it is how much longer they may have been pending.
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


class SynchronousClient(Client):
    """Each step ends when the servers have applied the mean of all trainers' gradients, and this trainer has pulled."""

    def __init__(self, runtime: Any, dense_tables: dict[int, list[str]]) -> None:
        super().__init__(runtime, dense_tables)
        self._communicator = SynchronousCommunicator(runtime, dense_tables)

    def finish_step(self) -> None:
        """Push the gradients, wait until their mean is applied, and pull."""
        # The last barrier is among the trainers: one that began its next barrier of the servers, while a server has not
        # yet released another trainer from the last, would make both wait forever.
        self._communicator.push()
        self._communicator.apply_mean()
        self.pull()
        self.barrier()

    def communicate(self, push_zeros: Callable[[], Any]) -> Callable[[], None]:
        push_zeros()
        return self.finish_step

    def settle(self) -> Drain:
        return Drain()


def connect(strategy: str) -> Client:
    """Connect to the servers once they answer."""
    from paddle.distributed import fleet
    from paddle.distributed.ps.utils.public import get_the_one_recv_context

    for endpoint in fleet.server_endpoints():
        _processes.wait_for(endpoint)
    runtime = fleet.fleet._runtime_handle
    runtime.ps_desc_builder.ps_desc.init_gflags = CLIENT_FLAGS
    fleet.init_worker()
    tables = dict(get_the_one_recv_context(runtime.context, split_dense_table=runtime.is_heter_ps_mode))
    if strategy == "sync":
        return SynchronousClient(runtime, tables)
    return AsynchronousClient(runtime, tables)


def join() -> None:
    """Join the job in the role of this process."""
    from paddle.base import libpaddle
    from paddle.distributed import fleet

    # Lift brpc's limit of 64 MB: all parameters on one server travel in one message, ResNet-50's are 94 MB.
    library = ctypes.CDLL(libpaddle.__file__)
    for symbol in MESSAGE_LIMITS:
        ctypes.c_int64.in_dll(library, symbol).value = MESSAGE_BYTES
    fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False))


PUSH_OF_A_TABLE = "_ZN6paddle11distributed12Communicator12RpcSendDenseERKNS0_11CommContextERKNS_9framework5ScopeE"
THE_COMMUNICATOR = "_ZN6paddle11distributed12Communicator13communicator_E"
#: The barrier of the servers that applies the mean, by its number in Paddle's source.
SEND_BARRIER = 0


class SynchronousCommunicator:
    """Pushes this trainer's gradients, and has their mean over all trainers applied."""

    def __init__(self, runtime: Any, dense_tables: dict[int, list[str]]) -> None:
        """Make the communicator of a connected trainer; raises RunError."""
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
        """Push the gradients from the global scope to the servers."""
        for push in self._pushes:
            self._push_of_a_table(*push)

    def apply_mean(self) -> None:
        """Wait until every server has applied the mean of all trainers."""
        self._worker.barrier(SEND_BARRIER)


def _communicator(runtime: Any, dense_tables: dict[int, list[str]]) -> Any:
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
    """Return the address of a pybind11 instance's C++ object."""
    return ctypes.c_void_p.from_address(id(instance) + object.__basicsize__).value
