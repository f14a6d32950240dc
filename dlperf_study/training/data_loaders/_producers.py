"""Processes of their own that make the batches of ranks: one for each rank, as further tasks of its job.

A framework knows nothing of them: they are added to the job that it describes. One producer, for one rank, is
``python -m dlperf_study.training.data_loaders._producers RANK HOST:PORT``.
"""

import json
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

from dlperf_study.core.code_identity import require_code_of_controller
from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.signals import die_with_parent
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import PRODUCER, Job, Task, TaskRole
from dlperf_study.training import data_loaders
from dlperf_study.training.data_loaders._base import batch_consumer
from dlperf_study.training.frameworks._base import CONFIGURATION_VARIABLE

MODULE = "dlperf_study.training.data_loaders._producers"
#: In the environment of every task: where the producer of each rank sends, by rank, as ``host:port``.
ENDPOINTS_VARIABLE = "DLPERF_STUDY_PRODUCERS"


def add_producers(job: Job, configuration: Configuration) -> Job:
    """Return a job with a producer for each rank."""
    # Ports are shared by the nodes: the first producer of each node has the same.
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
    return extended.add_environment({ENDPOINTS_VARIABLE: ",".join(endpoints)})


def producer_endpoint(rank: int) -> str:
    """Return where the producer of a rank sends."""
    return os.environ[ENDPOINTS_VARIABLE].split(",")[rank]


def main() -> None:
    """Serve the batches of the rank until this process ends."""
    die_with_parent()
    require_code_of_controller()
    file = Path(os.environ[CONFIGURATION_VARIABLE])
    configuration = Configuration.from_mapping(json.loads(file.read_text()), str(file))
    source = data_loaders.load(configuration.data_loader)
    if not source.produce:
        raise StudyFileError(f"{file}: data_loader {source.name} has no producer")
    rank, endpoint = int(sys.argv[1]), sys.argv[2]
    host, _, port = endpoint.rpartition(":")
    consumer = batch_consumer(configuration, rank, "numpy")
    source.produce(configuration, consumer, f"{socket.gethostbyname(host)}:{port}")


if __name__ == "__main__":
    main()
