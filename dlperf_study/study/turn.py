"""When a run is measured: its turn in the order of its study. Standard library only."""

from dataclasses import dataclass

#: Every configuration once a round, shuffled within each; or all runs of a configuration, then those of the next.
ROUNDS, BLOCKS = "rounds", "blocks"
#: The order of a run that no driver of a study started.
BY_HAND = "by hand"


@dataclass(frozen=True)
class Turn:
    """When a run is measured among those of its study.

    ``round`` and ``position`` are from 1. Runs of the same round were measured in turn, each configuration once, in
    random order: so they saw the same machine, and a ratio of two of them holds no drift. Both are None in blocks, by
    hand, and for a run that was measured after its round: it shares a round with none.
    """

    order: str = BY_HAND
    round: int | None = None
    position: int | None = None
