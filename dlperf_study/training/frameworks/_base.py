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
        """What is put before the command of every task, so that it runs in a container of its own; empty for none."""

    @property
    def agent_python(self) -> str:
        """The Python interpreter of its nodes that has this package."""

    def python_for(self, framework: str) -> str:
        """Return the Python interpreter that has the framework's library."""


class Trainer(Protocol):
    """One rank of one run. Losses stay on the device until ``loss_value`` is called.

    ``tensor_library`` is the library of its tensors, for the data loader: Horovod trains on those of PyTorch.
    ``docs/adding-a-part.md`` has what each method does.
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
    """Return why a trainer can do no step without its communication; empty if it can."""
    return str(getattr(trainer, "computation_obstacle", ""))


def observations(trainer: Trainer) -> dict[str, Any]:
    """Return the fields of the rank log that a trainer has observed in the first step, if it observes any."""
    observed: dict[str, Any] = getattr(trainer, "observations", dict)()
    return observed


def no_wrong_version(version: str) -> str:
    """Return nothing: every version can train."""
    return ""


@dataclass(frozen=True)
class Framework:
    """One way to train: how to start it, how to be one rank of it, and what is specific to its library.

    ``display_name`` is what pages call it.
    One of ``packages`` must be installed; the versions of ``further_packages`` matter too.
    ``obstacles`` yields every reason why a configuration can't run, given the cluster and the library's version: None
    if it is not installed, "" if nobody knows because its Python can't be used.
    ``wrong_version`` returns why a version of the library can't train in any configuration, or nothing; for it,
    ``version_remedy`` is what to do.
    ``refused_strategies`` appear in published studies and are not built here, each with the reason.
    ``environment_prefixes``: training processes inherit the variables that begin so, for the library reads them;
    ``decided_variables``: but not those that begin so, for a configuration decides their values.
    ``gpu_support`` imports the library and returns what it can do with the GPUs here; None: it trains on CPUs only.
    ``compilers`` are those that are built, by their level, each with what imports the library and returns why it can't
    compile so here, or nothing; None: it always can.
    ``gpu_remedy`` is the command that installs a build for GPUs in this project's own environment.
    ``allocator`` makes what the library counts of its memory; None: it counts nothing.
    ``alone`` is the library that trains a single rank by itself: frameworks with the same one differ in nothing there.
    """

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
    wrong_version: Callable[[str], str] = no_wrong_version
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
        """Return the version of the library, given those of the installed packages; None: it is not installed.

        The versions of its further packages follow: ``0.28.1 with torch 2.13.0``.
        """
        version = next((versions[name] for name in self.packages if name in versions), None)
        further = [f"{name} {versions.get(name)}" for name in self.further_packages]
        return " with ".join([version, *further]) if version else None
