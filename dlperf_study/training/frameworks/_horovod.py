"""Shared by the frameworks of Horovod: what they refuse, its job, its settings, and the GPUs that a rank sees."""

import math
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.job import Job, Task, TaskRole
from dlperf_study.training.frameworks._base import ClusterView
from dlperf_study.training.frameworks._processes import gpus_per_node, worker_command
from dlperf_study.training.frameworks._trainer import Communication

SETTINGS = ("fusion_mib", "cycle_time_ms", "hierarchical")
MIB = 2**20
#: The GPUs that are visible to ranks, a list for each node.
GPUS_OF_NODES = "DLPERF_STUDY_GPUS_OF_NODES"
ENVIRONMENT_PREFIX = "HOROVOD_"
DECIDED_VARIABLES = (
    *("HOROVOD_AUTOTUNE", "HOROVOD_CYCLE_TIME", "HOROVOD_FUSION_THRESHOLD"),
    *("HOROVOD_HIERARCHICAL", "HOROVOD_TIMELINE"),
)
#: The files of the launcher: one folder per rank, one file per stream.
RANK_OUTPUT = r"ranks/rank\.(?P<rank>\d+)/(?P<stream>stdout|stderr)"


def obstacles(configuration: Configuration, cluster: ClusterView) -> Iterator[str]:
    """Yield what Horovod can't do with these devices."""
    if configuration.hierarchical and cluster.device != "gpu":
        yield "hierarchical is for NCCL and MPI; gloo, which communicates between CPUs, ignores it"


def job(configuration: Configuration, cluster: ClusterView, environment: dict[str, str]) -> Job:
    """Return one ``horovodrun``, which reaches other nodes by ``ssh``."""
    # A single process prints into its launcher's log: Horovod 0.28.1 can't name the output folder of one rank. Without
    # ``--disable-cache`` it remembers for an hour which hosts it could reach.
    python, devices = cluster.python_for(configuration.framework), configuration.devices_per_node
    hosts = ",".join(f"{{host_{node}}}:{devices}" for node in range(configuration.nodes))
    argv = (
        *(python, "-m", "horovod.runner.launch", "--gloo"),
        *("--num-proc", str(configuration.world_size), "--hosts", hosts),
        *("--start-timeout", str(math.ceil(cluster.meet_seconds))),
        *(("--output-filename", "{run}/scratch/ranks") if configuration.world_size > 1 else ()),
        *(("--network-interfaces", "{interface_0}", "--disable-cache") if configuration.nodes > 1 else ()),
        *worker_command(configuration, cluster),
    )
    environment |= settings(configuration)
    gpus = gpus_per_node(configuration, cluster)
    if gpus and configuration.nodes > 1:
        environment[GPUS_OF_NODES] = " ".join(f"{{devices_{node}}}" for node in range(configuration.nodes))
    task = Task(name="horovodrun", role=TaskRole.TRAINER, node=0, argv=argv, environment=environment)
    return Job((task,), nodes=configuration.nodes, rank_output=RANK_OUTPUT, gpus_per_node=gpus, starts_other_nodes=True)


def settings(configuration: Configuration) -> dict[str, str]:
    """Return the settings of Horovod that a configuration decides."""
    values = {
        "HOROVOD_FUSION_THRESHOLD": configuration.fusion_mib * MIB if configuration.fusion_mib >= 0 else None,
        "HOROVOD_CYCLE_TIME": configuration.cycle_time_ms if configuration.cycle_time_ms >= 0 else None,
        "HOROVOD_HIERARCHICAL_ALLREDUCE": 1 if configuration.hierarchical else None,
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def show_gpus_of_node(environment: MutableMapping[str, str]) -> None:
    """Show a rank the GPUs of its node, not the first's."""
    # Call this before CUDA is first used. Among ranks of equal local rank, Horovod counts nodes by its cross rank.
    if GPUS_OF_NODES in environment:
        environment[VISIBLE_DEVICES] = environment[GPUS_OF_NODES].split()[int(environment["HOROVOD_CROSS_RANK"])]


class HorovodGroup(Communication):
    """All ranks, which Horovod's background thread connects; ``hvd`` is its module for a library."""

    #: Horovod's own, and one of gloo that moves bytes, as sampled while gradients were communicated alone.
    threads = 2

    def __init__(self, hvd: Any, support: Callable[[], GpuSupport]) -> None:
        hvd.init()
        super().__init__(hvd.rank(), hvd.size())
        self._hvd, self._support = hvd, support

    def gpu_support(self) -> GpuSupport:
        return self._support()

    def leave(self) -> None:
        self._hvd.shutdown()
