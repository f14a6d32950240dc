"""The interface of a framework and its trainer.

The standard library and this package only: every training process imports this.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from dlperf_study.study.communication import CollectiveKind, Drain
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.job import Job
from dlperf_study.study.precision import LossScaling
from dlperf_study.training.frameworks._obstacles import Compilers
from dlperf_study.training.libraries._base import Allocator, Stopwatch

CONFIGURATION_VARIABLE = "DLPERF_STUDY_CONFIGURATION"
RUN_VARIABLE = "DLPERF_STUDY_RUN"


class ClusterView(Protocol):
    """The part of a cluster that a framework needs in order to describe a job."""

    @property
    def device(self) -> str:
        """The device of a process: ``cpu`` or ``gpu``."""

    @property
    def network_interface(self) -> str:
        """The network interface over which nodes communicate; "" if they may choose it."""

    @property
    def meet_seconds(self) -> float:
        """How long ranks may take to meet."""

    @property
    def container(self) -> tuple[str, ...]:
        """The command prefix of every task; empty for none."""

    @property
    def agent_python(self) -> str:
        """The Python interpreter of its nodes that has this package."""

    def python_for(self, framework: str) -> str:
        """Return the Python interpreter that has the framework's library."""


class Trainer(Protocol):
    """One rank of one run. Losses stay on the device until ``loss_value`` is called.

    ``tensor_library`` is the library of its tensors, for the data loader: Horovod trains on those of PyTorch.
    ``docs/plugins.md`` has what each method does.
    """

    rank: int
    world_size: int
    communication_kind: str
    tensor_library: str

    def description(self) -> dict[str, Any]: ...
    def transfer_batch(self, *batch: Any) -> Any: ...
    def first_step(self, batch: Any) -> str: ...
    def tuning(self) -> dict[str, str]: ...
    def train_step(self, batch: Any) -> Any: ...
    def computation_step(self, batch: Any) -> Any: ...
    def communicate(self, size: int) -> Callable[[], None]: ...
    def local_updates(self) -> AbstractContextManager[None]: ...
    def barrier(self) -> None: ...
    def agreed_maximum(self, value: float) -> float: ...
    def stopwatch(self) -> Stopwatch: ...
    def loss_value(self, loss: Any) -> float: ...
    def loss_scaling(self) -> LossScaling | None: ...
    def settle(self) -> Drain: ...
    def parameter_checksum(self) -> str: ...
    def close(self) -> None: ...


class ObservedTrainer(Trainer, Protocol):
    """One rank whose communication is ``COLLECTIVES``: after the first step it knows which."""

    def communication_alone(self, kind: CollectiveKind | None, group: str | None) -> Callable[[], None]: ...


def computation_obstacle(trainer: Trainer) -> str:
    """Return why no step can be without communication, or nothing."""
    return str(getattr(trainer, "computation_obstacle", ""))


def observations(trainer: Trainer) -> dict[str, Any]:
    """Return what a trainer observed in the first step."""
    observed: dict[str, Any] = getattr(trainer, "observations", dict)()
    return observed


@dataclass(frozen=True)
class Framework:
    """One way to train; ``docs/plugins.md`` describes the fields."""

    name: str
    display_name: str
    library: str
    packages: tuple[str, ...]
    strategies: tuple[str, ...]
    obstacles: Callable[[Configuration, ClusterView, str | None], Iterator[str]]
    job: Callable[[Configuration, ClusterView], Job]
    trainer: Callable[[Configuration], Trainer]
    server: Callable[[Configuration], None] | None = None
    further_packages: tuple[str, ...] = ()
    wrong_version: Callable[[str], str] = lambda version: ""
    version_remedy: str = ""
    refused_strategies: dict[str, str] = field(default_factory=dict)
    environment_prefixes: tuple[str, ...] = ()
    decided_variables: tuple[str, ...] = ()
    gpu_support: Callable[[], GpuSupport] | None = None
    compilers: Compilers = field(default_factory=dict)
    gpu_remedy: str = ""
    allocator: Callable[[], Allocator] | None = None
    alone: str = ""

    def version_in(self, versions: Mapping[str, str]) -> str | None:
        """Return the library's version among installed packages, or None."""
        # The versions of its further packages follow: ``0.28.1 with torch 2.13.0``.
        version = next((versions[name] for name in self.packages if name in versions), None)
        further = [f"{name} {versions.get(name)}" for name in self.further_packages]
        if version:
            return " with ".join([version, *further])
        return None
