"""Paddle's all-reduce, the threads of a rank bound to their cores."""

from dataclasses import replace

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Job
from dlperf_study.training.frameworks import paddle_collective
from dlperf_study.training.frameworks._base import ClusterView


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return the job of paddle_collective with bound threads."""
    unbound = paddle_collective.job(configuration, cluster)
    bound = (replace(task, environment=task.environment | {"OMP_PROC_BIND": "true"}) for task in unbound.tasks)
    return replace(unbound, tasks=tuple(bound))


FRAMEWORK = replace(
    paddle_collective.FRAMEWORK, name="paddle_bound_threads", display_name="PaddlePaddle, threads bound", job=job
)
