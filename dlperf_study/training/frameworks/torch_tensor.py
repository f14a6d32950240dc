"""PyTorch's tensor parallelism: ranks divide the matrices of a transformer, and train on the same samples.

``_torch_divided.py`` says how. Groups of such ranks have samples of their own by ``DistributedDataParallel``.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.frameworks import _torch, _torch_divided, torch_ddp
from dlperf_study.training.frameworks._base import ClusterView
from dlperf_study.training.frameworks._obstacles import image_obstacles, micro_batch_obstacles
from dlperf_study.training.models._base import without_loss

STRATEGIES = ("tensor",)
BUILT = _torch_divided.BUILT | {"strategy": STRATEGIES}
SETTINGS = ("tensor_parallel", "sequence_parallel", "micro_batches")
STAYS = "its matrices are sharded: every step communicates activations"


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if configuration.tensor_parallel == 1:
        yield "tensor_parallel is 1, but torch_tensor shards matrices over 2 or more devices; use torch_ddp"
    yield from micro_batch_obstacles(configuration)
    yield from image_obstacles(configuration, "torch_tensor")
    yield from _torch_divided.undivided_sizes(configuration)
    yield from _torch.obstacles(configuration, cluster, version, SETTINGS, BUILT)


class TensorTrainer(_torch_divided.DividedTrainer):
    """One rank that has its part of each matrix."""

    computation_obstacle = STAYS

    def __init__(self, configuration: Configuration) -> None:
        self._divided_loss = ExitStack()
        self._parts: list[Any] = []
        super().__init__(configuration)

    @cached_property
    def _mesh(self) -> Any:
        """The groups of ranks, with one loss of divided logits."""
        from torch.distributed.tensor.parallel import loss_parallel

        layout = self._configuration.layout
        if layout.tensor > 1:
            self._divided_loss.enter_context(loss_parallel())
        return _torch_divided.device_mesh(layout, self._library.device)

    def _forget(self) -> None:
        """Drop all that has a group of ranks."""
        self._divided_loss.close()
        if self._collectives:
            self._collectives.calls.clear()
        self._parts.clear()
        del self.layer
        _torch_divided.forget_groups(self._mesh)
        super()._forget()

    def _trained_parameters(self) -> list[Any]:
        return self._parts or super()._trained_parameters()

    def _parallel(self) -> Any:
        from torch.nn.parallel import DistributedDataParallel

        with self._dividing():
            model = self.layer
            _torch_divided.divide(without_loss(model), self._mesh["tensor"], self._configuration.sequence_parallel)
            if self._configuration.layout.data > 1:
                model = DistributedDataParallel(model, device_mesh=self._mesh["data"], forward_sync_buffers=False)
            # Of a wrapped layer, the parts are no parameters once it has computed.
            self._parts = self._library.trained_parameters(model)
        return model

    def _optimizer(self) -> Any:
        return self._library.optimizer(_torch_divided.by_placement(self._parts))

    def _update(self, optimizer: Any, scaler: Any) -> None:
        _torch_divided.divide_gradients(self._parts)
        super()._update(optimizer, scaler)


FRAMEWORK = replace(
    torch_ddp.FRAMEWORK,
    name="torch_tensor",
    display_name="PyTorch TP",
    strategies=STRATEGIES,
    obstacles=obstacles,
    trainer=TensorTrainer,
    compilers={},
    alone="",
)
