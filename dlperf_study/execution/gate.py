"""Before a study: does anybody else measure on this machine, or the same study elsewhere?"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dlperf_study import launchers
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.paths import StudyPaths
from dlperf_study.supervision.locks import lock
from dlperf_study.supervision.processes import DRIVER_MARK


@contextmanager
def study_lock(study: str, cluster: Cluster) -> Iterator[None]:
    """Be the only one who measures where this study does.

    A queue gives every run nodes of its own: then it is enough that nobody else drives the same study.
    Raises BusyError when somebody does; the message says who.
    """
    purpose = f"study {study}"
    if launchers.load(cluster.launcher).queue(cluster):
        held = _held_by_drivers(StudyPaths.of(study).lock, purpose, "would submit and cancel each other's jobs")
    else:
        held = machine_lock(purpose)
    with held:
        yield


@contextmanager
def machine_lock(purpose: str) -> Iterator[None]:
    """Be the only one who measures on this machine.

    Raises:
        BusyError: somebody else measures; the message says who, and what.

    """
    with _held_by_drivers(_lock_file(), purpose, "would spoil each other"):
        yield


@contextmanager
def _held_by_drivers(path: Path, purpose: str, why: str) -> Iterator[None]:
    """Hold a lock; nested use is free: what a driver started measures under the driver's lock."""
    if DRIVER_MARK in os.environ:
        yield
        return
    with lock(path, f"measuring {purpose}", why):
        yield


def _lock_file() -> Path:
    """Return one file for the whole machine; ``TMPDIR`` may be another one in every shell."""
    return Path("/tmp") / f"dlperf_study-{os.getuid()}.lock"
