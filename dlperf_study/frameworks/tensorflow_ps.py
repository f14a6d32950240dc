"""TensorFlow, parameters kept by servers: asynchronous, or synchronous. Sessions run what ``ServedGraph`` builds."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from dlperf_study.frameworks import _common, _tensorflow_common, _tensorflow_devices
from dlperf_study.frameworks._allocators import TensorflowAllocator
from dlperf_study.frameworks._base import ClusterView, Drain, Framework
from dlperf_study.frameworks._obstacles import missing_library
from dlperf_study.frameworks._tasks import addresses, gpus_per_node, server_nodes, trainer_nodes
from dlperf_study.frameworks._tensorflow_common import TensorflowTrainer
from dlperf_study.frameworks._tensorflow_served import ServedGraph
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import VISIBLE_DEVICES, Job, Task, TaskRole

STRATEGIES = ("async", "sync")
EXCHANGES = {"async": "push_pull", "sync": "synchronous_push_pull"}
LEVELS = _tensorflow_common.LEVELS | {
    "strategy": STRATEGIES,
    "optimizer": ("sgd",),
    "compiler": ("none",),
    "precision": ("fp32", "tf32", "amp_bf16"),
    "loss_scaling": ("none",),
}
REFUSED_LEVELS = {
    "xla": "compiler xla: XLA compiles no variables of other processes, which parameters on servers are",
    "amp_fp16": "precision amp_fp16: servers apply gradients without looking whether they are finite",
}


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if not configuration.servers:
        yield f"strategy {configuration.strategy} needs servers of at least 1"
    yield from missing_library("tensorflow", version, _tensorflow_common.REMEDY)
    yield from _tensorflow_common.obstacles(configuration, cluster, LEVELS, refused=REFUSED_LEVELS)


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one task per server and per trainer, each with the addresses of all.

    Servers never exit by themselves; the launcher ends them.
    """
    servers, trainers = server_nodes(configuration), trainer_nodes(configuration)
    processes = {
        "ps": addresses("server_host", servers),
        "worker": addresses("host", trainers, first_port=len(servers)),
    }
    tasks = []
    for role, nodes in ((TaskRole.SERVER, servers), (TaskRole.TRAINER, trainers)):
        for index, node in enumerate(nodes):
            tasks.append(_task(configuration, cluster, processes, role, index, node))
    return Job(tuple(tasks), configuration.nodes, ports=len(tasks), gpus_per_node=gpus_per_node(configuration, cluster))


def _task(
    configuration: Configuration,
    cluster: ClusterView,
    processes: dict[str, list[str]],
    role: TaskRole,
    index: int,
    node: int,
) -> Task:
    argv = (cluster.python_for("tensorflow_ps"), "-u", "-m", "dlperf_study.worker")
    kind, worker_role = ("ps", "PSERVER") if role is TaskRole.SERVER else ("worker", "TRAINER")
    position = {"cluster": processes, "task": {"type": kind, "index": index}}
    environment = _tensorflow_devices.environment(configuration, cluster, node)
    if role is TaskRole.SERVER:
        environment[VISIBLE_DEVICES] = ""
    environment |= {"TF_CONFIG": json.dumps(position), "TRAINING_ROLE": worker_role}
    environment |= _tensorflow_devices.WITHOUT_KERAS_3
    return Task(f"{role}-{index}", role, node, argv, environment)


class ParameterServerTrainer(TensorflowTrainer):
    """One trainer, with a session of its own."""

    #: gRPC has about ten threads. Sampled while 9 MB were exchanged alone, at most two of them wanted a core at once in
    #: 87 to 89 % of the samples.
    exchange_threads = 2

    def __init__(self, configuration: Configuration) -> None:
        position = json.loads(os.environ["TF_CONFIG"])
        rank, exchange_kind = position["task"]["index"], EXCHANGES[configuration.strategy]
        _tensorflow_devices.show_own_gpu(os.environ, rank % configuration.devices_per_node)
        import tensorflow as tf

        super().__init__(configuration, rank, configuration.world_size, exchange_kind)
        for endpoint in position["cluster"]["ps"]:
            _common.wait_for(endpoint)
        self._server = _server(configuration)
        with tf.Graph().as_default():
            self._graph = ServedGraph(configuration, self.rank, self.build_network)
            self.network = self._graph.served
            settings = _settings(configuration)
            # Without these it would wait for the other trainers.
            settings.device_filters.extend(["/job:ps", f"/job:worker/task:{self.rank}"])
            self._session = tf.compat.v1.Session(self._server.target, config=settings)
        self._graph.initialise(self._session)

    def on_device(self, images: Any, labels: Any) -> None:
        """Put a batch where the steps read it: into variables of the graph, on the device of this trainer."""
        self._graph.take_batch(self._session, images, labels)

    def graph_of_step(self, batch: None) -> Any:
        """Return the graph of all steps."""
        return self._session.graph

    def train_step(self, batch: None) -> Any:
        """Read the parameters, compute the gradients, and apply them on the servers."""
        return self._session.run([self._graph.loss, self._graph.push])[0]

    def computation_step(self, batch: None) -> Any:
        """Do a step of the copy that this trainer has."""
        return self._session.run([self._graph.own_loss, self._graph.update_own])[0]

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Copy the parameters from the servers, which stay as they are."""
        self._session.run(self._graph.pull)
        yield

    def exchange(self, size: int) -> Callable[[], None]:
        """Return what pushes gradients of zeros, and then copies the parameters from the servers."""
        return partial(self._session.run, self._graph.exchange)

    def loss_scaling(self) -> None:
        """Return nothing: losses are not scaled."""

    def barrier(self) -> None:
        """Wait for all trainers."""
        self.agreed_maximum(0.0)

    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all trainers."""
        return self._graph.agreed_maximum(self._session, value)

    def settle(self) -> Drain:
        """Wait for the last step of every trainer, which ends with its gradients applied: nothing is pending then."""
        self.barrier()
        return Drain()

    def parameter_checksum(self) -> str:
        """Return a digest of the parameters on the servers."""
        return _common.checksum(self._session.run(self.network.parameters))

    def close(self) -> None:
        """Wait for the others, so that no trainer leaves while one still trains."""
        self.barrier()
        self._session.close()


def serve(configuration: Configuration) -> None:
    """Be one parameter server, until the launcher ends this process."""
    _server(configuration).join()


def _server(configuration: Configuration) -> Any:
    """Start what other processes reach this one by, under its address in TF_CONFIG."""
    import tensorflow as tf

    position = json.loads(os.environ["TF_CONFIG"])
    kind, index = position["task"]["type"], position["task"]["index"]
    return tf.distribute.Server(position["cluster"], kind, index, config=_settings(configuration))


def _settings(configuration: Configuration) -> Any:
    import tensorflow as tf

    threads = configuration.threads_per_device
    return tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads,
        inter_op_parallelism_threads=threads,
        # Queues and labels are on the host whatever device the operations around them have.
        allow_soft_placement=True,
    )


FRAMEWORK = Framework(
    name="tensorflow_ps",
    library="tensorflow",
    packages=_tensorflow_common.PACKAGES,
    strategies=STRATEGIES,
    obstacles=obstacles,
    job=job,
    trainer=ParameterServerTrainer,
    server=serve,
    environment_prefixes=_tensorflow_common.ENVIRONMENT_PREFIXES,
    decided_variables=_tensorflow_common.DECIDED_VARIABLES,
    gpu_support=_tensorflow_devices.gpu_support,
    gpu_remedy=_tensorflow_common.GPU_REMEDY,
    allocator=TensorflowAllocator,
)
