"""Whether another study measures on this machine, said before the minutes of a set-up; ends with 1 if one does.

``make study`` without an environment calls it. The packages are not there yet: standard library only, and no import of
``dlperf_study.machines.supervision.locks``, whose lock this is.
"""

import fcntl
import json
import os
import sys
from contextlib import suppress
from pathlib import Path


def machine_lock_file() -> Path:
    """Return the lock of whoever measures on this machine."""
    of_session = Path("/run/user") / str(os.getuid())
    folder = of_session if os.access(of_session, os.W_OK) else Path("/tmp") / f"dlperf_study-{os.getuid()}"
    return folder / "dlperf_study.lock"


def who_measures(path: Path) -> str:
    """Return who holds a lock and what for; empty if nobody does, or if it can't be read, which a study then says."""
    with suppress(OSError), path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _holder(file.read())
    return ""


def _holder(content: str) -> str:
    try:
        holder = json.loads(content)
        return f"process {str(holder['process']).partition('-')[0]} is {holder['doing']}"
    except (ValueError, TypeError, KeyError):
        return "a process that has not said what it does is measuring"


if __name__ == "__main__":
    if holder := who_measures(machine_lock_file()):
        sys.exit(
            f"nothing was set up: {holder} on this machine; two at once would spoil each other. "
            "Wait for it to end; or add WAIT=1, which sets up now, and then waits"
        )
