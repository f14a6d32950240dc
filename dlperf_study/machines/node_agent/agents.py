"""The node agents of all nodes of a run, as their coordinator sees them."""

import select
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType

from dlperf_study.core.wording import last_line
from dlperf_study.machines.node_agent.messages import HEARTBEAT_SECONDS, Inbox, Message, line
from dlperf_study.machines.node_agent.submission import Node
from dlperf_study.machines.supervision.processes import AGENT, ending_words
from dlperf_study.study.job import RunStatus

#: How long a node agent may take to exit after it was told to end, or its pipe was closed.
CLOSING_SECONDS = 10.0


class RunFailed(Exception):
    """The run failed: status, reason, node and task."""

    def __init__(self, status: RunStatus, reason: str, node_index: int | None = None, task: str = "") -> None:
        super().__init__(reason)
        self.status, self.reason, self.node_index, self.task = status, reason, node_index, task


class NodeTimeout(Exception):
    """Some nodes have not answered in time."""

    def __init__(self, node_indices: Sequence[int]) -> None:
        super().__init__(f"no answer from nodes {node_indices}")
        self.node_indices = node_indices


class Agents:
    """One channel per node; as a context manager it ends all.

    ``note_waiting`` gets the name of a node that is too busy to start at once, and what keeps it busy.
    """

    def __init__(self, mark: str, note_waiting: Callable[[str, str], None] | None = None) -> None:
        self._mark = mark
        self._note_waiting = note_waiting
        self._channels: dict[int, Channel] = {}
        self._received: deque[tuple[Channel, Message]] = deque()
        self._last_heartbeat = time.monotonic()

    def __enter__(self) -> "Agents":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for channel in self._channels.values():
            channel.close()

    def open(self, node_index: int, node: Node) -> None:
        """Start the node agent of a node."""
        try:
            self._channels[node_index] = Channel(node_index, node, self._mark)
        except OSError as error:
            reason = f"{node.name or 'the node agent'} can't be reached: {error}"
            raise RunFailed(RunStatus.FAILED, reason, node_index) from error

    def send(self, node_index: int, kind: str, **values: object) -> None:
        """Send a message to the node agent of a node."""
        self._channels[node_index].send(kind, **values)

    def gather(self, kind: str, node_indices: Iterable[int], seconds: float) -> dict[int, Message]:
        """Return the message of this kind of each node; raises RunFailed."""
        messages: dict[int, Message] = {}
        missing = set(node_indices)
        deadline = time.monotonic() + seconds
        while missing:
            if not (received := self._receive(deadline)):
                raise NodeTimeout(sorted(missing))
            channel, message = received
            if message["kind"] in ("failed", "lost"):
                task = message.get("task", "")
                reason = channel.describe(message["reason"], task)
                raise RunFailed(RunStatus(message["status"]), reason, channel.node_index, task)
            if message["kind"] == "waiting" and self._note_waiting:
                self._note_waiting(channel.node.name, message["busy_processes"])
            if message["kind"] == kind:
                messages[channel.node_index] = message
                missing.discard(channel.node_index)
        return dict(sorted(messages.items()))

    def end(self, seconds: float) -> dict[int, Message]:
        """Let all node agents end; return their final reports."""
        reports: dict[int, Message] = {}
        waiting = {index for index, channel in self._channels.items() if not channel.inbox.closed}
        for index in waiting:
            self.send(index, "end")
        deadline = time.monotonic() + seconds
        while waiting and (received := self._receive(deadline)):
            channel, message = received
            if message["kind"] == "report":
                reports[channel.node_index] = message
            if message["kind"] in ("report", "lost"):
                waiting.discard(channel.node_index)
        return reports

    def _receive(self, deadline: float) -> tuple["Channel", Message] | None:
        """Return the next message and its channel, or None."""
        while not self._received:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return None
            if time.monotonic() - self._last_heartbeat >= HEARTBEAT_SECONDS:
                self._last_heartbeat = time.monotonic()
                for channel in self._channels.values():
                    channel.send("heartbeat")
            channels = {channel.inbox: channel for channel in self._channels.values() if not channel.inbox.closed}
            readable, _, _ = select.select(list(channels), [], [], min(remaining, HEARTBEAT_SECONDS))
            for inbox in readable:
                channel = channels[inbox]
                self._received.extend((channel, message) for message in inbox.receive())
                if inbox.closed:
                    self._received.append((channel, channel.loss()))
        return self._received.popleft()


class Channel:
    """The connection to the node agent of one node.

    Opened at once. Always call ``close``: without it the node agent goes on.
    Raises OSError when the command that reaches the node can't be started.
    """

    def __init__(self, node_index: int, node: Node, mark: str, module: str = AGENT) -> None:
        self.node_index, self.node = node_index, node
        self._mark = mark
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 closed by close
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                node.argv("-m", module, mark), stdin=pipe, stdout=pipe, stderr=self._errors, start_new_session=True
            )
        except OSError:
            self._errors.close()
            raise
        assert self._process.stdin
        assert self._process.stdout
        self._outbox = self._process.stdin
        self.inbox = Inbox(self._process.stdout.fileno(), mark)

    def send(self, kind: str, **values: object) -> None:
        """Send a message; a lost node agent is noticed at receiving."""
        with suppress(OSError):
            self._outbox.write(line(self._mark, kind, dict(values)))
            self._outbox.flush()

    def describe(self, reason: str, task: str = "") -> str:
        """Return a reason with its task and node."""
        name = self.node.name
        if task:
            if name:
                return f"{task} on {name} {reason}"
            return f"{task} {reason}"
        if name:
            return f"{name}: {reason}"
        return reason

    def loss(self) -> Message:
        """Return why the node agent is lost, as a message."""
        if problem := self.inbox.problem:
            return {"kind": "lost", "status": RunStatus.FAILED, "reason": f"the node agent sent {problem}"}
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSING_SECONDS)
        code = self._process.poll()
        end = ending_words(code) if code is not None else "fell silent"
        # What the node agent, or the program that reaches it, wrote to standard error.
        self._errors.seek(0)
        if error := last_line(self._errors.read().decode(errors="replace")):
            end = f"{end}: {error}"
        status = RunStatus.KILLED if code is not None and code < 0 else RunStatus.FAILED
        subject = f"was lost, its {self.node.reach[0]}" if self.node.reach else "the node agent"
        return {"kind": "lost", "status": status, "reason": f"{subject} {end}"}

    def close(self) -> None:
        """Close the connection, and wait until the node agent has exited."""
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
