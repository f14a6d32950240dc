"""A model as Paddle's static graph, with and without the exchange."""

from functools import cached_property
from typing import Any

from dlperf_study.frameworks import _common, _paddle_common
from dlperf_study.frameworks._paddle_client import join
from dlperf_study.study.configuration import Configuration

#: What Paddle appends to the program of a trainer; the barrier in synchronous mode only.
SENDING_OPERATORS = ("send", "send_barrier")
#: Operators that multiply and add most, each with the name of its output.
PRODUCTS = {"conv2d": "Output", "matmul_v2": "Out"}


class StaticProgram:
    """The static graph of one trainer or server; ``main`` is as Paddle makes it."""

    def __init__(self, configuration: Configuration) -> None:
        import paddle
        from paddle.distributed import fleet

        paddle.enable_static()
        size, count = configuration.image_size, configuration.batch_per_device
        self._configuration = configuration
        shape = [count, size, size, 3] if configuration.memory_format == "nhwc" else [count, 3, size, size]
        self._images = paddle.static.data("images", shape, "float32")
        self._labels = paddle.static.data("labels", [count, 1], "int64")
        if configuration.servers:
            join()
        self.loss = _paddle_common.build_layer(configuration)(self._images, self._labels)
        optimizer = paddle.optimizer.SGD(_common.LEARNING_RATE)
        if configuration.servers:
            strategy = fleet.DistributedStrategy()
            strategy.a_sync = configuration.strategy == "async"
            optimizer = fleet.distributed_optimizer(optimizer, strategy)
        optimizer.minimize(self.loss)
        self.main = paddle.static.default_main_program()
        self.startup = paddle.static.default_startup_program()
        self._is_synchronous = configuration.strategy == "sync"

    def feed(self, images: Any, labels: Any) -> dict[str, Any]:
        """Return what the executor is fed at every step."""
        return {"images": _paddle_common.in_layout(self._configuration, images), "labels": labels.reshape(-1, 1)}

    @cached_property
    def step(self) -> Any:
        """The program that a trainer runs in each step.

        With asynchronous servers its ``send`` operator pushes the gradients. With synchronous ones it has none: it
        leaves the gradients in the global scope, from where the client pushes them.
        """
        if not self._is_synchronous:
            return self.main
        for name in self._send_operator().input("X"):
            self.main.global_block().var(name).persistable = True
        return self.without_send

    @cached_property
    def without_send(self) -> Any:
        """The program with no ``send`` operator: forward and backward alone."""
        program = self.main.clone()
        block = program.global_block()
        for index in reversed(range(len(block.ops))):
            if block.ops[index].type in SENDING_OPERATORS:
                block._remove_op(index)
        return program

    @cached_property
    def zero_gradients(self) -> Any:
        """A program that makes gradients of zeros, and pushes or keeps them as ``step`` does with its own."""
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
        """The name of the output of the first convolution, or else of the first matrix product; "" if none."""
        outputs: dict[str, str] = {}
        for operator in self.main.global_block().ops:
            if operator.type in PRODUCTS:
                outputs.setdefault(operator.type, operator.output(PRODUCTS[operator.type])[0])
        return next((outputs[kind] for kind in PRODUCTS if kind in outputs), "")

    @property
    def memory_format(self) -> str:
        """The memory format of the first convolution; "" if there is none."""
        convolutions = [operator for operator in self.main.global_block().ops if operator.type == "conv2d"]
        return str(convolutions[0].attr("data_format")).lower() if convolutions else ""

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
