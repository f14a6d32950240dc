"""One rank of a run whose gradients are communicated by collectives: the same for every library and strategy."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.study.communication import ALL_REDUCE, COLLECTIVES, NO_COMMUNICATION, CollectiveKind, Drain
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.precision import LossScaling
from dlperf_study.training.libraries import _base
from dlperf_study.training.libraries._base import Buffer, Library, Output, Step, Stopwatch
from dlperf_study.training.libraries._collectives import StepCollectives

#: What communicates gradients between CPUs; it is a part of the library, and has no version of its own.
GLOO = "gloo"


class Communication(ABC):
    """How the ranks of a job meet, wait for each other and average.

    ``threads``: how many threads of a process communicate gradients between CPUs.
    """

    threads: int

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks

    @abstractmethod
    def barrier(self) -> None:
        """Wait for all ranks."""

    @abstractmethod
    def maximum(self, value: float) -> float:
        """Return the largest ``value`` of all ranks."""

    @abstractmethod
    def all_reduce(self, tensors: Sequence[Any]) -> Callable[[], None]:
        """Return what all-reduces tensors as a step does its gradients."""

    def gpu_support(self) -> GpuSupport | None:
        """Return the support of GPUs with NCCL, or None."""
        return None

    def leave(self) -> None:  # noqa: B027
        """Leave the job."""


class CollectiveTrainer:
    """One rank whose gradients are communicated by collectives; alone, it communicates nothing.

    A strategy builds ``layer``, the model with its loss, and ``model``, the layer wrapped so that it communicates.
    ``computation_obstacle``: why no step can be done without its communication; empty if one can.
    """

    computation_obstacle = ""
    layer: Any
    model: Any = None
    train_step: Step
    computation_step: Callable[[Any], Any]

    def __init__(self, configuration: Configuration, library: Library, communication: Communication) -> None:
        self._configuration, self._library, self._communication = configuration, library, communication
        self.tensor_library = library.name
        self.rank, self.world_size = communication.rank, communication.ranks
        self.communication_kind = ALL_REDUCE if self.world_size > 1 else NO_COMMUNICATION
        self._first_outputs: list[Output] = []
        self._held_bytes: dict[str, int] = {}
        self._collectives: StepCollectives | None = None

    def observe_collectives(self) -> None:
        """Observe all collectives of the first step."""
        library = self._library
        self._collectives = StepCollectives(self._configuration.layout, library.collectives, library.device)
        if self.world_size > 1:
            self.communication_kind = COLLECTIVES

    def description(self) -> dict[str, Any]:
        """Return the facts of the rank log."""
        library = self._library
        elements, gradient_bytes, threads = 0, 0, 0
        for parameter in library.trained_parameters(self.layer):
            elements += library.buffer(parameter).elements
        if self.communication_kind != NO_COMMUNICATION:
            threads = self._communication.threads
            for parameter in library.replicated_parameters(self.layer):
                gradient_bytes += library.buffer(parameter).bytes
        description = library.description()
        description["device"] = "gpu" if library.uses_gpu() else "cpu"
        description |= {"parameters": elements, "gradient_bytes": gradient_bytes, "communication_threads": threads}
        support = self._communication.gpu_support() if self.world_size > 1 else None
        if support:
            description["communication_library"] = communication_library(support if library.uses_gpu() else None)
        return description | _base.model_facts(self._configuration)

    def transfer_batch(self, *batch: Any) -> Any:
        """Return a batch as tensors on the device."""
        return self._library.placed(*batch)

    def first_step(self, batch: Any) -> str:
        """Do the first step; return its number format."""
        observed: AbstractContextManager[Any] = self._collectives.observed() if self._collectives else nullcontext()
        with observed:
            self._first_outputs, self._held_bytes = self.train_step.observed(batch, self.layer)
        return _base.observed_format(self._first_outputs, self._library.products)

    def tuning(self) -> dict[str, str]:
        """Return the values of the settings that tune the library."""
        values = self.train_step.update_kernels()
        if self._library.uses_gpu():
            values["cudnn_autotune"] = self._library.autotuning()
        if self._first_outputs and self._first_outputs[0].memory_format:
            values["memory_format"] = self._first_outputs[0].memory_format
        return values

    def observations(self) -> dict[str, Any]:
        """Return collectives and held bytes of the first step."""
        observations: dict[str, Any] = {}
        if self._held_bytes:
            observations["held_bytes"] = self._held_bytes
        if self._collectives and self.world_size > 1:
            observations["collective_operations"] = self._collectives.lines()
        return observations

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Keep steps local, and take them back; raises RunError."""
        if self.computation_obstacle:
            raise RunError(self.computation_obstacle)
        with self.train_step.restored(), self._without_communication():
            yield

    def communicate(self, size: int) -> Callable[[], None]:
        """Return what communicates ``size`` bytes, or all collectives."""
        if self._collectives:
            return self._collectives.alone()
        buffers = self._buffers()
        counts = _base.leading_counts([buffer.bytes for buffer in buffers], size)
        tensors = []
        for buffer, count in zip(buffers, counts, strict=False):
            tensors.append(self._library.zeros(count // buffer.element_bytes, buffer.number_format))
        return self._communication.all_reduce(tensors)

    def communication_alone(self, kind: CollectiveKind | None = None, group: str | None = None) -> Callable[[], None]:
        """Return what does collectives of one kind or group."""
        assert self._collectives
        return self._collectives.alone(kind, group)

    def barrier(self) -> None:
        """Wait for all ranks, each with its device idle."""
        self._library.synchronise()
        if self.world_size > 1:
            self._communication.barrier()

    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all ranks."""
        if self.world_size > 1:
            return self._communication.maximum(value)
        return value

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch for this rank's device."""
        return self._library.stopwatch()

    def loss_value(self, loss: Any) -> float:
        """Return a loss as a number."""
        return float(loss)

    def loss_scaling(self) -> LossScaling | None:
        """Return the state of loss scaling, or None without it."""
        return self.train_step.loss_scaling()

    def settle(self) -> Drain:
        """Wait for the device: nothing is pending then."""
        self._library.synchronise()
        return Drain()

    def parameter_checksum(self) -> str:
        """Return a digest of the parameters that all ranks share."""
        return self._checksum(self._library.replicated_parameters(self.layer))

    def _checksum(self, parameters: Iterable[Any]) -> str:
        return _base.checksum(map(self._library.array, parameters))

    def close(self) -> None:
        """Leave the job, after the others have communicated."""
        self.barrier()
        self._forget()
        self._communication.leave()

    def _buffers(self) -> list[Buffer]:
        """Return the buffers of a step: one for each parameter."""
        return list(map(self._library.buffer, self._library.replicated_parameters(self.layer)))

    def _without_communication(self) -> AbstractContextManager[Any]:
        """Return the context in which computation steps communicate nothing."""
        context: AbstractContextManager[Any] = getattr(self.model, "no_sync", nullcontext)()
        return context

    def _forget(self) -> None:
        """Drop what refers to groups of ranks."""


def one_by_one(function: Callable[[Any], Any], tensors: Sequence[Any]) -> Callable[[], None]:
    """Return what calls a function with each tensor in turn."""

    def communicate() -> None:
        for tensor in tensors:
            function(tensor)

    return communicate


def communication_library(support: GpuSupport | None) -> str:
    """Return what communicates gradients, as the rank log names it.

    ``support`` is that of a rank on a GPU; a library without NCCL communicates there as between CPUs.
    """
    if support and support.nccl:
        return f"NCCL {support.nccl}"
    return GLOO
