"""PyTorch's data parallelism with a divided state (ZeRO): ``ZeroRedundancyOptimizer``, and ``fully_shard``.

Stage 1 divides the optimizer's state: each rank updates its part of the parameters and broadcasts it. With stages 2
and 3 each rank keeps its part of parameters, gradients and state; parameters are gathered once a step, or by layer.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.core.user_commands import install_command
from dlperf_study.programs.frameworks import _torch_training, _training, torch_ddp
from dlperf_study.programs.frameworks._base import ClusterView
from dlperf_study.programs.frameworks._obstacles import Levels, micro_batch_obstacles
from dlperf_study.programs.frameworks._torch_collectives import (
    Collective,
    described,
    observed_collectives,
    replayed,
)
from dlperf_study.programs.frameworks.torch_ddp import DataParallelTrainer
from dlperf_study.programs.models._base import network_of
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import COLLECTIVES, CollectiveKind
from dlperf_study.study.parallel_parameters import SHARDED_PARAMETERS

STRATEGIES = ("zero",)
LEVELS: Levels = _torch_training.LEVELS | {
    "strategy": STRATEGIES,
    "precision": ("fp32", "tf32", "amp_bf16"),
    "loss_scaling": ("none",),
    "compiler": ("none",),
    "gradient_compression": ("none",),
    "classifier": ("replicated",),
}
#: The least share of the parameters that a part of the network has if it is gathered by itself.
LEAST_SHARE = 0.01
STAYS = "its parameters are divided, so that no step can be done without gathering them"


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if not configuration.zero_stage:
        yield "zero_stage is 0, but torch_zero divides something (stages 1 to 3); torch_ddp does not"
    yield from micro_batch_obstacles(configuration)
    settings = ("zero_stage", "micro_batches")
    yield from _torch_training.obstacles(
        configuration, cluster, version, "torch", install_command("torch"), settings, LEVELS
    )


class ZeroTrainer(DataParallelTrainer):
    """One rank that divides the state of the training with the others; alone, the plain model."""

    #: ``fully_shard`` refuses parameters that are not contiguous.
    has_parameters_in_memory_format = False

    def __init__(self, configuration: Configuration) -> None:
        self._divides_parameters = configuration.zero_stage >= SHARDED_PARAMETERS
        self._is_local = False
        self._collectives: list[Collective] = []
        super().__init__(configuration)
        if self.world_size > 1:
            self.exchange_kind = COLLECTIVES

    @property
    def computation_obstacle(self) -> str:
        """Why no step can be done without its exchange; empty if one can."""
        return STAYS if self._divides_parameters and self.world_size > 1 else ""

    def first_step(self, batch: tuple[Any, ...]) -> str:
        """Do the first step, and observe its collectives; see ``TorchTrainer``."""
        with observed_collectives() as self._collectives:
            return super().first_step(batch)

    def observations(self) -> dict[str, Any]:
        """Return what was observed of the first step: what it exchanges, and which bytes this rank holds."""
        exchanges = {"exchanges": described(self._collectives)} if self.world_size > 1 else {}
        return super().observations() | exchanges

    def exchange_alone(self, kind: CollectiveKind | None = None) -> Callable[[], None]:
        """Return what does the collectives of a step, of one kind or all, with nothing to hide them."""
        chosen = [collective for collective in self._collectives if kind in (None, collective.kind)]
        return replayed(chosen, self._device)

    def exchange(self, size: int) -> Callable[[], None]:
        """Return what does all collectives of a step; ``size`` is that of all."""
        return self.exchange_alone()

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Keep stage 1 from exchanging: each rank updates its part of the parameters by its own gradients."""
        if self.computation_obstacle:
            raise RunError(self.computation_obstacle)
        self._is_local = True
        with super().local_updates():
            yield
        self._is_local = False

    def parameter_checksum(self) -> str:
        """Return a digest of the parameters; of divided ones, of this rank's part once it has changed.

        Before that, it is the digest of the whole model: ranks must divide the same one, which nobody sends to all.
        """
        if not self._divides_parameters or self.world_size == 1:
            return super().parameter_checksum()
        digest = self._checksum_of_part()
        return self._whole_checksum if digest == self._first_checksum else digest

    def _checksum_of_part(self) -> str:
        parts = [p.to_local().detach().cpu().numpy() for p in _torch_training.replicated_parameters(self._layer)]
        return _training.checksum(parts)

    def _parallel(self) -> Any:
        """Return the layer in which ranks divide their parameters, or of which they divide the optimizer's state."""
        if not self._divides_parameters:
            return super()._parallel()
        from torch.distributed.fsdp import fully_shard

        self._whole_checksum = super().parameter_checksum()
        gathers_by_layer = self._configuration.zero_stage > SHARDED_PARAMETERS
        for part in parts_of(self._layer):
            fully_shard(part, reshard_after_forward=gathers_by_layer)
        model = fully_shard(self._layer, reshard_after_forward=gathers_by_layer)
        self._first_checksum = self._checksum_of_part()
        return model

    def _optimizer(self) -> Any:
        if self._divides_parameters or self.world_size == 1:
            return super()._optimizer()
        from torch.distributed.optim import ZeroRedundancyOptimizer

        undivided = super()._optimizer()
        arguments = {
            name: value for name, value in undivided.defaults.items() if name in ("lr", "momentum", "foreach", "fused")
        }
        parameters = _torch_training.trainable_parameters(self._layer)
        return ZeroRedundancyOptimizer(parameters, type(undivided), **arguments)

    def _update(self, optimizer: Any, scaler: Any) -> None:
        """Update this rank's part of the parameters, and send it to the others unless steps are local."""
        if self._is_local:
            optimizer.optim.step()
        else:
            scaler.step(optimizer)


def parts_of(layer: Any) -> list[Any]:
    """Return the parts of a network that are gathered by themselves: its blocks, or else its outermost parts.

    Of these, those that have enough parameters. What is not in a block is gathered with the whole, as matrices that are
    tied must be in one part.
    """
    network = network_of(layer)
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
