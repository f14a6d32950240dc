"""Try everything a run on a cluster will need, before the first one: what holds, and what to do about the rest."""

from collections.abc import Callable, Iterator

from dlperf_study import launchers
from dlperf_study.check.kubernetes import check_kubernetes
from dlperf_study.check.reachability import commands, on_nodes
from dlperf_study.check.result import CheckResult
from dlperf_study.check.slurm import check_slurm
from dlperf_study.cluster.cluster import Cluster

#: Launchers that have no nodes until they are asked for some: how a cluster of each is checked.
WITHOUT_NODES: dict[str, Callable[[Cluster], Iterator[CheckResult]]] = {
    "slurm": check_slurm,
    "kubernetes": check_kubernetes,
}


def check(cluster: Cluster) -> Iterator[CheckResult]:
    """Yield what was found, in the order it was tried; what needs something that is missing is not tried."""
    return WITHOUT_NODES.get(cluster.launcher, _check_nodes)(cluster)


def _check_nodes(cluster: Cluster) -> Iterator[CheckResult]:
    launcher = launchers.load(cluster.launcher)
    yield (found := commands(launcher))
    if not found.remedy:
        yield from on_nodes(cluster, launcher.nodes(cluster))
