"""A control group with little memory, in which the kernel kills what needs more; it needs the rights of root."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dlperf_study.core.cpu_group import TREE, CpuGroup, is_second_version
from dlperf_study.machines.node_agent.node_load import own_group
from tests.requirements import ROOT, need

#: The file with the limit in bytes, of version 1 and of version 2.
LIMITS = ("memory.limit_in_bytes", "memory.max")


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path]:
    """Make a group; skip the test where that is not allowed."""
    need(ROOT)
    home = TREE / "memory"
    group = (home if home.is_dir() else TREE) / f"dlperf-test-{uuid.uuid4().hex[:8]}"
    try:
        group.mkdir()
        limit = next(group / name for name in LIMITS if (group / name).exists())
        limit.write_text(str(limit_bytes))
    except (OSError, StopIteration) as error:
        pytest.skip(f"needs control groups of memory: {error} (enable: run the container with --privileged)")
    try:
        yield group
    finally:
        # A process that was killed takes a moment to leave it.
        CpuGroup(group, is_second_version()).remove()
        assert not group.exists()


@contextmanager
def processes_started_in(group: Path) -> Iterator[None]:
    """Be in a group for a while: what this process starts meanwhile stays there."""
    before = own_group("memory")
    assert before
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (before / "cgroup.procs").write_text(str(os.getpid()))
