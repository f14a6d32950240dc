"""A model as Paddle's static graph: what a trainer runs, with and without the exchange, and what a server loads."""

from typing import Any

from dlperf_study.frameworks import _common, _paddle_client, _paddle_common
from dlperf_study.study.configuration import Configuration


class StaticProgram:
    """The static graph of one trainer or server."""

    def __init__(self, configuration: Configuration) -> None:
        import paddle

        paddle.enable_static()
        size, count = configuration.image_size, configuration.batch_per_device
        self._images = paddle.static.data("images", [count, 3, size, size], "float32")
        self._labels = paddle.static.data("labels", [count, 1], "int64")
        if configuration.servers:
            _paddle_client.join()
        self.loss = _paddle_common.build_layer(configuration)(self._images, self._labels)
        self._minimise(configuration)
        self.main = paddle.static.default_main_program()
        self.startup = paddle.static.default_startup_program()
        self.send_only = self._send_only() if self._send_operators(self.main) else None

    def feed(self, images: Any, labels: Any) -> dict[str, Any]:
        """Return what the executor is fed at every step."""
        return {"images": images, "labels": labels.reshape(-1, 1)}

    def without_send(self) -> Any:
        """Return the program with no ``send`` operator: forward and backward alone."""
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

    def _minimise(self, configuration: Configuration) -> None:
        import paddle

        optimizer = paddle.optimizer.SGD(_common.LEARNING_RATE)
        if configuration.servers:
            optimizer = paddle.distributed.fleet.distributed_optimizer(optimizer, _paddle_client.asynchronous())
        optimizer.minimize(self.loss)

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
