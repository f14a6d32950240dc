"""A process that a dead controller has left, and who ends it."""

import os
import subprocess

from dlperf_study.machines.supervision.processes import end_orphans
from tests.command_line import wait_for


def require_end_of_orphan(variable: str, mark: str) -> None:
    """Fail unless this process ends and names a process with this mark; that of another test may come first."""
    wait_for(lambda: _is_ended_here(variable, mark), "a survivor that no controller of another test ends first")


def _is_ended_here(variable: str, mark: str) -> bool:
    with subprocess.Popen(["sleep", "60"], env={**os.environ, variable: mark}) as orphan:
        ended = end_orphans()
        assert orphan.wait(5) == -9
    return f"{orphan.pid}: sleep" in ended
