"""A guard's side of the pipe to its coordinator: what it hears is also its lifeline."""

import os
import sys
import time
from collections import deque
from contextlib import suppress

from dlperf_study.launchers._messages import SILENCE_SECONDS, Inbox, Message, line


class Over(Exception):
    """Nothing more is to be done here than to end what runs."""


class Conversation:
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

        Raises Over when it says that the run is over, went away, or has been silent for too long.
        """
        self._heard.extend(m for m in self._inbox.receive(seconds) if m["kind"] != "heartbeat")
        if self._heard:
            message = self._heard.popleft()
            if message["kind"] == "end":
                raise Over
            return message
        if self._inbox.closed or time.monotonic() - self._inbox.last_heard > SILENCE_SECONDS:
            raise Over
        return None

    def wait_for(self, kind: str) -> Message:
        """Return the next message of this kind; raises Over as ``hear`` does."""
        while True:
            message = self.hear(1.0)
            if message and message["kind"] == kind:
                return message

    def check(self) -> None:
        """Raise Over if that is what was said meanwhile; for use while something else is waited for."""
        if message := self.hear():
            self._heard.appendleft(message)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
