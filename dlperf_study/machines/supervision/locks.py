"""Locks that are released when the process that holds them dies, in whatever way; folders that go with their owner.

Nothing else may measure on this machine, or measure the same study elsewhere, while a study is measured.
"""

import errno
import fcntl
import json
import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dlperf_study.core.errors import BusyError, HeldError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.writing import naming
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.supervision.processes import CONTROLLER_MARK, is_running, this_process

#: How long a process that has just taken a lock may need until it has said what for.
SECONDS_TO_SAY, POLL_SECONDS = 1.0, 0.02
LONGEST_CONTENT = 1 << 16
#: What to do about a lock that another process holds.
REMEDY = "Wait for it to end, as --wait does (WAIT=1 with make), or end it."


@contextmanager
def lock(path: Path, purpose: str, conflict: str) -> Iterator[None]:
    """Hold the lock of a file for a ``purpose``; raises BusyError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "r+", opener=_open_private) as file:
        _take(file.fileno(), conflict, path)
        holder = {"process": this_process(), "host": socket.gethostname(), "doing": purpose}
        with naming(path):
            file.truncate(0)
            # Past the buffer of the file, which would be written again when it is closed.
            os.pwrite(file.fileno(), json.dumps(holder).encode(), 0)
        yield


def is_held(path: Path) -> bool:
    """Return whether another process holds the lock of a file."""
    with open(path, opener=_open_private) as file, suppress(BlockingIOError):
        fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    return True


def runtime_folder() -> Path:
    """Return a private folder, the same in every shell; raises BusyError."""
    # It is the one that systemd makes for a user who is logged in, otherwise one in the temporary folder.
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


@contextmanager
def study_lock(study: str, cluster: Cluster) -> Iterator[None]:
    """Hold the lock of whatever this study measures on; raises BusyError."""
    # A queue gives every run separate nodes: then it is enough that no other controller runs the same study.
    purpose = f"study {study}"
    if launchers.load(cluster.launcher).queue(cluster):
        held = _held_by_controllers(StudyPaths.of(study).lock, purpose, "would submit and cancel each other's jobs")
    else:
        held = machine_lock(purpose)
    with held:
        yield


@contextmanager
def machine_lock(purpose: str) -> Iterator[None]:
    """Hold the lock of this machine; raises BusyError."""
    with _held_by_controllers(machine_lock_file(), purpose, "would spoil each other"):
        yield


def machine_lock_file() -> Path:
    """Return one lock file for the whole machine."""
    return runtime_folder() / "dlperf_study.lock"


@contextmanager
def _held_by_controllers(path: Path, purpose: str, why: str) -> Iterator[None]:
    """Hold a lock, unless the controller of this process does."""
    if CONTROLLER_MARK in os.environ:
        yield
        return
    with lock(path, f"measuring {purpose}", why):
        yield


def _open_private(path: str, flags: int) -> int:
    """Open a lock without following a link of another user."""
    try:
        return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise BusyError(f"{path}: a lock cannot be a link; remove it") from None


def _take(descriptor: int, conflict: str, path: Path) -> None:
    """Take the lock; raise BusyError if another process has it."""
    deadline = time.monotonic() + SECONDS_TO_SAY
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder, is_known = _holder(os.pread(descriptor, LONGEST_CONTENT, 0))
        if is_known or time.monotonic() > deadline:
            raise HeldError(f"{holder}; two at once {conflict}", REMEDY, path)
        time.sleep(POLL_SECONDS)


def _holder(content: bytes) -> tuple[str, bool]:
    """Return who holds a lock, and whether it is known."""
    unknown = "an unknown process on this machine holds the lock"
    try:
        holder = json.loads(content)
        process, purpose, host = str(holder["process"]), holder["doing"], holder["host"]
    except (ValueError, TypeError, KeyError):
        return unknown, False
    pid, is_here = process.partition("-")[0], host == socket.gethostname()
    if is_here and not is_running(process):
        return f"{unknown}; the last known process, {pid}, is gone", False
    return f"process {pid} is {purpose} on {'this machine' if is_here else host}", True


class OwnedFolder:
    """A private folder of this process, until ``remove``.

    The owner holds the lock of the folder, which the system releases when the owner dies; whoever makes the next
    folder removes those without an owner. ``path`` is short: the path of a socket may have 107 characters.
    """

    def __init__(self) -> None:
        parent = runtime_folder() / "dlperf_study"
        parent.mkdir(mode=0o700, exist_ok=True)
        # A folder that was made and is not locked yet has an owner too.
        with _locked(parent):
            for folder in parent.iterdir():
                _remove_without_owner(folder)
            self.path = Path(tempfile.mkdtemp(prefix="", dir=parent))
            self._descriptor = os.open(self.path, os.O_RDONLY)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the folder, if it is still there."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_without_owner(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        # Its owner has removed it meanwhile.
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(descriptor)
