"""A model as Paddle's static graph, with and without the exchange, and the connection to the parameter servers."""

import ctypes
from functools import cached_property
from typing import Any

from dlperf_study.frameworks import _common, _paddle_common
from dlperf_study.study.configuration import Configuration

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

    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all trainers; it travels among them, not over the servers."""
        from paddle.distributed import fleet

        return float(fleet.all_reduce(float(value), "max"))

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
    """Join the job with the role that the environment of this process gives it."""
    from paddle.base import libpaddle
    from paddle.distributed import fleet

    # Lift brpc's limit of 64 MB: all parameters on one server travel in one message, ResNet-50's are 94 MB.
    library = ctypes.CDLL(libpaddle.__file__)
    for symbol in MESSAGE_LIMITS:
        ctypes.c_int64.in_dll(library, symbol).value = MESSAGE_BYTES
    fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False))


class StaticProgram:
    """The static graph of one trainer or server."""

    def __init__(self, configuration: Configuration) -> None:
        import paddle
        from paddle.distributed import fleet

        paddle.enable_static()
        size, count = configuration.image_size, configuration.batch_per_device
        self._images = paddle.static.data("images", [count, 3, size, size], "float32")
        self._labels = paddle.static.data("labels", [count, 1], "int64")
        if configuration.servers:
            join()
        self.loss = _paddle_common.build_layer(configuration)(self._images, self._labels)
        optimizer = paddle.optimizer.SGD(_common.LEARNING_RATE)
        if configuration.servers:
            # Gradients are pushed without waiting for other trainers.
            strategy = fleet.DistributedStrategy()
            strategy.a_sync = True
            optimizer = fleet.distributed_optimizer(optimizer, strategy)
        optimizer.minimize(self.loss)
        self.main = paddle.static.default_main_program()
        self.startup = paddle.static.default_startup_program()
        self.send_only = self._send_only() if self._send_operators(self.main) else None

    def feed(self, images: Any, labels: Any) -> dict[str, Any]:
        """Return what the executor is fed at every step."""
        return {"images": images, "labels": labels.reshape(-1, 1)}

    @cached_property
    def without_send(self) -> Any:
        """The program with no ``send`` operator: forward and backward alone."""
        program = self.main.clone()
        block = program.global_block()
        for index in reversed(range(len(block.ops))):
            if block.ops[index].type == "send":
                block._remove_op(index)
        return program

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

    def _send_only(self) -> Any:
        """Return a program that makes gradients of zeros and pushes them as the trained one does."""
        import paddle

        program = paddle.static.Program()
        (send,) = self._send_operators(self.main)
        block = program.global_block()
        for name in send.input("X"):
            shape = self.main.global_block().var(name).shape
            variable = block.create_var(name=name, shape=shape, dtype="float32")
            attributes = {"shape": list(shape), "value": 0.0, "dtype": variable.dtype}
            block.append_op(type="fill_constant", outputs={"Out": variable}, attrs=attributes)
        attributes = {name: send.attr(name) for name in ("send_varnames", "is_sparse", "table_id", "op_role")}
        inputs = {"X": [block.var(name) for name in send.input("X")]}
        block.append_op(type="send", inputs=inputs, outputs={"Out": []}, attrs=attributes)
        return program

    @staticmethod
    def _send_operators(program: Any) -> list[Any]:
        return [op for op in program.global_block().ops if op.type == "send"]
