"""The interface of a framework and its trainer. Standard library only: every training process imports this."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from dlperf_study.frameworks._allocators import Allocator
from dlperf_study.frameworks._gpu_support import GpuSupport
from dlperf_study.frameworks._obstacles import Compilers
from dlperf_study.frameworks._stopwatches import Stopwatch
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Job

CONFIGURATION_VARIABLE = "DLPERF_STUDY_CONFIGURATION"
RUN_VARIABLE = "DLPERF_STUDY_RUN"


class ClusterView(Protocol):
    """The part of a cluster that a framework needs in order to describe a job."""

    @property
    def device(self) -> str:
        """The device of a process: ``cpu`` or ``gpu``."""

    @property
    def network_interface(self) -> str:
        """The network interface over which nodes exchange; "" if they may choose it."""

    @property
    def meet_seconds(self) -> float:
        """How long ranks may take to meet."""

    def python_for(self, framework: str) -> str:
        """Return the Python interpreter that has the framework's library."""


@dataclass(frozen=True)
class Drain:
    """How long a rank's updates were pending: at least ``seconds``, and at most ``resolution_seconds`` longer."""

    seconds: float = 0.0
    resolution_seconds: float = 0.0


@dataclass(frozen=True)
class LossScaling:
    """The factor of the loss now, and how many steps so far updated nothing: their gradients were not finite."""

    scale: float
    skipped_steps: int


class Trainer(Protocol):
    """One rank of one run. Losses stay on the device until ``loss_value`` is called.

    ``tensor_library`` is the library of its tensors, for the data source: Horovod trains on those of PyTorch.
    """

    rank: int
    world_size: int
    exchange_kind: str
    tensor_library: str

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log about library, device and model."""

    def on_device(self, images: Any, labels: Any) -> Any:
        """Return a batch as the steps take it: on the device. Images [N, 3, S, S], labels [N], of numpy or tensors."""

    def first_step(self, batch: Any) -> str:
        """Do the first ``train_step``; return the number format in which the network computed it.

        It is a value of ``COMPUTED_IN``, and is observed: a library may compute in another than it was asked for.
        """

    def tuning(self) -> dict[str, str]:
        """Return, after the first step, the levels of ``TUNED`` that the library has, as far as it can be asked."""

    def train_step(self, batch: Any) -> Any:
        """Do forward, backward, exchange and update of one batch; return the loss."""

    def computation_step(self, batch: Any) -> Any:
        """Do the same step without the exchange of gradients; return the loss."""

    def exchange(self, size: int) -> Callable[[], None]:
        """Return what exchanges the first ``size`` bytes of the gradients as a step does, with nothing to hide it.

        Where gradients are pushed to servers, ``size`` is that of all gradients: a part of them can't be pushed alone.
        """

    def local_updates(self) -> AbstractContextManager[None]:
        """Switch the exchange of gradients off for a whole window; then everything trained is as it was before."""

    def barrier(self) -> None:
        """Wait for all ranks, and for this rank's device."""

    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all ranks, each of which must call it; never inside a window."""

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch for this rank's device."""

    def loss_value(self, loss: Any) -> float:
        """Return a loss as a number; may wait for the device."""

    def loss_scaling(self) -> LossScaling | None:
        """Return the state of loss scaling, or None without it; may wait for the device."""

    def settle(self) -> Drain:
        """Wait until all updates are applied everywhere; return how long those of this rank were pending."""

    def parameter_checksum(self) -> str:
        """Return a digest of the parameters that must be equal on every rank."""

    def close(self) -> None:
        """Leave the job."""


def no_wrong_version(version: str) -> str:
    """Return nothing: every version can train."""
    return ""


@dataclass(frozen=True)
class Framework:
    """One way to train: how to start it, how to be one rank of it, and what is specific to its library.

    One of ``packages`` must be installed; the versions of ``further_packages`` matter too.
    ``obstacles`` yields every reason why a configuration can't run, given the cluster and the library's version: None
    if it is not installed, "" if nobody knows because its Python can't be used.
    ``wrong_version`` returns why a version of the library can't train in any configuration, or nothing; for it,
    ``version_remedy`` is what to do.
    ``refused_strategies`` appear in published studies and are not built here, each with the reason.
    ``tracing`` is the environment in which the library writes a timeline of itself, empty if it can't.
    ``environment_prefixes``: training processes inherit the variables that begin so, for the library reads them;
    ``decided_variables``: but not those that begin so, for a configuration decides their values.
    ``gpu_support`` imports the library and returns what it can do with the GPUs here; None: it trains on CPUs only.
    ``compilers`` are those that are built, by their level, each with what imports the library and returns why it can't
    compile so here, or nothing; None: it always can.
    ``gpu_remedy`` is the command that installs a build for GPUs in this project's own environment.
    ``allocator`` makes what the library counts of its memory; None: it counts nothing.
    """

    name: str
    library: str
    packages: tuple[str, ...]
    strategies: tuple[str, ...]
    obstacles: Callable[[Configuration, ClusterView, str | None], Iterator[str]]
    job: Callable[[Configuration, ClusterView], Job]
    trainer: Callable[[Configuration], Trainer]
    server: Callable[[Configuration], None] | None = None
    further_packages: tuple[str, ...] = ()
    wrong_version: Callable[[str], str] = no_wrong_version
    version_remedy: str = "pip install -r requirements.lock"
    refused_strategies: dict[str, str] = field(default_factory=dict)
    tracing: dict[str, str] = field(default_factory=dict)
    environment_prefixes: tuple[str, ...] = ()
    decided_variables: tuple[str, ...] = ()
    gpu_support: Callable[[], GpuSupport] | None = None
    compilers: Compilers = field(default_factory=dict)
    gpu_remedy: str = ""
    allocator: Callable[[], Allocator] | None = None

    def version_in(self, versions: Mapping[str, str]) -> str | None:
        """Return the version of the library, given those of the installed packages; None: it is not installed.

        The versions of its further packages follow: ``0.28.1 with torch 2.13.0``.
        """
        version = next((versions[name] for name in self.packages if name in versions), None)
        further = [f"{name} {versions.get(name)}" for name in self.further_packages]
        return " with ".join([version, *further]) if version else None
