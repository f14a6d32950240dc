"""Locks that go when the process that holds them dies, however it dies."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dlperf_study.errors import BusyError


@contextmanager
def lock(path: Path, doing: str, why: str) -> Iterator[None]:
    """Hold the lock of a file; ``doing`` says what for, ``why`` what two at once would do.

    Raises BusyError when somebody else holds it; the message says who, and what for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+") as file:
        _acquire(file, why)
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "doing": doing}))
        file.flush()
        yield


def _acquire(file: IO[str], why: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = json.loads(file.read() or "{}")
        here = holder.get("host", socket.gethostname()) == socket.gethostname()
        raise BusyError(
            f"process {holder.get('pid', '?')} is {holder.get('doing', 'busy')} "
            f"on {'this machine' if here else holder['host']}; two at once {why}. Wait for it to end, or end it."
        ) from None
