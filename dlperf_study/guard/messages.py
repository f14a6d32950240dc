"""What a coordinator and its guards say to each other: one JSON object a line, behind the mark of the run.

What a login shell or a library prints into the same pipe has no mark, and is passed over.
"""

import json
import os
import select
import sys
import time
from collections import deque
from contextlib import suppress
from typing import Any

Message = dict[str, Any]
CHUNK_BYTES = 2**20
#: A coordinator says something this often; a guard that hears nothing for longer than the other ends its run.
HEARTBEAT_SECONDS, SILENCE_SECONDS = 5.0, 20.0


def line(mark: str, kind: str, values: Message) -> bytes:
    """Return a message as it travels."""
    return f"{mark} {json.dumps({'kind': kind} | values)}\n".encode()


class Inbox:
    """The messages that arrive at a file descriptor; ``closed`` once nobody can send any more."""

    def __init__(self, descriptor: int, mark: str) -> None:
        self._descriptor = descriptor
        self._prefix = f"{mark} ".encode()
        self._unfinished = bytearray()
        self.closed = False
        self.last_heard = time.monotonic()

    def fileno(self) -> int:
        """Return what ``select`` waits for."""
        return self._descriptor

    def receive(self, seconds: float = 0.0) -> list[Message]:
        """Return the messages that are here; wait for something to arrive, but not longer than this."""
        if self.closed or not select.select([self], [], [], seconds)[0]:
            return []
        arrived = os.read(self._descriptor, CHUNK_BYTES)
        self.closed = not arrived
        self.last_heard = time.monotonic()
        self._unfinished += arrived
        if b"\n" not in arrived:
            return []
        *lines, rest = bytes(self._unfinished).split(b"\n")
        self._unfinished = bytearray(rest)
        return [json.loads(text.removeprefix(self._prefix)) for text in lines if text.startswith(self._prefix)]


# A guard's side of the pipe to its coordinator: what it hears is also its lifeline.


class RunStopped(Exception):
    """Nothing more is to be done here than to end what runs."""


class CoordinatorConnection:
    """What the coordinator of a run and the guard of one of its nodes say to each other."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self._inbox = Inbox(sys.stdin.fileno(), mark)
        self._heard: deque[Message] = deque()

    def say(self, kind: str, **values: object) -> None:
        """Tell the coordinator something; one that has gone away hears nothing."""
        with suppress(OSError):
            # Not by print: half a line would be left in its buffer when the pipe is full and a signal comes.
            _write_all(sys.stdout.fileno(), line(self.mark, kind, values))

    def hear(self, seconds: float = 0.0) -> Message | None:
        """Return what the coordinator said next, or None when it says nothing within ``seconds``.

        Raises RunStopped when it says that the run is over, went away, or has been silent for too long.
        """
        self._heard.extend(m for m in self._inbox.receive(seconds) if m["kind"] != "heartbeat")
        if self._heard:
            message = self._heard.popleft()
            if message["kind"] == "end":
                raise RunStopped
            return message
        if self._inbox.closed or time.monotonic() - self._inbox.last_heard > SILENCE_SECONDS:
            raise RunStopped
        return None

    def wait_for(self, kind: str) -> Message:
        """Return the next message of this kind; raises RunStopped as ``hear`` does."""
        while True:
            message = self.hear(1.0)
            if message and message["kind"] == kind:
                return message

    def check(self) -> None:
        """Raise RunStopped if that is what was said meanwhile; for use while something else is waited for."""
        if message := self.hear():
            self._heard.appendleft(message)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
