"""Messages between a coordinator and its node agents: one JSON object a line, after the mark of the run.

Output of a login shell or a library into the same pipe has no mark, and is ignored. The coordinator sends the requests
``prepare``, ``start`` and ``end``; a node agent sends ``waiting`` while its node is too busy, ``ready``, ``done`` or
``failed``, and last its ``report``.
"""

import json
import os
import select
import sys
import time
from collections import deque
from contextlib import suppress
from typing import Any

from dlperf_study.study.job import RunStatus

Message = dict[str, Any]
CHUNK_BYTES = 2**20
#: A longer line is no message: those with the files of a node, compressed, have less.
LONGEST_BYTES = 2**30
#: A coordinator sends something this often; a node agent that receives nothing for longer than the second ends its run.
HEARTBEAT_SECONDS, SILENCE_SECONDS = 5.0, 20.0
#: The reason of such an end. A coordinator reads it if its process goes on later.
SILENCE = (
    f"the ranks were killed, because its coordinator was silent for {SILENCE_SECONDS:.0f} s, as when its "
    "process is stopped (SIGSTOP), its machine is suspended or its connection is cut"
)


def line(mark: str, kind: str, values: Message) -> bytes:
    """Return a message as a line of bytes."""
    return f"{mark} {json.dumps({'kind': kind} | values)}\n".encode()


class Inbox:
    """The messages that arrive at a file descriptor.

    It closes itself at a line that has the mark and is no message: then ``problem`` says what was received.
    """

    def __init__(self, descriptor: int, mark: str) -> None:
        self._descriptor = descriptor
        self._prefix = f"{mark} ".encode()
        self._unfinished = bytearray()
        self.closed = False
        self.problem = ""
        self.last_received = time.monotonic()

    def fileno(self) -> int:
        """Return the file descriptor, for ``select``."""
        return self._descriptor

    def receive(self, seconds: float = 0.0) -> list[Message]:
        """Return the messages that arrive within ``seconds``."""
        if self.closed or not select.select([self], [], [], seconds)[0]:
            return []
        data = os.read(self._descriptor, CHUNK_BYTES)
        self.closed = not data
        self.last_received = time.monotonic()
        self._unfinished += data
        if b"\n" not in data:
            self._forget_noise()
            if len(self._unfinished) > LONGEST_BYTES:
                self._refuse(f"a line of more than {LONGEST_BYTES} bytes")
            return []
        *lines, rest = bytes(self._unfinished).split(b"\n")
        self._unfinished = bytearray(rest)
        self._forget_noise()
        messages = []
        for received_line in lines:
            if received_line.startswith(self._prefix):
                try:
                    messages.append(_parsed(received_line.removeprefix(self._prefix)))
                except (ValueError, RecursionError):
                    self._refuse("a line with its mark that is not a message")
                    break
        return messages

    def _refuse(self, problem: str) -> None:
        """Receive nothing more: what else was damaged is unknown."""
        self.closed, self.problem = True, problem
        self._unfinished.clear()

    def _forget_noise(self) -> None:
        """Forget an unfinished line that is no message."""
        size = len(self._prefix)
        if len(self._unfinished) > size and not self._unfinished.startswith(self._prefix):
            del self._unfinished[size:]


def _parsed(text: bytes) -> Message:
    """Return the message of a line; raises ValueError without one."""
    message = json.loads(text)
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise ValueError("a message is an object with a kind")
    return message


class RunStopped(Exception):
    """The node agent has nothing more to do than to end its processes."""


class CoordinatorConnection:
    """A node agent's connection to its coordinator, and its lifeline."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self._inbox = Inbox(sys.stdin.fileno(), mark)
        self._received: deque[Message] = deque()

    def send(self, kind: str, **values: object) -> None:
        """Send a message; a coordinator that is gone receives nothing."""
        data = line(self.mark, kind, values)
        with suppress(OSError):
            # Not by print: half a line would be left in its buffer when the pipe is full and a signal comes.
            while data:
                data = data[os.write(sys.stdout.fileno(), data) :]

    def receive(self, seconds: float = 0.0) -> Message | None:
        """Return the next message, or None when none arrives within ``seconds``; raises RunStopped."""
        for message in self._inbox.receive(seconds):
            if message["kind"] != "heartbeat":
                self._received.append(message)
        if self._received:
            message = self._received.popleft()
            if message["kind"] == "end":
                raise RunStopped
            return message
        if self._inbox.closed:
            raise RunStopped
        if time.monotonic() - self._inbox.last_received > SILENCE_SECONDS:
            self.send("failed", status=RunStatus.KILLED, reason=SILENCE)
            raise RunStopped
        return None

    def wait_for(self, kind: str) -> Message:
        """Return the next message of this kind; raises RunStopped as ``receive`` does."""
        while True:
            message = self.receive(1.0)
            if message and message["kind"] == kind:
                return message

    def check(self) -> None:
        """Raise RunStopped as ``receive`` does; keep other messages."""
        if message := self.receive():
            self._received.appendleft(message)
