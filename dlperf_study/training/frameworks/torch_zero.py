"""PyTorch's data parallelism with a divided state (ZeRO): ``ZeroRedundancyOptimizer``, and ``fully_shard``.

Stage 1 divides the optimizer's state: each rank updates its part of the parameters and broadcasts it. With stages 2
and 3 each rank keeps its part of parameters, gradients and state; parameters are gathered once a step, or by layer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.parallel_parameters import SHARDED_PARAMETERS
from dlperf_study.training.frameworks import _torch, _torch_divided, torch_ddp
from dlperf_study.training.frameworks._base import ClusterView
from dlperf_study.training.frameworks._obstacles import micro_batch_obstacles
from dlperf_study.training.frameworks._torch_divided import DividedTrainer
from dlperf_study.training.models._base import without_loss

STRATEGIES = ("zero",)
BUILT = _torch_divided.BUILT | {"strategy": STRATEGIES}
#: The least share of the parameters that a part of the network has if it is gathered by itself.
LEAST_SHARE = 0.01
STAYS = "its parameters are sharded: every step gathers them"


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if not configuration.zero_stage:
        yield "zero_stage is 0, but torch_zero needs stages 1 to 3; use torch_ddp"
    yield from micro_batch_obstacles(configuration)
    yield from _torch.obstacles(configuration, cluster, version, ("zero_stage", "micro_batches"), BUILT)


class ZeroTrainer(DividedTrainer):
    """One rank that divides the state of the training with the others."""

    def __init__(self, configuration: Configuration) -> None:
        self._divides_parameters = configuration.zero_stage >= SHARDED_PARAMETERS
        self._is_local = False
        super().__init__(configuration)
        if self._divides_parameters and self.world_size > 1:
            self.computation_obstacle = STAYS

    @contextmanager
    def _without_communication(self) -> Iterator[None]:
        """Let stage 1 update by its own gradients."""
        with super()._without_communication():
            self._is_local = True
            yield
            self._is_local = False

    def _parallel(self) -> Any:
        if not self._divides_parameters:
            return super()._parallel()
        from torch.distributed.fsdp import fully_shard

        gathers_by_layer = self._configuration.zero_stage > SHARDED_PARAMETERS
        with self._dividing():
            for part in gathered_parts(self.layer):
                fully_shard(part, reshard_after_forward=gathers_by_layer)
            return fully_shard(self.layer, reshard_after_forward=gathers_by_layer)

    def _optimizer(self) -> Any:
        if self._divides_parameters or self.world_size == 1:
            return super()._optimizer()
        from torch.distributed.optim import ZeroRedundancyOptimizer

        undivided = super()._optimizer()
        arguments = {
            name: value for name, value in undivided.defaults.items() if name in ("lr", "momentum", "foreach", "fused")
        }
        return ZeroRedundancyOptimizer(self._trained_parameters(), type(undivided), **arguments)

    def _update(self, optimizer: Any, scaler: Any) -> None:
        """Update this rank's part, and send it unless steps are local."""
        if self._is_local:
            optimizer.optim.step()
        else:
            scaler.step(optimizer)


def gathered_parts(layer: Any) -> list[Any]:
    """Return the parts of a network that are gathered separately."""
    # Of these, those that have enough parameters. What is not in a block is gathered with the whole, as matrices that
    # are tied must be in one part.
    network = without_loss(layer)
    if hasattr(network, "blocks"):
        return list(network.blocks.children())
    total = sum(p.numel() for p in layer.parameters())
    return [part for part in network.children() if sum(p.numel() for p in part.parameters()) >= LEAST_SHARE * total]


FRAMEWORK = replace(
    torch_ddp.FRAMEWORK,
    name="torch_zero",
    display_name="PyTorch ZeRO",
    strategies=STRATEGIES,
    obstacles=obstacles,
    trainer=ZeroTrainer,
    compilers={},
    alone="",
)
