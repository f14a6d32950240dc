"""The interface of a data loader. Standard library only: every training process imports this."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dlperf_study.core.user_commands import install_command
from dlperf_study.study.configuration import PARAMETERS, Configuration
from dlperf_study.study.parameter import IMAGES, Scalar

#: Images [N, 3, S, S] and labels [N]; of sequences as many arrays of tokens as their model takes.
Batch = tuple[Any, ...]
NO_IMAGES = PARAMETERS["image_dataset"].default


@dataclass(frozen=True)
class Consumer:
    """Who trains on the batches, and the library of its tensors.

    ``replica``: its number among the ``replicas`` that have samples of their own. ``process``: its rank; None where
    that is the same, as each rank has samples of its own.
    """

    replica: int
    replicas: int
    library: str
    process: int | None = None

    @property
    def rank(self) -> int:
        """The rank of the process."""
        if self.process is None:
            return self.replica
        return self.process


def batch_consumer(configuration: Configuration, rank: int, library: str) -> Consumer:
    """Return who trains on the batches of a rank."""
    layout = configuration.layout
    return Consumer(layout.replica(rank), layout.replicas, library, rank)


def batch_positions(configuration: Configuration, consumer: Consumer) -> Iterator[range]:
    """Yield the positions of the successive batches of a rank."""
    step = configuration.batch_per_device * consumer.replicas
    first = consumer.replica
    while True:
        yield range(first, first + step, consumer.replicas)
        first += step


class Batches(Protocol):
    """The batches of one rank, in order.

    Tokens are numpy int64.
    Images are numpy float32 [N, 3, S, S] and labels numpy int64 [N], unless the docstring of a source says that it
    makes tensors of the library, on the CPU. A batch stays as it is until the next one is requested.
    """

    def next(self) -> Batch:
        """Wait for the next batch; raises RunError if there is none."""

    def close(self) -> None:
        """End every thread and process that makes batches."""


class RequestedBatches:
    """Batches of an iterator without end, each made when it is requested."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches = batches

    def next(self) -> Batch:
        return next(self._batches)

    def close(self) -> None:
        """Do nothing: there is neither a thread nor a process."""


def random_generator(configuration: Configuration, replica: int) -> Any:
    """Return numpy's generator of a replica."""
    import numpy as np

    return np.random.default_rng([configuration.seed, replica])


def image_dataset_obstacles(configuration: Configuration, library: str) -> Iterator[str]:
    """Yield that the configuration names no images."""
    if configuration.image_dataset == NO_IMAGES:
        yield f"data_loader {configuration.data_loader} needs an image_dataset"


@dataclass(frozen=True)
class DataLoader:
    """One way to get batches, the same for every framework; ``docs/plugins.md`` describes the fields."""

    name: str
    display_name: str
    open: Callable[[Configuration, Consumer], Batches]
    obstacles: Callable[[Configuration, str], Iterator[str]] = lambda configuration, library: iter(())
    libraries: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    # A batch is made when it is requested.
    batches_ahead: Callable[[Configuration], int] = lambda configuration: 0
    produce: Callable[[Configuration, Consumer, str], None] | None = None
    remedy: str = install_command("data")
    is_fixed: bool = False
    samples: tuple[str, ...] = (IMAGES,)
    obstacle_here: Callable[[Configuration], str] = lambda configuration: ""

    def setting(self, configuration: Configuration, name: str) -> Scalar:
        """Return a setting: the configuration's, or its own choice."""
        value: Scalar = getattr(configuration, name)
        if value == PARAMETERS[name].default:
            return self.settings[name]
        return value

    def prefetch(self, configuration: Configuration) -> int:
        """Return how many batches are made ahead."""
        return int(self.setting(configuration, "prefetch_batches"))
