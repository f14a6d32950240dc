"""Runs under Slurm in which shell scripts take the place of training, and the folders they leave."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.launchers import slurm as launcher
from dlperf_study.machines.node_agent.submission import Command, Submission
from dlperf_study.machines.slurm.script import script
from dlperf_study.machines.slurm.submitted_job import SCRIPT
from dlperf_study.study.job import JobResult
from tests.machines import submissions

SLEEP = "touch $FOLDER/started; sleep 600"
CALLER = """
import json, signal, sys
from dataclasses import asdict
signal.signal(signal.SIGINT, signal.default_int_handler)
from dlperf_study.machines.launchers._base import Submission
from dlperf_study.machines.launchers.slurm import execute
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.slurm.script import SlurmSettings
submissions = [Submission.from_json(json.dumps(values)) for values in json.loads(sys.argv[1])]
cluster = Cluster("test", 4, 2, "cpu", "a CPU", "slurm", settings=SlurmSettings(poll_seconds=0.2))
print(json.dumps([asdict(ending) for ending in execute(submissions, cluster, 60)]))
"""


def runs(folder: Path, cluster: Cluster, *scripts: Sequence[str]) -> list[Submission]:
    """Return the runs of a configuration, each with one shell script per node."""
    return [_run(folder / "configuration" / "runs" / str(k), cluster, each) for k, each in enumerate(scripts, 1)]


def _run(folder: Path, cluster: Cluster, scripts: Sequence[str]) -> Submission:
    commands = tuple(
        Command(f"node-{k}", "trainer", ("sh", "-c", text), {"FOLDER": str(folder)}, f"{folder}/node-{k}.log", k)
        for k, text in enumerate(scripts)
    )
    return submissions.submission(
        *("slurm", str(folder), commands, 1),
        nodes=len(scripts),
        idle_wait_seconds=cluster.idle_wait_seconds,
        cache_key="f1",
        files={SCRIPT: script("a configuration", len(scripts), cluster)},
    )


def execute(asked: list[Submission], cluster: Cluster, timeout_seconds: float = 60) -> list[JobResult]:
    return list(launcher.execute(asked, cluster, timeout_seconds))


def jobs_of(asked: list[Submission]) -> list[Path]:
    return sorted((Path(asked[0].folder).parents[1] / "jobs").iterdir())


def caller(asked: list[Submission]) -> "subprocess.Popen[str]":
    """Return a process that executes the runs."""
    order, pipe = json.dumps([asdict(one) for one in asked]), subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", CALLER, order], stdout=pipe, stderr=pipe, text=True)


def begun(asked: Submission) -> bool:
    return (Path(asked.folder) / "started").exists()


def number_of(asked: list[Submission]) -> str:
    """Return the id of the only job that these runs were handed over to."""
    [job] = jobs_of(asked)
    return (job / "job_id.txt").read_text().strip()
