"""The locks of a study: nothing else may measure on this machine, or measure the same study elsewhere."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dlperf_study import launchers
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.paths import StudyPaths
from dlperf_study.supervision.locks import lock, runtime_folder
from dlperf_study.supervision.processes import DRIVER_MARK


@contextmanager
def study_lock(study: str, cluster: Cluster) -> Iterator[None]:
    """Hold the lock of whatever this study measures on.

    A queue gives every run separate nodes: then it is enough that no other driver runs the same study.
    Raises BusyError when another process holds it; the message names the process.
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
    """Hold the lock of this machine.

    Raises BusyError when another process measures here; the message names it, and what it measures.
    """
    with _held_by_drivers(machine_lock_file(), purpose, "would spoil each other"):
        yield


def machine_lock_file() -> Path:
    """Return one file for the whole machine; ``TMPDIR`` may be different in every shell."""
    return runtime_folder() / "dlperf_study.lock"


@contextmanager
def _held_by_drivers(path: Path, purpose: str, why: str) -> Iterator[None]:
    """Hold a lock, unless a driver started this process: that measures under the lock of the driver."""
    if DRIVER_MARK in os.environ:
        yield
        return
    with lock(path, f"measuring {purpose}", why):
        yield
