"""Paddle's data parallelism with a divided optimizer's state (ZeRO, stage 1): the sharding of its ``fleet``.

Each gradient is reduced to the rank that updates its parameter, and that rank broadcasts the parameter.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.frameworks import paddle_collective
from dlperf_study.training.frameworks._base import ClusterView
from dlperf_study.training.frameworks._obstacles import BUILT_FOR_SHARDING, Values
from dlperf_study.training.frameworks.paddle_collective import DataParallelTrainer

STRATEGIES = ("zero",)
BUILT: Values = paddle_collective.BUILT | BUILT_FOR_SHARDING | {"strategy": STRATEGIES}


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if not configuration.zero_stage:
        yield "zero_stage is 0, but paddle_zero shards the state of the optimizer (stage 1); use paddle_collective"
    yield from paddle_collective.collective_obstacles(configuration, cluster, version, BUILT, settings=())


class ZeroTrainer(DataParallelTrainer):
    """One rank that updates its part of the parameters; alone, all. Its collectives are observed in the first step."""

    def __init__(self, configuration: Configuration) -> None:
        self._is_local = False
        super().__init__(configuration)
        self.observe_collectives()

    @contextmanager
    def _without_communication(self) -> Iterator[None]:
        self._is_local = True
        yield
        self._is_local = False

    def _update(self) -> None:
        (self._own_optimizer if self._is_local else self._optimizer).step()

    def _parallel(self) -> Any:
        from paddle.distributed import fleet

        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"sharding_degree": self.world_size, "dp_degree": 1, "mp_degree": 1, "pp_degree": 1}
        fleet.init(is_collective=True, strategy=strategy)
        model = fleet.distributed_model(self.layer)
        self._own_optimizer = self._optimizer
        self._optimizer = fleet.distributed_optimizer(self._optimizer)
        return model


FRAMEWORK = replace(
    paddle_collective.FRAMEWORK,
    name="paddle_zero",
    display_name="PaddlePaddle ZeRO",
    strategies=STRATEGIES,
    obstacles=obstacles,
    trainer=ZeroTrainer,
    compilers={},
)
