"""Slurm: one job does the runs of one execution; node agents on its nodes are reached by ``srun``.

A job outlives the controller that submitted it. A later controller that wants the same runs follows it, and submits
nothing.
"""

import os
import re
import shlex
import subprocess
import time
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dlperf_study.core.errors import RunError
from dlperf_study.core.paths import ConfigurationPaths
from dlperf_study.machines.check import CheckResult, missing, ok, queue_seconds
from dlperf_study.machines.check.nodes import NodeAccess, check_commands, check_nodes
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.launchers._base import Launcher, Queue
from dlperf_study.machines.node_agent.submission import Node, Submission, render_submission
from dlperf_study.machines.slurm import queue as slurm_queue
from dlperf_study.machines.slurm.allocation import allocated_nodes
from dlperf_study.machines.slurm.queue import Phase, Refused
from dlperf_study.machines.slurm.script import WHOLE_NODES, SlurmSettings, devices_and_account, script
from dlperf_study.machines.slurm.submitted_job import SCRIPT, SubmittedJob, Watch, abandon, open_jobs, submit_job
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Job, JobResult, ProgramFacts, RunStatus

#: How long a check may have the nodes, and how often it asks whether it has them.
MINUTES, POLL_SECONDS = 5, 0.5
#: One run of a job: the job, and which of its runs.
JobRun = tuple[SubmittedJob, int]


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job, and its sbatch script; starts nothing."""
    submission = render_submission("slurm", job, cluster, folder)
    return replace(submission, files={SCRIPT: script(submission.paths.home.folder.name, job.nodes, cluster)})


def nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Return the nodes of the job around this process."""
    return allocated_nodes(cluster.agent_python)


def queue(cluster: Cluster) -> Queue:
    """Return the limits of the queue."""
    settings: SlurmSettings = cluster.settings
    return Queue(settings.start_within_seconds, settings.jobs_in_queue)


def execute(submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float) -> Generator[JobResult]:
    """Run all in one job, or follow an earlier job; raises RunError when Slurm can't be reached."""
    # An interrupt cancels the job, and so does closing this iterator; a controller that is killed leaves the job to
    # Slurm.
    home = submissions[0].paths.home
    try:
        yield from _results(home, submissions, cluster, timeout_seconds)
    except KeyboardInterrupt:
        cancel(home.folder, cluster)
        yield JobResult(RunStatus.KILLED, "interrupted", seconds=None, interrupted=True)
    finally:
        cancel(home.folder, cluster)


def cancel(folder: Path, cluster: Cluster) -> None:
    """End the unfinished jobs of a configuration."""
    for job in open_jobs(ConfigurationPaths(folder)):
        abandon(job)


def _results(
    home: ConfigurationPaths, submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float
) -> Iterator[JobResult]:
    try:
        runs = _runs(home, submissions, timeout_seconds)
    except Refused as error:
        for _ in submissions:
            yield JobResult(RunStatus.FAILED, f"Slurm rejected the job: {error}", seconds=None)
        return
    watches = {job.paths: Watch(job, cluster.settings) for job, _ in runs}
    for job, index in runs:
        result = watches[job.paths].result(index)
        try:
            yield result
        finally:
            job.paths.recorded(index).touch()


def _runs(home: ConfigurationPaths, submissions: Sequence[Submission], timeout_seconds: float) -> list[JobRun]:
    """Return the run of a job for each submission."""
    # A job with none of these runs, because the code or the configuration has changed, is cancelled: it would measure
    # into the same folders.
    jobs = list(open_jobs(home))
    followed: list[JobRun | None] = []
    followed_paths, new = [], []
    for submission in submissions:
        run = None
        for job in jobs:
            index = job.open_index(submission)
            if index is not None:
                run = job, index
                followed_paths.append(job.paths)
                break
        if run is None:
            new.append(submission)
        followed.append(run)
    for job in jobs:
        if job.paths not in followed_paths:
            abandon(job)
    submitted: Iterator[JobRun] = iter(())
    if new:
        new_job = submit_job(new, timeout_seconds)
        submitted = ((new_job, index) for index in range(len(new)))
    return [run or next(submitted) for run in followed]


class NoNodes(RunError):
    """Slurm gives no nodes; the message is its own."""


def by_hand(cluster: Cluster, node: Node, argv: Sequence[str]) -> Sequence[str]:
    """Return how a person runs a command on a node."""
    return ("srun", f"--nodelist={node.name}", *devices_and_account(cluster), *argv)


ACCESS = NodeAccess(
    "slurm",
    commands=("sbatch", "srun", "salloc", "scontrol", "squeue", "scancel"),
    commands_from="run this where Slurm's commands are",
    by_hand=by_hand,
)


def check(cluster: Cluster, programs: ProgramFacts) -> Iterator[CheckResult]:
    """Yield the results, inside a job with all nodes."""
    yield (result := check_commands(ACCESS))
    if not result.remedy:
        yield (result := check_partition(cluster))
    if result.remedy:
        return
    try:
        with allocation(cluster) as nodes:
            yield from check_nodes(cluster, programs, nodes, ACCESS)
    except NoNodes as error:
        yield refusal(cluster, str(error))


def check_partition(cluster: Cluster) -> CheckResult:
    """Return whether the partition exists and has enough nodes."""
    settings: SlurmSettings = cluster.settings
    try:
        partitions = slurm_queue.partitions()
    except RunError as error:
        return missing("partition", str(error), "see that `sinfo` answers here")
    names = settings.partition.split(",")
    selected = [p for p in partitions if (p.name in names if settings.partition else p.is_default)]
    if len(selected) < len(names):
        available = ", ".join(partition.name for partition in partitions) or "none"
        detail = f"slurm.partition is {settings.partition!r}; there are {available}"
        return missing("partition", detail, "name one of them in the section slurm of the cluster file")
    detail = "; ".join(f"{p.name}: jobs of up to {p.max_nodes} nodes and {p.max_time}" for p in selected)
    if max(partition.max_nodes for partition in selected) < cluster.nodes:
        return missing("partition", detail, f"the cluster file has nodes: {cluster.nodes}; lower it, or name another")
    return ok("partition", detail)


@contextmanager
def allocation(cluster: Cluster) -> Iterator[tuple[Node, ...]]:
    """Allocate all nodes of a cluster for a while; raises NoNodes where Slurm gives none."""
    if "SLURM_JOB_ID" in os.environ:
        yield allocated_nodes(cluster.agent_python)
        return
    name = f"dlperf-check-{uuid.uuid4().hex[:10]}"
    try:
        yield allocated_nodes(cluster.agent_python, _allocate(cluster, name))
    finally:
        slurm_queue.cancel_named(name)


def _allocate(cluster: Cluster, name: str) -> Mapping[str, str]:
    """Return the variables of a job; raises NoNodes without one."""
    with subprocess.Popen(allocation_argv(cluster, name), stderr=subprocess.PIPE, text=True) as salloc:
        try:
            waiting_job = _wait_for(salloc, name)
        finally:
            salloc.terminate()
        assert salloc.stderr
        errors = salloc.stderr.read()
    job = slurm_queue.named(name)
    if salloc.returncode == 0 and job:
        return {"SLURM_JOB_ID": job.job_id, "SLURM_JOB_NODELIST": job.nodes}
    if waiting_job:
        seconds = queue_seconds(cluster.settings.start_within_seconds)
        raise NoNodes(f"not started within {seconds:.0f} s: {waiting_job.description()}")
    messages = re.findall("error: (.*)", errors)
    raise NoNodes("; ".join(messages) or errors.strip() or "salloc printed nothing")


def _wait_for(salloc: "subprocess.Popen[str]", name: str) -> slurm_queue.QueuedJob | None:
    """Return the waiting job; raises NoNodes if it can't start."""
    waiting_job = None
    while salloc.poll() is None:
        job = slurm_queue.named(name)
        if job and job.can_never_start:
            raise NoNodes(f"{job.description()}: it can never start")
        if job and job.phase is Phase.WAITING:
            waiting_job = job
        time.sleep(POLL_SECONDS)
    return waiting_job


def allocation_argv(cluster: Cluster, name: str) -> list[str]:
    """Return the argv that allocates all nodes of a cluster."""
    seconds = queue_seconds(cluster.settings.start_within_seconds)
    return [
        *("salloc", "--no-shell", f"--job-name={name}"),
        *(*WHOLE_NODES, f"--time={MINUTES}", f"--immediate={seconds:.0f}"),
        *_options_by_hand(cluster),
    ]


def _options_by_hand(cluster: Cluster) -> list[str]:
    """Return the options of salloc for a person."""
    settings: SlurmSettings = cluster.settings
    return [f"--nodes={cluster.nodes}", *devices_and_account(cluster), *settings.options]


def refusal(cluster: Cluster, message: str) -> CheckResult:
    """Return that Slurm gives no nodes, with the likely key."""
    settings: SlurmSettings = cluster.settings
    options = f"slurm.options is {settings.options}"
    # What to look at, by what Slurm's message contains; the first one counts.
    keys = {
        "qos": f"{options}, and `sacctmgr show qos` lists the valid ones; ",
        "account|assoc": f"slurm.account is {settings.account!r}, and `sacctmgr show associations user=$USER` "
        "lists yours; ",
        "time ?limit": f"a check requests {MINUTES} minutes, a run the time limit of its study; ",
        "node configuration|gres": f"the cluster file has device: {cluster.device}, devices_per_node: "
        f"{cluster.devices_per_node}; `scontrol show node` shows the devices of a node; ",
        "feature|reservation|constraint|node name|option": f"{options}; ",
    }
    advice = next((advice for pattern, advice in keys.items() if re.search(pattern, message, re.IGNORECASE)), "")
    command = shlex.join(["salloc", *_options_by_hand(cluster), "true"])
    return missing("nodes", message, f"{advice}try it by hand: {command}")


def cpu_limit_obstacle(cluster: Cluster, configuration: Configuration) -> str:
    """Return why no rank can have a limit under Slurm."""
    limit = f"cpu_limit {configuration.cpu_limit:g}"
    return f"{limit}: under Slurm a process would leave the control group of its job, and Slurm would lose it"


LAUNCHER = Launcher(
    *("slurm", render, execute, nodes, check),
    cancel=cancel,
    cpu_limit_obstacle=cpu_limit_obstacle,
    queue=queue,
    settings=SlurmSettings,
)
