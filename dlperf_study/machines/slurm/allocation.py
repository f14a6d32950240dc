"""The program of a Slurm job: its runs, one after another, from the first of its nodes.

Started by the job's script as ``python -m dlperf_study.machines.slurm.allocation FOLDER``. It writes one file for each
completed or failed run; for a run that Slurm interrupts, Slurm's own state is the reason.
"""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from dlperf_study.core import code_identity, signals, writing
from dlperf_study.core.errors import RunError
from dlperf_study.core.paths import JobPaths
from dlperf_study.machines.node_agent.coordinator import coordinate
from dlperf_study.machines.node_agent.submission import Node
from dlperf_study.machines.slurm import queue
from dlperf_study.machines.slurm.queue import SLURM_VARIABLES
from dlperf_study.machines.slurm.submitted_job import read_job
from dlperf_study.study.job import JobResult, RunStatus

#: The exit code of a job that was interrupted.
INTERRUPTED = 128 + signal.SIGTERM


def main(folder: Path) -> int:
    """Do the runs of the job; return its exit code."""
    signals.interrupt_once()
    try:
        job, nodes = read_job(JobPaths(folder)), allocated_nodes()
        for index, submission in enumerate(job.submissions):
            if submission.code != code_identity.code_digest(submission.code_roots):
                reason = "the benchmark code has changed since the job was submitted"
                result = JobResult(RunStatus.FAILED, reason, seconds=None)
            else:
                # Commands of Slurm on the nodes need its variables too.
                passed = submission.changed_cluster(
                    pass_environment=(*submission.cluster.pass_environment, *SLURM_VARIABLES)
                )
                result = coordinate(passed, nodes, job.timeout_seconds, unrecorded=SLURM_VARIABLES)
            if result.interrupted:
                return INTERRUPTED
            writing.write_atomically(job.paths.result(index), result.as_json())
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def allocated_nodes(python: str = sys.executable, environment: Mapping[str, str] = os.environ) -> tuple[Node, ...]:
    """Return the nodes of this job; raises RunError outside one."""
    try:
        job_id, names = environment["SLURM_JOB_ID"], environment["SLURM_JOB_NODELIST"]
    except KeyError as error:
        raise RunError(f"Slurm names nodes only inside of a job, and {error.args[0]} is not set") from error
    return tuple(Node(name, srun(job_id, name), python) for name in queue.host_names(names))


def srun(job_id: str, node: str) -> tuple[str, ...]:
    """Return the command prefix for a node of a job."""
    # One task that has the whole node, next to other such tasks. The job is named: training processes, of which one may
    # start others by this, know nothing of the job they are in.
    return (
        *("srun", f"--jobid={job_id}", f"--nodelist={node}", "--nodes=1", "--ntasks=1", "--overlap", "--mem=0"),
        *("--cpu-bind=none", "--mpi=none", "--export=ALL", "--quiet"),
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
