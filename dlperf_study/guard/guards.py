"""The guards of all nodes of a run, heard as one."""

import select
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType

from dlperf_study.guard.messages import HEARTBEAT_SECONDS, Inbox, Message, line
from dlperf_study.guard.submission import Node
from dlperf_study.study.job import Outcome
from dlperf_study.supervision.processes import GUARD, ending_words
from dlperf_study.wording import last_line

# A guard as its coordinator sees it: a process that reaches it, and a pipe each way.


#: How long a guard that was told to end, or whose pipe is closed, may take to go.
CLOSING_SECONDS = 10.0


class Channel:
    """The way to the guard of one node, opened at once. Always call ``close``: without it the guard goes on.

    Raises OSError when the command that reaches the node can't be started.
    """

    def __init__(self, node: int, place: Node, mark: str, module: str = GUARD) -> None:
        self.node, self.place = node, place
        self._mark = mark
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 closed by close
        try:
            self._process = self._start(place.argv("-m", module, mark))
        except OSError:
            self._errors.close()
            raise
        assert self._process.stdin
        assert self._process.stdout
        self._outbox = self._process.stdin
        self.inbox = Inbox(self._process.stdout.fileno(), mark)

    def _start(self, argv: tuple[str, ...]) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=self._errors, start_new_session=True)

    def say(self, kind: str, **values: object) -> None:
        """Tell the guard something; that one has gone is seen where it is listened to."""
        with suppress(OSError):
            self._outbox.write(line(self._mark, kind, dict(values)))
            self._outbox.flush()

    def of(self, reason: str, task: str = "") -> str:
        """Return what happened on this node in words; where there is only this machine, it needs no name."""
        where = f" on {self.place.name}" if self.place.name else ""
        return f"{task}{where} {reason}" if task else f"{self.place.name}: {reason}" if where else reason

    def loss(self) -> Message:
        """Return why nothing more comes from the guard, as a message."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSING_SECONDS)
        code = self._process.poll()
        result = ending_words(code) if code is not None else "fell silent"
        words = f"{result}: {last}" if (last := self._last_words()) else result
        outcome = Outcome.KILLED if code is not None and code < 0 else Outcome.FAILED
        who = f"was lost, its {self.place.reach[0]}" if self.place.reach else "the guard of the run"
        return {"kind": "gone", "outcome": outcome, "reason": f"{who} {words}"}

    def close(self) -> None:
        """Let go of the guard, and wait until it has gone."""
        with suppress(OSError):
            self._outbox.close()
        try:
            self._process.wait(CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()
        self._errors.close()

    def _last_words(self) -> str:
        """Return the last line the guard, or what reaches it, said outside of the conversation."""
        self._errors.seek(0)
        return last_line(self._errors.read().decode(errors="replace"))


class RunFailed(Exception):
    """The run is over before it is done: how, why, on which node it began, if on one, and by which task, if by one."""

    def __init__(self, outcome: Outcome, reason: str, node: int | None = None, task: str = "") -> None:
        super().__init__(reason)
        self.outcome, self.reason, self.node, self.task = outcome, reason, node, task


class NodeTimeout(Exception):
    """Not everybody has answered in time; ``nodes`` have not."""

    def __init__(self, nodes: Sequence[int]) -> None:
        super().__init__(f"no answer from nodes {nodes}")
        self.nodes = nodes


class Guards:
    """One channel a node. As a context manager it leaves no guard behind."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._channels: dict[int, Channel] = {}
        self._heard: deque[tuple[Channel, Message]] = deque()
        self._last_beat = time.monotonic()

    def __enter__(self) -> "Guards":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for channel in self._channels.values():
            channel.close()

    def open(self, node: int, place: Node) -> None:
        """Start the guard of a node; raises RunFailed when the command that reaches it is not there."""
        try:
            self._channels[node] = Channel(node, place, self._mark)
        except OSError as error:
            raise RunFailed(Outcome.FAILED, f"{place.name or 'the guard'} can't be reached: {error}", node) from error

    def say(self, node: int, kind: str, **values: object) -> None:
        """Tell the guard of a node something."""
        self._channels[node].say(kind, **values)

    def gather(self, kind: str, nodes: Iterable[int], seconds: float) -> dict[int, Message]:
        """Return the first message of this kind from each of these nodes, in order of node.

        Raises RunFailed as soon as any node has failed or is lost, and NodeTimeout after ``seconds``.
        """
        found: dict[int, Message] = {}
        missing = set(nodes)
        deadline = time.monotonic() + seconds
        while missing:
            if not (heard := self._hear(deadline)):
                raise NodeTimeout(sorted(missing))
            channel, message = heard
            if message["kind"] in ("failed", "gone"):
                task = message.get("task", "")
                raise RunFailed(Outcome(message["outcome"]), channel.of(message["reason"], task), channel.node, task)
            if message["kind"] == kind:
                found[channel.node] = message
                missing.discard(channel.node)
        return dict(sorted(found.items()))

    def end(self, seconds: float) -> dict[int, Message]:
        """Tell all guards to end what runs; return how it ended on each node that answers within ``seconds``."""
        results: dict[int, Message] = {}
        waiting = {node for node, channel in self._channels.items() if not channel.inbox.closed}
        for node in waiting:
            self.say(node, "end")
        deadline = time.monotonic() + seconds
        while waiting and (heard := self._hear(deadline)):
            channel, message = heard
            if message["kind"] == "ending":
                results[channel.node] = message
            if message["kind"] in ("ending", "gone"):
                waiting.discard(channel.node)
        return results

    def _hear(self, deadline: float) -> tuple[Channel, Message] | None:
        """Return who said what next, or None when nobody says anything before the deadline."""
        while not self._heard:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._beat()
            self._listen(min(left, HEARTBEAT_SECONDS))
        return self._heard.popleft()

    def _listen(self, seconds: float) -> None:
        open_ones = [channel for channel in self._channels.values() if not channel.inbox.closed]
        speaking, _, _ = select.select([channel.inbox for channel in open_ones], [], [], seconds)
        for channel in (one for one in open_ones if one.inbox in speaking):
            self._heard.extend((channel, message) for message in channel.inbox.receive())
            if channel.inbox.closed:
                self._heard.append((channel, channel.loss()))

    def _beat(self) -> None:
        """Tell the guards that there still is somebody, if it is time to."""
        if time.monotonic() - self._last_beat >= HEARTBEAT_SECONDS:
            self._last_beat = time.monotonic()
            for channel in self._channels.values():
                channel.say("heartbeat")
