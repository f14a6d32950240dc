"""Paddle's data parallelism with a divided optimizer's state (ZeRO, stage 1): the sharding of its ``fleet``.

Each gradient is reduced to the rank that updates its parameter, and that rank broadcasts the parameter.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import COLLECTIVES, CollectiveKind
from dlperf_study.training.frameworks import paddle_collective
from dlperf_study.training.frameworks._base import ClusterView
from dlperf_study.training.frameworks._collectives import StepCollectives
from dlperf_study.training.frameworks._obstacles import Levels
from dlperf_study.training.frameworks._paddle_collectives import observed_collectives, replayed
from dlperf_study.training.frameworks.paddle_collective import DataParallelTrainer
from dlperf_study.training.models._paddle_layers import trainable_parameters

STRATEGIES = ("zero",)
LEVELS: Levels = paddle_collective.LEVELS | {
    "strategy": STRATEGIES,
    "precision": ("fp32", "tf32", "amp_bf16"),
    "loss_scaling": ("none",),
    "compiler": ("none",),
    "classifier": ("replicated",),
}


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if not configuration.zero_stage:
        yield "zero_stage is 0, but paddle_zero divides the optimizer's state (stage 1); paddle_collective does not"
    yield from paddle_collective.collective_obstacles(configuration, cluster, version, LEVELS, settings=())


class ZeroTrainer(DataParallelTrainer):
    """One rank that updates its part of the parameters; alone, all. Its collectives are observed in the first step."""

    def __init__(self, configuration: Configuration) -> None:
        self._collectives = StepCollectives(configuration.layout, observed_collectives, replayed)
        self._is_local = False
        super().__init__(configuration)
        if self.world_size > 1:
            self.exchange_kind = COLLECTIVES

    def first_step(self, batch: tuple[Any, ...]) -> str:
        """Do the first step, and observe its collectives; see ``DataParallelTrainer``."""
        with self._collectives.observed():
            return super().first_step(batch)

    def observations(self) -> dict[str, Any]:
        """Return what was observed of the first step: what it exchanges, and which bytes this rank holds."""
        if self.world_size == 1:
            return super().observations()
        return super().observations() | {"exchanges": self._collectives.lines()}

    def exchange_alone(self, kind: CollectiveKind | None = None, group: str | None = None) -> Callable[[], None]:
        """Return what does the collectives of a step, of one kind, of one group, or all, with nothing to hide them."""
        return self._collectives.alone(kind, group)

    def exchange(self, size: int) -> Callable[[], None]:
        """Return what does all collectives of a step; ``size`` is that of all."""
        return self._collectives.alone()

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Keep steps from exchanging: each rank updates its part of the parameters by its own gradients."""
        with self._restored():
            self._is_local = True
            yield
            self._is_local = False

    def _update(self) -> None:
        """Exchange gradients, update this rank's part of the parameters, and send it, unless steps are local."""
        (self._own_optimizer if self._is_local else self._optimizer).step()

    def _parallel(self) -> Any:
        """Return the layer in which ranks divide the state of the optimizer, which then updates this rank's part."""
        from paddle.distributed import fleet

        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"sharding_degree": self.world_size, "dp_degree": 1, "mp_degree": 1, "pp_degree": 1}
        fleet.init(is_collective=True, strategy=strategy)
        model = fleet.distributed_model(self._layer)
        self._own_optimizer = self._optimizer
        self._optimizer = fleet.distributed_optimizer(self._optimizer)
        return model

    def _gradient_bytes(self) -> int:
        if self.world_size == 1:
            return 0
        parameters = trainable_parameters(self._layer)
        return sum(int(parameter.size) * parameter.element_size() for parameter in parameters)


FRAMEWORK = replace(
    paddle_collective.FRAMEWORK,
    name="paddle_zero",
    display_name="PaddlePaddle ZeRO",
    strategies=STRATEGIES,
    obstacles=obstacles,
    trainer=ZeroTrainer,
    compilers={},
)
