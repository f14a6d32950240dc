"""Whether frameworks can train on the GPUs of this machine, and so which device `auto` is."""

import os
from collections.abc import Collection, Sequence

from dlperf_study import frameworks
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.gpu_support import gpu_obstacle, gpu_support
from dlperf_study.errors import RunError


def why_not_gpu(cluster: Cluster, gpus: Sequence[str], framework_names: Collection[str]) -> str:
    """Return why runs of these frameworks are measured on the CPU of a machine with these GPUs; empty: on a GPU.

    One framework that can train on a GPU suffices: a study of CPUs and GPUs side by side compares nothing. Libraries
    are imported until one sees a GPU, so this takes seconds for each.
    """
    obstacles = []
    for name in framework_names:
        obstacle = gpu_obstacle_here(cluster, name)
        if not obstacle:
            return ""
        obstacles.append(obstacle)
    reasons = "; ".join(dict.fromkeys(obstacles))
    counted_names = ", ".join(f"{gpus.count(name)} × {name}" for name in dict.fromkeys(gpus))
    return f"this machine has {counted_names}, but runs are measured on its CPU: {reasons}"


def gpu_obstacle_here(cluster: Cluster, name: str, wanted: int = 1) -> str:
    """Return why a framework can't train on so many GPUs of this machine; empty: it can."""
    framework = frameworks.load(name)
    if framework.gpu_support is None:
        return gpu_obstacle(framework, None)
    python = (*cluster.container, cluster.python_for(name))
    try:
        support = gpu_support(python, name, os.environ | cluster.environment)
    except RunError as error:
        return str(error)
    return gpu_obstacle(framework, support, wanted)
