"""How gradients travel: strategies, kinds of communication, what they move, and what is pending after the last."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

#: The kinds of communication, as rank logs have them; with the last two ranks wait for each other in every step.
NO_COMMUNICATION: Final = "none"
PUSH_PULL: Final = "push_pull"
ALL_REDUCE: Final = "all_reduce"
SYNCHRONOUS_PUSH_PULL: Final = "synchronous_push_pull"
#: Collectives of several kinds or among several groups of ranks: each is in ``collective_operations`` of the rank log.
COLLECTIVES: Final = "collectives"
#: Ranks that communicate so wait for each other in each step.
SYNCHRONOUS = ("all_reduce", COLLECTIVES)
Communication = Literal["none", "all_reduce", "push_pull", "synchronous_push_pull", "collectives"]
#: Of a user's program, which may communicate without anybody knowing how.
UNKNOWN_COMMUNICATION: Final = "unknown"
#: What collectives are called, as nccl-tests call them; ``send_receive`` is of pairs of ranks.
CollectiveKind = Literal["all_reduce", "all_gather", "reduce_scatter", "reduce", "broadcast", "send_receive"]
COLLECTIVE_KINDS: tuple[CollectiveKind, ...] = get_args(CollectiveKind)
ProgramCommunication = Literal["none", "all_reduce", "unknown"]
#: Bytes of one element of a gradient on the link, of parameters that are kept as float32, by ``gradient_compression``.
ELEMENT_BYTES = {"none": 4, "fp16": 2}


@dataclass(frozen=True)
class Strategy:
    """A way to train on several devices."""

    display_name: str
    communication: str


#: The strategies that several frameworks have, by their names in the YAML. A framework may have one of its own too.
STRATEGIES = {
    "all_reduce": Strategy("all-reduce", ALL_REDUCE),
    "async": Strategy("asynchronous", PUSH_PULL),
    "zero": Strategy("ZeRO", COLLECTIVES),
    "tensor": Strategy("tensor parallel", COLLECTIVES),
    "pipeline": Strategy("pipeline", COLLECTIVES),
    "sync": Strategy("synchronous", SYNCHRONOUS_PUSH_PULL),
}


@dataclass(frozen=True)
class Drain:
    """How long the updates of a rank were pending, at least."""

    seconds: float = 0.0
    resolution_seconds: float = 0.0
