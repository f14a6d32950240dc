"""Before a run: is this machine free to measure?"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from dlperf_study.errors import BusyError
from dlperf_study.study.cluster import Cluster
from dlperf_study.supervision.processes import DRIVER_MARK, end, orphans

SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class Load:
    """What else the machine did: ``busy_cores_before`` is by other processes, just before the run."""

    waited_seconds: float | None
    busy_cores_before: float | None
    survivors_ended: tuple[str, ...]


@contextmanager
def machine_lock(purpose: str) -> Iterator[None]:
    """Be the only one who measures on this machine; the lock goes when this process dies, however it dies.

    Nested use is free: what a driver started measures under the driver's lock.

    Raises:
        BusyError: somebody else measures; the message says who, and what.

    """
    if DRIVER_MARK in os.environ:
        yield
        return
    with open(_lock_file(), "a+") as file:
        _acquire(file)
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "purpose": purpose}))
        file.flush()
        yield


def end_survivors() -> tuple[str, ...]:
    """End what drivers that are dead left behind, and name it."""
    return tuple(end(orphans()))


def wait_until_idle(cluster: Cluster) -> Load:
    """End survivors, then wait until the machine is idle, at most as long as the cluster file says.

    A machine that stays busy is measured all the same; the load is recorded and the report says so.
    """
    ended = end_survivors()
    start = time.monotonic()
    busy = _busy_cores()
    while busy > cluster.idle_max_busy_cores and time.monotonic() - start < cluster.idle_wait_seconds:
        time.sleep(SAMPLE_SECONDS)
        busy = _busy_cores()
    return Load(time.monotonic() - start, busy, ended)


def _busy_cores() -> float:
    return psutil.cpu_percent(interval=SAMPLE_SECONDS) / 100 * (psutil.cpu_count() or 1)


def _lock_file() -> Path:
    """Return one file for the whole machine; ``TMPDIR`` may be another one in every shell."""
    return Path("/tmp") / f"dlperf_study-{os.getuid()}.lock"


def _acquire(file: IO[str]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = json.loads(file.read() or "{}")
        raise BusyError(
            f"process {holder.get('pid', '?')} is measuring {holder.get('purpose', 'something')} on this machine; "
            "two measurements would spoil each other. Wait for it to end, or end it."
        ) from None
