"""The interface of a data loader. Standard library only: every training process imports this."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dlperf_study.core.user_commands import install_command
from dlperf_study.study.configuration import PARAMETERS, Configuration
from dlperf_study.study.parameter import IMAGES, Scalar

#: Images [N, 3, S, S] and labels [N]; of sequences as many arrays of tokens as their model takes.
Batch = tuple[Any, ...]


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
        return self.replica if self.process is None else self.process


def batch_consumer(configuration: Configuration, rank: int, library: str) -> Consumer:
    """Return who trains on the batches of a rank: ranks that share a copy of the model have the same samples."""
    layout = configuration.layout
    return Consumer(layout.replica(rank), layout.replicas, library, rank)


def batch_positions(configuration: Configuration, consumer: Consumer) -> Iterator[range]:
    """Yield, without end, the positions of the successive batches of a rank."""
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
        """Wait for the next batch; raises RunError if what makes the batches has failed or ended."""

    def close(self) -> None:
        """End every thread and process that makes batches; may be called after a failure."""


def no_obstacles(configuration: Configuration, library: str) -> Iterator[str]:
    """Yield nothing: the source can be used in every configuration that it is built for."""
    yield from ()


def no_obstacle_here(configuration: Configuration) -> str:
    """Return nothing: the source reads no files of its own."""
    return ""


def nothing_ahead(configuration: Configuration) -> int:
    """Return 0: a batch is made when it is requested."""
    return 0


@dataclass(frozen=True)
class DataLoader:
    """One way to get batches, the same for every framework.

    Attributes:
        name: that of its file.
        display_name: what pages call it.
        open: begins to make the batches of a rank.
        obstacles: yields every reason why a configuration whose tensors are of a library can't use it, besides the
            libraries, packages and settings that are declared here.
        libraries: those that it makes batches with; empty: it needs none.
        packages: those that must be installed in the Python that trains; their versions are recorded with a run.
        settings: the parameters that only some sources read, each with the value that this one takes if a study leaves
            the choice to it.
        batches_ahead: how many finished batches may wait for a rank, which say nothing of the rate that is sustained.
        produce: makes the batches of a rank in a process of its own and serves them at ``host:port``, until that is
            ended; None: the rank needs no such process.
        remedy: the command that installs the packages in this project's own environment.
        is_fixed: it has one batch, which trainers put on their device once: no step waits for it.
        samples: the kinds of samples that it delivers.
        obstacle_here: returns why its files can't be used on this machine, or nothing.

    """

    name: str
    display_name: str
    open: Callable[[Configuration, Consumer], Batches]
    obstacles: Callable[[Configuration, str], Iterator[str]] = no_obstacles
    libraries: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    batches_ahead: Callable[[Configuration], int] = nothing_ahead
    produce: Callable[[Configuration, Consumer, str], None] | None = None
    remedy: str = install_command("data")
    is_fixed: bool = False
    samples: tuple[str, ...] = (IMAGES,)
    obstacle_here: Callable[[Configuration], str] = no_obstacle_here

    def setting(self, configuration: Configuration, name: str) -> Scalar:
        """Return the value of one of its settings: that of the configuration, or its own choice."""
        value: Scalar = getattr(configuration, name)
        return self.settings[name] if value == PARAMETERS[name].default else value

    def prefetch(self, configuration: Configuration) -> int:
        """Return how many batches are made before a step requests them."""
        return int(self.setting(configuration, "prefetch_batches"))
