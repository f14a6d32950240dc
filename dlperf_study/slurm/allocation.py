"""What a job of Slurm does: its runs, one after another, from the first of its nodes.

Started by the job's script as ``python -m dlperf_study.slurm.allocation FOLDER``. It leaves one file for each
run that it saw to its end; what Slurm cuts off it leaves to Slurm to explain.
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from dlperf_study.cluster.environment_variables import SLURM_VARIABLES
from dlperf_study.cluster.software import measuring_code
from dlperf_study.errors import RunError
from dlperf_study.guard.coordinator import coordinate
from dlperf_study.guard.submission import Node, Submission
from dlperf_study.paths import JobPaths, write_atomically
from dlperf_study.slurm import queue
from dlperf_study.slurm.job import SubmittedJob, read_job
from dlperf_study.study.job import JobResult, Outcome

# The nodes of an allocation, and how a process of it reaches them.


def allocated_nodes(python: str = sys.executable, environment: Mapping[str, str] = os.environ) -> tuple[Node, ...]:
    """Return the nodes of the job that this process belongs to, in Slurm's order; raises RunError outside of one."""
    try:
        number, nodes = environment["SLURM_JOB_ID"], environment["SLURM_JOB_NODELIST"]
    except KeyError as error:
        raise RunError(f"Slurm names nodes only inside of a job, and {error.args[0]} is not set") from error
    return tuple(Node(name, srun(number, name), python) for name in queue.host_names(nodes))


def srun(number: str, node: str) -> tuple[str, ...]:
    """Return what a command is put behind to run on a node of a job.

    One task that has the whole node, beside other such tasks. The job is named: training processes, of which one
    may start others by this, know nothing of the job they are in.
    """
    return (
        *("srun", f"--jobid={number}", f"--nodelist={node}", "--nodes=1", "--ntasks=1", "--overlap", "--mem=0"),
        *("--cpu-bind=none", "--mpi=none", "--export=ALL", "--quiet"),
    )


CUT_OFF = 128 + signal.SIGTERM


def main(folder: Path) -> int:
    """Do the runs of the job in this folder; return the exit code: 0 when each has an ending."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return 0 if _do(read_job(JobPaths(folder)), allocated_nodes()) else CUT_OFF
    except KeyboardInterrupt:
        return CUT_OFF


def _do(job: SubmittedJob, nodes: Sequence[Node]) -> bool:
    """Do one run after another; return whether Slurm let all come to their end."""
    for index, submission in enumerate(job.submissions):
        result = _run(job, submission, nodes)
        if result.interrupted:
            return False
        write_atomically(job.paths.result(index), result.as_json())
    return True


def _run(job: SubmittedJob, submission: Submission, nodes: Sequence[Node]) -> JobResult:
    if job.code != measuring_code():
        return JobResult(Outcome.FAILED, "the measuring code has changed since the job was submitted", seconds=None)
    further = replace(submission, pass_environment=(*submission.pass_environment, *SLURM_VARIABLES))
    return coordinate(further, nodes, job.timeout_seconds)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt, once: a second signal must not cut short the ending of the training processes."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
