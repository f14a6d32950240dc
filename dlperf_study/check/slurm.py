"""What a cluster file says of Slurm, against what Slurm says: its partition, and an allocation of all nodes."""

import os
import re
import shlex
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from dlperf_study import launchers
from dlperf_study.check.reachability import commands, on_nodes
from dlperf_study.check.result import CheckResult, holds, missing
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.errors import RunError
from dlperf_study.guard.probes import queue_seconds
from dlperf_study.guard.submission import Node
from dlperf_study.slurm import queue
from dlperf_study.slurm.allocation import allocated_nodes
from dlperf_study.slurm.queue import Phase, QueuedJob
from dlperf_study.slurm.script import WHOLE_NODES, devices_and_account

#: How long a check may have the nodes, and how often it asks whether it has them.
MINUTES, POLL_SECONDS = 5, 0.5
_NAME_ONE = "name one of them in the section slurm of the cluster file"


class NoNodes(RunError):
    """Slurm gives no nodes; the message is its own."""


def check_slurm(cluster: Cluster) -> Iterator[CheckResult]:
    """Yield what was found; nodes are tried inside of a job that has them all."""
    yield (found := commands(launchers.load(cluster.launcher)))
    if not found.remedy:
        yield (found := partition(cluster))
    if not found.remedy:
        yield from _in_a_job(cluster)


def _in_a_job(cluster: Cluster) -> Iterator[CheckResult]:
    try:
        with allocated(cluster) as nodes:
            yield from on_nodes(cluster, nodes)
    except NoNodes as error:
        yield refused(cluster, str(error))


def partition(cluster: Cluster) -> CheckResult:
    """Return whether Slurm has the partition of the cluster file, and enough nodes in it."""
    try:
        there = queue.partitions()
    except RunError as error:
        return missing("partition", str(error), "see that `sinfo` answers here")
    names = cluster.slurm.partition.split(",")
    meant = [one for one in there if (one.name in names if cluster.slurm.partition else one.is_default)]
    if len(meant) < len(names):
        listed = ", ".join(one.name for one in there) or "none"
        return missing("partition", f"slurm.partition is {cluster.slurm.partition!r}; there are {listed}", _NAME_ONE)
    words = "; ".join(f"{one.name}: jobs of up to {one.most_nodes} nodes and {one.most_time}" for one in meant)
    if max(one.most_nodes for one in meant) < cluster.nodes:
        return missing("partition", words, f"the cluster file says nodes: {cluster.nodes}; lower it, or name another")
    return holds("partition", words)


@contextmanager
def allocated(cluster: Cluster) -> Iterator[tuple[Node, ...]]:
    """Allocate all nodes of a cluster for a while, unless this process is in a job: then its nodes are taken.

    Raises NoNodes where it gives none.
    """
    if "SLURM_JOB_ID" in os.environ:
        yield allocated_nodes(cluster.guard_python)
        return
    name = f"dlperf-check-{uuid.uuid4().hex[:10]}"
    try:
        yield allocated_nodes(cluster.guard_python, _job(cluster, name))
    finally:
        queue.cancel_named(name)


def allocation(cluster: Cluster, name: str) -> list[str]:
    """Return the argv that asks for all nodes of a cluster, and leaves them allocated."""
    return [
        *("salloc", "--no-shell", f"--job-name={name}"),
        *(*WHOLE_NODES, f"--time={MINUTES}", f"--immediate={queue_seconds(cluster):.0f}"),
        *_by_hand(cluster),
    ]


def _by_hand(cluster: Cluster) -> list[str]:
    """Return the options by which a person would ask for the same nodes."""
    return [f"--nodes={cluster.nodes}", *devices_and_account(cluster), *cluster.slurm.options]


def _job(cluster: Cluster, name: str) -> Mapping[str, str]:
    """Return the variables of a job of this name as Slurm would set them inside; raises NoNodes when it gives none."""
    with subprocess.Popen(allocation(cluster, name), stderr=subprocess.PIPE, text=True) as salloc:
        try:
            waited = _watch(salloc, name)
        finally:
            salloc.terminate()
        assert salloc.stderr
        said = salloc.stderr.read()
    job = queue.named(name)
    if salloc.returncode == 0 and job:
        return {"SLURM_JOB_ID": job.number, "SLURM_JOB_NODELIST": job.nodes}
    if waited:
        raise NoNodes(f"not started within {queue_seconds(cluster):.0f} s: {waited.words()}")
    raise NoNodes("; ".join(re.findall("error: (.*)", said)) or said.strip() or "salloc gives none and says nothing")


def _watch(salloc: "subprocess.Popen[str]", name: str) -> QueuedJob | None:
    """Wait until nodes are given or refused; return the job as it was last seen to wait, if it had to."""
    waited = None
    while salloc.poll() is None:
        job = queue.named(name)
        if job and job.can_never_start:
            raise NoNodes(f"{job.words()}: it can never start")
        waited = job if job and job.phase is Phase.WAITING else waited
        time.sleep(POLL_SECONDS)
    return waited


def refused(cluster: Cluster, words: str) -> CheckResult:
    """Return that Slurm gives no nodes, and which key of the cluster file may be why."""
    key = next((advice(cluster) for said, advice in _ADVICE.items() if re.search(said, words, re.IGNORECASE)), "")
    hand = shlex.join(["salloc", *_by_hand(cluster), "true"])
    return missing("nodes", words, f"{key}try it by hand: {hand}")


#: What Slurm says, and which keys of the cluster file to look at then.
_ADVICE: dict[str, Callable[[Cluster], str]] = {
    "qos": lambda cluster: f"{_options(cluster)}, and `sacctmgr show qos` lists those there are; ",
    "account|assoc": lambda cluster: (
        f"slurm.account is {cluster.slurm.account!r}, and `sacctmgr show associations user=$USER` lists yours; "
    ),
    "time ?limit": lambda _: f"a check asks for {MINUTES} minutes, a run for what its study may take; ",
    "node configuration|gres": lambda cluster: (
        f"the cluster file says {cluster.device}, devices_per_node: {cluster.devices_per_node}; "
        "`scontrol show node` says what a node has; "
    ),
    "feature|reservation|constraint|node name|option": lambda cluster: f"{_options(cluster)}; ",
}


def _options(cluster: Cluster) -> str:
    return f"slurm.options is {list(cluster.slurm.options)}"
