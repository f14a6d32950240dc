"""Check the section ``slurm`` of a cluster file against Slurm: its partition, and an allocation of all nodes."""

import os
import re
import shlex
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from dlperf_study.check.reachability import NodeAccess, check_commands, check_nodes
from dlperf_study.check.result import CheckResult, missing, ok, queue_seconds
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.errors import RunError
from dlperf_study.guard.submission import Node
from dlperf_study.slurm import queue
from dlperf_study.slurm.allocation import allocated_nodes
from dlperf_study.slurm.queue import Phase, QueuedJob
from dlperf_study.slurm.script import WHOLE_NODES, devices_and_account
from dlperf_study.slurm.settings import SlurmSettings

#: How long a check may have the nodes, and how often it asks whether it has them.
MINUTES, POLL_SECONDS = 5, 0.5


class NoNodes(RunError):
    """Slurm gives no nodes; the message is its own."""


def by_hand(cluster: Cluster, node: Node, argv: Sequence[str]) -> Sequence[str]:
    """Return how a person runs a command on a node, in a job of its own."""
    return ("srun", f"--nodelist={node.name}", *devices_and_account(cluster), *argv)


ACCESS = NodeAccess(
    "slurm",
    commands=("sbatch", "srun", "salloc", "scontrol", "squeue", "scancel"),
    commands_from="run this where Slurm's commands are",
    by_hand=by_hand,
)


def check_slurm(cluster: Cluster) -> Iterator[CheckResult]:
    """Yield the results; nodes are checked inside a job that has them all."""
    yield (result := check_commands(ACCESS))
    if not result.remedy:
        yield (result := check_partition(cluster))
    if result.remedy:
        return
    try:
        with allocation(cluster) as nodes:
            yield from check_nodes(cluster, nodes, ACCESS)
    except NoNodes as error:
        yield refusal(cluster, str(error))


def check_partition(cluster: Cluster) -> CheckResult:
    """Return whether Slurm has the partition of the cluster file, and enough nodes in it."""
    settings: SlurmSettings = cluster.settings
    try:
        partitions = queue.partitions()
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
        return missing("partition", detail, f"the cluster file says nodes: {cluster.nodes}; lower it, or name another")
    return ok("partition", detail)


@contextmanager
def allocation(cluster: Cluster) -> Iterator[tuple[Node, ...]]:
    """Allocate all nodes of a cluster for a while, unless this process is in a job: then its nodes are taken.

    Raises NoNodes where Slurm gives none.
    """
    if "SLURM_JOB_ID" in os.environ:
        yield allocated_nodes(cluster.guard_python)
        return
    name = f"dlperf-check-{uuid.uuid4().hex[:10]}"
    try:
        yield allocated_nodes(cluster.guard_python, _allocate(cluster, name))
    finally:
        queue.cancel_named(name)


def _allocate(cluster: Cluster, name: str) -> Mapping[str, str]:
    """Return the variables of a job of this name as Slurm sets them inside it; raises NoNodes when it gives none."""
    with subprocess.Popen(allocation_argv(cluster, name), stderr=subprocess.PIPE, text=True) as salloc:
        try:
            waiting_job = _wait_for(salloc, name)
        finally:
            salloc.terminate()
        assert salloc.stderr
        errors = salloc.stderr.read()
    job = queue.named(name)
    if salloc.returncode == 0 and job:
        return {"SLURM_JOB_ID": job.job_id, "SLURM_JOB_NODELIST": job.nodes}
    if waiting_job:
        raise NoNodes(f"not started within {_queue_seconds(cluster):.0f} s: {waiting_job.description()}")
    messages = re.findall("error: (.*)", errors)
    raise NoNodes("; ".join(messages) or errors.strip() or "salloc gives none and says nothing")


def allocation_argv(cluster: Cluster, name: str) -> list[str]:
    """Return the argv that asks for all nodes of a cluster, and leaves them allocated."""
    return [
        *("salloc", "--no-shell", f"--job-name={name}"),
        *(*WHOLE_NODES, f"--time={MINUTES}", f"--immediate={_queue_seconds(cluster):.0f}"),
        *_options_by_hand(cluster),
    ]


def _options_by_hand(cluster: Cluster) -> list[str]:
    """Return the options by which a person would ask for the same nodes."""
    settings: SlurmSettings = cluster.settings
    return [f"--nodes={cluster.nodes}", *devices_and_account(cluster), *settings.options]


def _queue_seconds(cluster: Cluster) -> float:
    settings: SlurmSettings = cluster.settings
    return queue_seconds(settings.start_within_seconds)


def _wait_for(salloc: "subprocess.Popen[str]", name: str) -> QueuedJob | None:
    """Wait until nodes are given or refused; return the job in its last waiting state, if it had to wait."""
    waiting = None
    while salloc.poll() is None:
        job = queue.named(name)
        if job and job.can_never_start:
            raise NoNodes(f"{job.description()}: it can never start")
        if job and job.phase is Phase.WAITING:
            waiting = job
        time.sleep(POLL_SECONDS)
    return waiting


def refusal(cluster: Cluster, message: str) -> CheckResult:
    """Return that Slurm gives no nodes, and which key of the cluster file may be the reason."""
    settings: SlurmSettings = cluster.settings
    options = f"slurm.options is {settings.options}"
    # What to look at, by what Slurm's message contains; the first one counts.
    keys = {
        "qos": f"{options}, and `sacctmgr show qos` lists those there are; ",
        "account|assoc": f"slurm.account is {settings.account!r}, and `sacctmgr show associations user=$USER` "
        "lists yours; ",
        "time ?limit": f"a check asks for {MINUTES} minutes, a run for what its study may take; ",
        "node configuration|gres": f"the cluster file says {cluster.device}, devices_per_node: "
        f"{cluster.devices_per_node}; `scontrol show node` says what a node has; ",
        "feature|reservation|constraint|node name|option": f"{options}; ",
    }
    advice = next((advice for pattern, advice in keys.items() if re.search(pattern, message, re.IGNORECASE)), "")
    command = shlex.join(["salloc", *_options_by_hand(cluster), "true"])
    return missing("nodes", message, f"{advice}try it by hand: {command}")
