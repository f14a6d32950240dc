"""The interface of a framework and its trainer: devices, clocks and allocators of libraries among them.

The standard library and this package only: every training process imports this.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import CollectiveKind, Drain
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.job import Job
from dlperf_study.study.precision import LossScaling
from dlperf_study.training.frameworks._obstacles import Compilers

CONFIGURATION_VARIABLE = "DLPERF_STUDY_CONFIGURATION"
RUN_VARIABLE = "DLPERF_STUDY_RUN"
#: What exchanges gradients between CPUs; it is a part of the library, and has no version of its own.
GLOO = "gloo"


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

    @property
    def container(self) -> tuple[str, ...]:
        """What is put before the command of every task, so that it runs in a container of its own; empty for none."""

    @property
    def guard_python(self) -> str:
        """The Python interpreter of its nodes that has this package."""

    def python_for(self, framework: str) -> str:
        """Return the Python interpreter that has the framework's library."""


def exchange_library(support: GpuSupport | None, between_cpus: str = GLOO) -> str:
    """Return what exchanges gradients, as the rank log names it.

    ``support`` is that of a rank on a GPU; a library without NCCL exchanges there as between CPUs.
    """
    return f"NCCL {support.nccl}" if support and support.nccl else between_cpus


def nccl_version(code: int) -> str:
    """Return an ``NCCL_VERSION_CODE`` as a version: 22501 is 2.25.1, and 2804, of the scheme before 2.9, is 2.8.4."""
    if not code:
        return ""
    thousands = 10_000 if code >= 10_000 else 1_000
    return f"{code // thousands}.{code % thousands // 100}.{code % 100}"


def cudnn_version(code: int) -> str:
    """Return a ``CUDNN_VERSION`` as a version: 90501 is 9.5.1, and 8902, of the scheme before 9, is 8.9.2."""
    thousands = 10_000 if code >= 10_000 else 1_000
    return f"{code // thousands}.{code % thousands // 100}.{code % 100}"


def obstacle_of(error: Exception) -> str:
    """Return the line of an exception that names the error: libraries add call stacks and hints."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else type(error).__name__)


class Stopwatch(Protocol):
    """Marks times without waiting for the device, and reads them afterwards."""

    def mark(self) -> None:
        """Mark the current position in the device's stream of work."""

    def seconds(self) -> list[float]:
        """Return the seconds between successive marks; waits until the work is done."""


class HostStopwatch:
    """A stopwatch for devices that finish an operation before they return: the CPU."""

    def __init__(self) -> None:
        self._marks: list[int] = []

    def mark(self) -> None:
        """Read the monotonic clock."""
        self._marks.append(time.perf_counter_ns())

    def seconds(self) -> list[float]:
        """Return the seconds between successive marks."""
        return [(end - start) / 1e9 for start, end in pairwise(self._marks)]


class EventStopwatch:
    """A stopwatch for GPUs: events in the stream of the device, so that timing a step costs no synchronisation.

    ``new_event`` makes a library's event that records time.
    """

    def __init__(self, new_event: Callable[[], Any]) -> None:
        self._new_event = new_event
        self._events: list[Any] = []

    def mark(self) -> None:
        """Record an event after the work queued so far."""
        event = self._new_event()
        event.record()
        self._events.append(event)

    def seconds(self) -> list[float]:
        """Wait for the last event, then return the seconds between successive events."""
        self._events[-1].synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in pairwise(self._events)]


#: Bytes by name: ``allocated_bytes`` of tensors, ``reserved_bytes`` that were taken from the device for them.
Peaks = dict[str, int]


class Allocator(Protocol):
    """The counters of a library's allocator for the device of this process."""

    def restart(self) -> None:
        """Count peaks from what is allocated now."""

    def peaks(self) -> Peaks:
        """Return the peaks since ``restart``; empty where the library does not count."""


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

    def transfer_batch(self, *batch: Any) -> Any:
        """Return a batch as the steps take it, on the device.

        It is images [N, 3, S, S] and labels [N], of numpy or tensors; of a library that trains sequences, tokens too.
        """

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


class CollectiveTrainer(Trainer, Protocol):
    """One rank whose exchange is ``COLLECTIVES``: after the first step it knows which."""

    def exchange_alone(self, kind: CollectiveKind | None, group: str | None) -> Callable[[], None]:
        """Return what does the collectives of a step of one kind, of one group, or all, with nothing to hide them."""


def computation_obstacle(trainer: Trainer) -> str:
    """Return why a trainer can do no step without its exchange; empty if it can."""
    return str(getattr(trainer, "computation_obstacle", ""))


def observations_of(trainer: Trainer) -> dict[str, Any]:
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
