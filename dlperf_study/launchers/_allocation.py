"""What a job of Slurm does: its runs, one after another, from the first of its nodes.

Started by the job's script as ``python -m dlperf_study.launchers._allocation FOLDER``. It leaves one file for each
run that it saw to its end; what Slurm cuts off it leaves to Slurm to explain.
"""

import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from dlperf_study.launchers._base import Ending, Place, Submission
from dlperf_study.launchers._coordinator import coordinate
from dlperf_study.launchers._slurm_job import HandedJob, read_job
from dlperf_study.launchers._slurm_places import places
from dlperf_study.launchers._slurm_queue import OWN_VARIABLES
from dlperf_study.paths import JobPaths, write_atomically
from dlperf_study.study.outcome import Outcome
from dlperf_study.study.software import measuring_code

CUT_OFF = 128 + signal.SIGTERM


def main(folder: Path) -> int:
    """Do the runs of the job in this folder; return the exit code: 0 when each has an ending."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return 0 if _do(read_job(JobPaths(folder)), places()) else CUT_OFF
    except KeyboardInterrupt:
        return CUT_OFF


def _do(job: HandedJob, nodes: Sequence[Place]) -> bool:
    """Do one run after another; return whether Slurm let all come to their end."""
    for index, submission in enumerate(job.submissions):
        ending = _run(job, submission, nodes)
        if ending.interrupted:
            return False
        write_atomically(job.paths.ending(index), ending.as_json())
    return True


def _run(job: HandedJob, submission: Submission, nodes: Sequence[Place]) -> Ending:
    if job.code != measuring_code():
        return Ending(Outcome.FAILED, "the measuring code has changed since the job was submitted", seconds=None)
    further = replace(submission, pass_environment=(*submission.pass_environment, *OWN_VARIABLES))
    return coordinate(further, nodes, job.timeout_seconds)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt, once: a second signal must not cut short the ending of the training processes."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
