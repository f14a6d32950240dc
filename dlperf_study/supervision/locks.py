"""Locks that are released when the process that holds them dies, in whatever way."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dlperf_study.errors import BusyError


@contextmanager
def lock(path: Path, purpose: str, conflict: str) -> Iterator[None]:
    """Hold the lock of a file; ``purpose`` is what for, ``conflict`` what two at once would do.

    Raises BusyError when another process holds it; the message has its id and its purpose.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = json.loads(file.read() or "{}")
            host = holder.get("host", socket.gethostname())
            machine = "this machine" if host == socket.gethostname() else host
            raise BusyError(
                f"process {holder.get('pid', '?')} is {holder.get('doing', 'busy')} on {machine}; "
                f"two at once {conflict}. Wait for it to end, or end it."
            ) from None
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "doing": purpose}))
        file.flush()
        yield
