"""Locks that are released when the process that holds them dies, in whatever way."""

import errno
import fcntl
import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dlperf_study.errors import BusyError, HeldError
from dlperf_study.supervision.processes import is_running, this_process
from dlperf_study.writing import naming

#: How long a process that has just taken a lock may need until it has said what for.
SECONDS_TO_SAY, POLL_SECONDS = 1.0, 0.02
LONGEST_CONTENT = 1 << 16


@contextmanager
def lock(path: Path, purpose: str, conflict: str) -> Iterator[None]:
    """Hold the lock of a file; ``purpose`` is what for, ``conflict`` what two at once would do.

    Raises BusyError when another process holds it; the message has its id and its purpose.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "r+", opener=_open_private) as file:
        _take(file.fileno(), conflict)
        holder = {"process": this_process(), "host": socket.gethostname(), "doing": purpose}
        with naming(path):
            file.truncate(0)
            # Past the buffer of the file, which would be written again when it is closed.
            os.pwrite(file.fileno(), json.dumps(holder).encode(), 0)
        yield


def runtime_folder() -> Path:
    """Return a folder that only this user can write, the same in every shell on this machine.

    It is the one that systemd makes for a user who is logged in, otherwise one in the temporary folder.
    Raises BusyError when another user owns a folder or a link of that name.
    """
    folder = Path("/run/user") / str(os.getuid())
    if os.access(folder, os.W_OK):
        return folder
    folder = Path("/tmp") / f"dlperf_study-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise BusyError(f"{folder}: must be a folder of this user, for locks; remove it")
    folder.chmod(0o700)
    return folder


def _open_private(path: str, flags: int) -> int:
    """Open a lock without following a link: another user may have put one there, to have its target overwritten."""
    try:
        return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise BusyError(f"{path}: a lock can't be a link; remove it") from None


def _take(descriptor: int, conflict: str) -> None:
    """Take the lock of an open file; raise BusyError if another process holds it, when it has had time to say why."""
    deadline = time.monotonic() + SECONDS_TO_SAY
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = _Holder.of(os.pread(descriptor, LONGEST_CONTENT, 0))
        if holder.is_known or time.monotonic() > deadline:
            raise HeldError(f"{holder.words}; two at once {conflict}. Wait for it to end, or end it.")
        time.sleep(POLL_SECONDS)


@dataclass(frozen=True)
class _Holder:
    """Who holds a lock, as its content says. A holder that has just opened it has not written it yet."""

    words: str
    is_known: bool

    @classmethod
    def of(cls, content: bytes) -> Self:
        unknown = "a process that has not said what it does is busy on this machine"
        try:
            holder = json.loads(content)
            process, purpose, host = str(holder["process"]), holder["doing"], holder["host"]
        except (ValueError, TypeError, KeyError):
            return cls(unknown, False)
        pid, is_here = process.partition("-")[0], host == socket.gethostname()
        if is_here and not is_running(process):
            return cls(f"{unknown}; the last that did, {pid}, is gone", False)
        return cls(f"process {pid} is {purpose} on {'this machine' if is_here else host}", True)
