"""Processes of their own that make the batches of ranks: one for each rank, as further tasks of its job. Pure.

A framework knows nothing of them: they are added to the job that it describes.
"""

import os
from dataclasses import replace

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import PRODUCER, Job, Task, TaskRole

MODULE = "dlperf_study.worker.producer"
#: In the environment of every task: where the producer of each rank sends, by rank, as ``host:port``.
ENDPOINTS_VARIABLE = "DLPERF_STUDY_PRODUCERS"


def with_producers(job: Job, configuration: Configuration) -> Job:
    """Return a job with a producer for each rank, on the node of its rank or on the next one.

    Ports are shared by the nodes: the first producer of each node has the same.
    """
    ranks_per_node, distance = configuration.devices_per_node, int(configuration.remote_producers)
    trainer = next(task for task in job.tasks if task.role is TaskRole.TRAINER)
    tasks: list[Task] = []
    endpoints: list[str] = []
    for rank in range(configuration.world_size):
        node = (rank // ranks_per_node + distance) % configuration.nodes
        endpoints.append(f"{{server_host_{node}}}:{{port_{job.ports + rank % ranks_per_node}}}")
        argv = (trainer.argv[0], "-u", "-m", MODULE, str(rank), endpoints[rank])
        tasks.append(Task(f"{PRODUCER}-{rank}", TaskRole.SERVER, node, argv, trainer.environment))
    extended = replace(job, tasks=(*job.tasks, *tasks), ports=job.ports + ranks_per_node)
    return extended.with_environment({ENDPOINTS_VARIABLE: ",".join(endpoints)})


def endpoint_of(rank: int) -> str:
    """Return where the producer of a rank sends, as the environment of this process has it."""
    return os.environ[ENDPOINTS_VARIABLE].split(",")[rank]
