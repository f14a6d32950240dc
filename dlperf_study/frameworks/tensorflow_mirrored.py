"""TensorFlow's MultiWorkerMirroredStrategy: one process per device, gradients averaged by its collectives.

Between CPUs these are rings over gRPC. Gradients are concatenated into packs first: one pack of all of them, or as many
as the configuration's ``fusion_mib`` asks for.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dlperf_study.frameworks import _common, _tensorflow_common
from dlperf_study.frameworks._base import ClusterView, Framework
from dlperf_study.frameworks._tensorflow_common import CHANNELS_LAST, TensorflowTrainer, loss_and_gradients, update
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Job, Task, TaskRole

STRATEGIES = ("all_reduce",)
LEVELS = _tensorflow_common.LEVELS | {"strategy": STRATEGIES}
MIB = 2**20


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if configuration.servers:
        yield f"servers is {configuration.servers}, but all-reduce has no parameter servers"
    yield from _tensorflow_common.obstacles(configuration, cluster, version, LEVELS, settings=("fusion_mib",))


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one task per rank, each with the addresses of all."""
    argv = (cluster.python_for("tensorflow_mirrored"), "-u", "-m", "dlperf_study.worker")
    nodes = [rank // configuration.devices_per_node for rank in range(configuration.world_size)]
    workers = [f"{{host_{node}}}:{{port_{rank}}}" for rank, node in enumerate(nodes)]
    tasks = []
    for rank, node in enumerate(nodes):
        position = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        environment = _tensorflow_common.environment(configuration) | {"TF_CONFIG": json.dumps(position)}
        tasks.append(Task(f"trainer-{rank}", TaskRole.TRAINER, node, argv, environment))
    return Job(tuple(tasks), nodes=configuration.nodes, ports=len(workers))


class MirroredTrainer(TensorflowTrainer):
    """One worker of the strategy, with one replica of the network."""

    #: Those of gRPC.
    exchange_threads = 2

    def __init__(self, configuration: Configuration) -> None:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(configuration.threads_per_device)
        tf.config.threading.set_inter_op_parallelism_threads(configuration.threads_per_device)
        rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
        world_size = configuration.world_size
        super().__init__(configuration, rank, world_size, "all_reduce" if world_size > 1 else "none")
        self._strategy = _strategy(configuration)
        with self._strategy.scope():
            self.network = self.build_network()
            self._velocities = _tensorflow_common.velocities(configuration, self.network.parameters)
        self._compute = tf.function(self._loss_and_gradients, jit_compile=configuration.compiler == "xla" or None)
        self._exchanging_step, self._local_step = tf.function(self._averaged_step), tf.function(self._own_step)

    def on_device(self, images: Any, labels: Any) -> tuple[Any, Any]:
        """Return a batch as tensors, images [N, S, S, 3]."""
        import tensorflow as tf

        return tf.transpose(tf.convert_to_tensor(images), CHANNELS_LAST), tf.convert_to_tensor(labels)

    def graph_of_step(self, batch: tuple[Any, Any]) -> Any:
        """Return the graph of a step with such a batch."""
        return self._exchanging_step.get_concrete_function(*batch).graph

    def train_step(self, batch: tuple[Any, Any]) -> Any:
        """Compute the gradients of this rank's batch, average them over all ranks, and update."""
        return self._exchanging_step(*batch)

    def computation_step(self, batch: tuple[Any, Any]) -> Any:
        """Compute the gradients and update by them."""
        return self._local_step(*batch)

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Let ranks update by their own gradients; at the end every variable has the value from before."""
        trained = [*self.network.parameters, *self.network.statistics, *filter(None, self._velocities)]
        variables = [self._own(variable) for variable in trained]
        values = [variable.numpy() for variable in variables]
        yield
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def exchange(self, size: int) -> Callable[[], None]:
        """Return what averages tensors of the gradients' shapes, the last one cut, in packs as a step does."""
        import tensorflow as tf

        counts = [parameter.shape.num_elements() for parameter in self.network.parameters]
        tensors = [tf.zeros([count]) for count in _common.leading_counts(counts, size // 4)]
        averages = tf.function(lambda: self._strategy.run(self._averages, args=(tensors,)))

        def exchange() -> None:
            averages()

        return exchange

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.agreed_maximum(0.0)

    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all ranks, each of which adds its own to a sum: there is no maximum."""
        import numpy as np
        import tensorflow as tf

        if self.world_size == 1:
            return value
        values = np.zeros(self.world_size)
        values[self.rank] = value
        return float(max(self._sums(tf.constant(values)).numpy()))

    def parameter_checksum(self) -> str:
        """Return a digest of all parameters."""
        return _common.checksum([self._own(parameter).numpy() for parameter in self.network.parameters])

    def close(self) -> None:
        """Wait for the others, so that no rank leaves while one still exchanges."""
        self.barrier()

    def _own(self, variable: Any) -> Any:
        """Return this rank's part of a variable of the strategy."""
        return self._strategy.experimental_local_results(variable)[0]

    def _sums(self, values: Any) -> Any:
        """Return the sum of a tensor over all ranks."""
        import tensorflow as tf

        def replica() -> Any:
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values)

        return self._own(self._strategy.run(replica))

    def _averages(self, tensors: list[Any]) -> list[Any]:
        """Return the means of tensors over all ranks."""
        import tensorflow as tf

        averages: list[Any] = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, tensors)
        return averages

    def _loss_and_gradients(self, images: Any, labels: Any) -> tuple[Any, list[Any]]:
        return loss_and_gradients(self._configuration, self.network, images, labels)

    def _averaged_step(self, images: Any, labels: Any) -> Any:
        return self._step(images, labels, self._averages if self.world_size > 1 else list)

    def _own_step(self, images: Any, labels: Any) -> Any:
        return self._step(images, labels, list)

    def _step(self, images: Any, labels: Any, exchanged: Callable[[list[Any]], list[Any]]) -> Any:
        """Return the loss of a step of this rank's one replica, whose gradients are ``exchanged`` before the update."""
        import tensorflow as tf

        def replica() -> Any:
            loss, gradients = self._compute(images, labels)
            tf.distribute.get_replica_context().merge_call(self._update, args=(exchanged(gradients),))
            return loss

        return self._own(self._strategy.run(replica))

    def _update(self, strategy: Any, gradients: list[Any]) -> None:
        """Update the mirrored variables."""
        for variables in zip(self.network.parameters, self._velocities, gradients, strict=True):
            strategy.extended.update(variables[0], update, args=variables[1:], group=False)


def _strategy(configuration: Configuration) -> Any:
    """Return the strategy of this worker, which waits until all workers have started."""
    from tensorflow import distribute

    packs = {} if configuration.fusion_mib < 0 else {"bytes_per_pack": max(1, configuration.fusion_mib * MIB)}
    ring = distribute.experimental.CommunicationImplementation.RING
    options = distribute.experimental.CommunicationOptions(
        implementation=ring, timeout_seconds=_common.START_SECONDS, **packs
    )
    return distribute.MultiWorkerMirroredStrategy(communication_options=options)


FRAMEWORK = Framework(
    name="tensorflow_mirrored",
    library="tensorflow",
    packages=_tensorflow_common.PACKAGES,
    strategies=STRATEGIES,
    obstacles=obstacles,
    job=job,
    trainer=MirroredTrainer,
    environment_prefixes=_tensorflow_common.ENVIRONMENT_PREFIXES,
    compilers={"xla": None},
    decided_variables=_tensorflow_common.DECIDED_VARIABLES,
)
