"""A private folder of a process, for keys and sockets: none stays when its owner is dead, in whatever way it died."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dlperf_study.supervision.locks import runtime_folder


class OwnedFolder:
    """A folder that only this user can read, and that this process owns until it calls ``remove``.

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
