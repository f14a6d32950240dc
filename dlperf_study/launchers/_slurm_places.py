"""The nodes of an allocation, and how a process of it reaches them."""

import os
import sys
from collections.abc import Mapping

from dlperf_study.errors import RunError
from dlperf_study.launchers import _slurm_queue as queue
from dlperf_study.launchers._base import Place


def places(python: str = sys.executable, environment: Mapping[str, str] = os.environ) -> tuple[Place, ...]:
    """Return the nodes of the job that this process belongs to, in Slurm's order; raises RunError outside of one."""
    try:
        number, nodes = environment["SLURM_JOB_ID"], environment["SLURM_JOB_NODELIST"]
    except KeyError as error:
        raise RunError(f"Slurm names nodes only inside of a job, and {error.args[0]} is not set") from error
    return tuple(Place(name, srun(number, name), python) for name in queue.host_names(nodes))


def srun(number: str, node: str) -> tuple[str, ...]:
    """Return what a command is put behind to run on a node of a job.

    One task that has the whole node, beside other such tasks. The job is named: training processes, of which one
    may start others by this, know nothing of the job they are in.
    """
    return (
        *("srun", f"--jobid={number}", f"--nodelist={node}", "--nodes=1", "--ntasks=1", "--overlap", "--mem=0"),
        *("--cpu-bind=none", "--mpi=none", "--export=ALL", "--quiet"),
    )
