"""What a coordinator and its guards say to each other: one JSON object a line, behind the mark of the run.

What a login shell or a library prints into the same pipe has no mark, and is passed over.
"""

import json
import os
import select
import time
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
