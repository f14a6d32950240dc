"""Which devices of a run do what: which train on samples of their own, and which share one copy of the model.

Ranks are numbered with the pipeline outermost and the tensor dimension innermost, so that the ranks that communicate
most are on one node: it is the order of PyTorch's device mesh ``(pipeline, data, shard, context, tensor)``. Standard
library only: every training process imports this.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal, get_args

Dimension = Literal["pipeline", "data", "shard", "context", "tensor"]
#: The dimensions of a layout, the outermost first.
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
#: The dimensions along which ranks share their samples, and divide the model or each sample among them.
OF_REPLICA: tuple[Dimension, ...] = ("pipeline", "context", "tensor")
#: The dimensions along which ranks have the same part of the model, each a copy: their parameters must stay equal.
OF_COPIES: tuple[Dimension, ...] = ("data", "context")


@dataclass(frozen=True)
class Coordinates:
    """The position of a rank in each dimension of its layout."""

    pipeline: int = 0
    data: int = 0
    shard: int = 0
    context: int = 0
    tensor: int = 0


@dataclass(frozen=True)
class Layout:
    """How many ranks there are in each dimension.

    Attributes:
        pipeline: stages that the layers are divided into.
        data: ranks with samples of their own, each with a copy of what it trains.
        shard: ranks with samples of their own that divide the parameters among them.
        context: ranks that divide each sequence.
        tensor: ranks that divide each matrix.

    """

    pipeline: int = 1
    data: int = 1
    shard: int = 1
    context: int = 1
    tensor: int = 1

    @property
    def devices(self) -> int:
        """The number of ranks, one per device."""
        return self.pipeline * self.data * self.shard * self.context * self.tensor

    @property
    def replicas(self) -> int:
        """How many groups of ranks share the global batch."""
        return self.data * self.shard

    @property
    def devices_per_replica(self) -> int:
        """How many ranks train on the same samples."""
        return self.pipeline * self.context * self.tensor

    def coordinates(self, rank: int) -> Coordinates:
        """Return the position of a rank; raises ValueError for others."""
        if not 0 <= rank < self.devices:
            raise ValueError(f"rank {rank} is not one of {self.devices} ranks")
        position = {}
        for name in reversed(DIMENSIONS):
            rank, position[name] = divmod(rank, getattr(self, name))
        return Coordinates(**position)

    def rank(self, coordinates: Coordinates) -> int:
        """Return the rank at a position."""
        rank = 0
        for name in DIMENSIONS:
            rank = rank * getattr(self, name) + getattr(coordinates, name)
        return rank

    def replica(self, rank: int) -> int:
        """Return the number of the replica of a rank."""
        position = self.coordinates(rank)
        return position.data * self.shard + position.shard

    def group(self, rank: int, *dimensions: Dimension) -> tuple[int, ...]:
        """Return the ranks that differ from a rank in these dimensions alone."""
        position = self.coordinates(rank)
        ranks = []
        for values in product(*(range(getattr(self, name)) for name in dimensions)):
            ranks.append(self.rank(replace(position, **dict(zip(dimensions, values, strict=True)))))
        return tuple(sorted(ranks))

    def groups(self, *dimensions: Dimension) -> tuple[tuple[int, ...], ...]:
        """Return all groups of these dimensions, by their first rank."""
        return tuple(dict.fromkeys(self.group(rank, *dimensions) for rank in range(self.devices)))

    def dimensions(self, ranks: Collection[int]) -> tuple[Dimension, ...]:
        """Return the fewest dimensions along which ranks form a group."""
        several = [name for name in DIMENSIONS if getattr(self, name) > 1]
        for count in range(1, len(several) + 1):
            for names in combinations(several, count):
                if self.group(min(ranks), *names) == tuple(sorted(ranks)):
                    return names
        return ()

    def holds_loss(self, rank: int) -> bool:
        """Return whether a rank has the last stage, and so the loss."""
        return self.coordinates(rank).pipeline == self.pipeline - 1
