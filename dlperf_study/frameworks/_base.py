"""The interface of a framework and its trainer. Standard library only: every training process imports this."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from dlperf_study import data_sources, models
from dlperf_study.errors import StudyFileError, UnsupportedError
from dlperf_study.frameworks._allocators import Allocator
from dlperf_study.frameworks._gpu_support import GpuSupport
from dlperf_study.study.configuration import PARAMETERS, Configuration, parameters_of
from dlperf_study.study.job import DEVICE_ORDER, PCI_BUS_ORDER, VISIBLE_DEVICES, Job
from dlperf_study.study.parameter import Scalar, Scope
from dlperf_study.wording import level

CONFIGURATION_VARIABLE = "DLPERF_STUDY_CONFIGURATION"
RUN_VARIABLE = "DLPERF_STUDY_RUN"

#: The levels of each parameter that are built; all others are listed as unsupported, never replaced.
Levels = dict[str, tuple[Scalar | None, ...]]
#: Compilers by level: what returns why the library can't compile so here, or nothing; None: it always can.
Compilers = Mapping[str, Callable[[], str] | None]
#: What is built for every framework: of each parameter with levels the default, unless this names more.
BUILT_LEVELS: Levels = {
    **{name: (parameter.default,) for name, parameter in PARAMETERS.items() if parameter.levels},
    "optimizer": ("sgd", "momentum"),
    "classifier": ("replicated", "sharded"),
}
#: Parameters without levels that every framework reads, itself or by its model.
READ_BY_ALL = frozenset(
    (
        *("image_size", "classes", "nodes", "devices_per_node", "servers", "batch_per_device", "sample_ratio"),
        *("threads_per_device", "memory_limit_mib", "cpu_limit", "seed", "data_source"),
    )
)
#: All others without levels, each with its default: the only value that is supported where nothing reads it.
DEFAULT_SETTINGS = {
    name: parameter.default
    for name, parameter in parameters_of(Scope.WORKLOAD, Scope.NETWORK).items()
    if not parameter.levels and parameter.default is not None and name not in READ_BY_ALL
}


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


class Stopwatch(Protocol):
    """Marks times without waiting for the device, and reads them afterwards."""

    def mark(self) -> None:
        """Mark the current position in the device's stream of work."""

    def seconds(self) -> list[float]:
        """Return the seconds between successive marks; waits until the work is done."""


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


class HostStopwatch:
    """A stopwatch for devices that finish an operation before they return: the CPU."""

    def __init__(self) -> None:
        self._marks: list[int] = []

    def mark(self) -> None:
        """Read the monotonic clock."""
        self._marks.append(time.perf_counter_ns())

    def seconds(self) -> list[float]:
        """Return the seconds between successive marks."""
        return [(end - start) / 1e9 for start, end in zip(self._marks, self._marks[1:], strict=False)]


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
        return [a.elapsed_time(b) / 1e3 for a, b in zip(self._events, self._events[1:], strict=False)]


def unbuilt_levels(
    configuration: Configuration,
    levels: Levels,
    settings: tuple[str, ...] = (),
    refused: Mapping[Any, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield each level that a configuration requests and that no code here implements.

    ``settings`` are the names in ``DEFAULT_SETTINGS`` that the framework reads; ``refused`` are the levels that it
    refuses for a specific reason.
    """
    framework = configuration.framework
    for name, built in levels.items():
        value = getattr(configuration, name)
        if value not in built:
            choices = ", ".join(map(level, built))
            yield refused.get(value) or f"{name} {level(value)} is not built for {framework} (built: {choices})"
    model, source = configuration.model, configuration.data_source
    read_by_model = models.load(model).settings if model in models.names() else ()
    read_by_source = data_sources.load(source).settings if source in data_sources.names() else ()
    for name, default in DEFAULT_SETTINGS.items():
        value = getattr(configuration, name)
        if value != default and name not in (*settings, *read_by_model, *read_by_source):
            yield f"{name} is {level(value)}, but none of {framework}, {model} and {source} has such a setting"


def require_compiler(configuration: Configuration, compilers: Compilers) -> None:
    """Raise UnsupportedError with the library's reason if the compiler of a configuration does not work here."""
    why = compilers.get(configuration.compiler)
    if why and (obstacle := why()):
        raise UnsupportedError(f"compiler {configuration.compiler}: {obstacle}")


def model_obstacles(configuration: Configuration, library: str) -> Iterator[str]:
    """Yield each reason why the model can't be built with the library as configured."""
    try:
        model = models.load(configuration.model)
    except StudyFileError as error:
        yield str(error)
    else:
        yield from model.obstacles(configuration, library)


def data_source_obstacles(configuration: Configuration, library: str) -> Iterator[str]:
    """Yield each reason why the data source can't make batches for tensors of the library as configured."""
    try:
        source = data_sources.load(configuration.data_source)
    except StudyFileError as error:
        yield str(error)
        return
    if source.libraries and library not in source.libraries:
        yield f"data_source {source.name} is not built for {library} (built: {', '.join(source.libraries)})"
    yield from source.obstacles(configuration, library)


def missing_library(
    library: str, version: str | None, remedy: str = "pip install -r requirements.lock"
) -> Iterator[str]:
    """Yield that a library is not installed, if its version is None, and the command that installs it."""
    if version is None:
        here = f"`{remedy}` installs it in this project's own environment"
        yield f"{library} is not installed in the Python that the cluster file names for it; {here}"


def network_environment(configuration: Configuration, cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the variables that make libraries exchange over the network interface by which nodes reach each other.

    By default, gloo uses the address of the host's name, which often is a loopback address. NCCL finds better links
    than sockets by itself, so its interface is set only if the cluster file names one.
    """
    if configuration.nodes == 1:
        return {}
    variables = {"GLOO_SOCKET_IFNAME": f"{{interface_{node}}}"}
    if cluster.network_interface:
        variables["NCCL_SOCKET_IFNAME"] = cluster.network_interface
    return variables


def gpus_per_node(configuration: Configuration, cluster: ClusterView) -> int:
    """Return how many GPUs the ranks of a node share."""
    return configuration.devices_per_node if cluster.device == "gpu" else 0


def gpu_environment(cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the variables that name the GPUs which the ranks of a node may use; none on a CPU."""
    if cluster.device != "gpu":
        return {}
    return {DEVICE_ORDER: PCI_BUS_ORDER, VISIBLE_DEVICES: f"{{devices_{node}}}"}


def common_environment(configuration: Configuration) -> dict[str, str]:
    """Return the environment of every training process: the folder of its run, and its number of threads."""
    threads = str(configuration.threads_per_device)
    return {
        CONFIGURATION_VARIABLE: "{run}/configuration.json",
        RUN_VARIABLE: "{run}",
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "PYTHONUNBUFFERED": "1",
    }
