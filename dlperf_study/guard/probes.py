"""Probes on all nodes of a cluster, asked at the same time."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dlperf_study.guard.guards import Channel
from dlperf_study.guard.messages import Message
from dlperf_study.guard.submission import Node
from dlperf_study.supervision.processes import new_mark

PROBE = "dlperf_study.guard.probe"
ANSWER_SECONDS = 90.0
#: However long a run may wait in a queue, somebody looks on while a cluster is checked.
MAX_QUEUE_SECONDS = 600.0


def queue_seconds(start_within_seconds: float) -> float:
    """Return how long what a check starts may wait in a queue, given how long a run may."""
    return min(MAX_QUEUE_SECONDS, start_within_seconds)


class Probes:
    """The nodes that can be reached, by name, and why the others can't."""

    def __init__(self, channels: Mapping[str, Channel], lost: Mapping[str, str]) -> None:
        self._channels = dict(channels)
        self.lost = dict(lost)

    def ask(self, kind: str, **values: Any) -> dict[str, Message]:
        """Ask all nodes the same; return their answers. A node that gives none is lost from now on."""
        for channel in self._channels.values():
            channel.say(kind, **values)
        deadline = time.monotonic() + ANSWER_SECONDS
        answers = {name: _answer(channel, deadline) for name, channel in self._channels.items()}
        for name in [name for name, answer in answers.items() if answer is None]:
            self.lost[name] = str(self._channels[name].loss()["reason"])
            del self._channels[name]
        return {name: answer for name, answer in answers.items() if answer is not None}

    def clock_offsets(self) -> dict[str, float]:
        """Return by how many seconds the clock of each node is ahead of ours, to half the time an answer takes."""
        offsets = {}
        for name, channel in self._channels.items():
            asked = time.time()
            channel.say("clock")
            if answer := _answer(channel, time.monotonic() + ANSWER_SECONDS):
                offsets[name] = answer["unix_seconds"] - (asked + time.time()) / 2
        return offsets


@contextmanager
def start_probes(nodes: Sequence[Node]) -> Iterator[Probes]:
    """Start a probe on each node; at the end none is left."""
    mark = new_mark()
    channels: dict[str, Channel] = {}
    lost: dict[str, str] = {}
    opened: list[Channel] = []
    try:
        for number, node in enumerate(nodes):
            try:
                channels[node.title] = Channel(number, node, mark, PROBE)
            except OSError as error:
                lost[node.title] = str(error)
        opened = list(channels.values())
        yield Probes(channels, lost)
    finally:
        for channel in opened:
            channel.close()


def _answer(channel: Channel, deadline: float) -> Message | None:
    """Return the next answer of a node, or None when it has gone or is silent."""
    while not channel.inbox.closed and (left := deadline - time.monotonic()) > 0:
        if messages := channel.inbox.receive(left):
            return messages[0]
    return None
