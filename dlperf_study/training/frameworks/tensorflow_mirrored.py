"""TensorFlow's MultiWorkerMirroredStrategy: one process per device, gradients averaged by its collectives.

Between CPUs these are rings over gRPC, between GPUs those of NCCL. Gradients are concatenated into packs first: one
pack of all of them, or as many as the configuration's ``fusion_mib`` asks for.
"""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import ALL_REDUCE
from dlperf_study.study.job import Job, Task, TaskRole
from dlperf_study.training.frameworks import _processes, _tensorflow, _tensorflow_training
from dlperf_study.training.frameworks._base import ClusterView, Framework
from dlperf_study.training.frameworks._obstacles import missing_library, server_obstacles
from dlperf_study.training.frameworks._processes import (
    addresses,
    gpus_per_node,
    network_environment,
    trainer_nodes,
    worker_command,
)
from dlperf_study.training.frameworks._tensorflow_training import FunctionTrainer

STRATEGIES = (ALL_REDUCE,)
LEVELS = _tensorflow_training.LEVELS | {"strategy": STRATEGIES}
MIB = 2**20


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    yield from server_obstacles(configuration)
    yield from missing_library("tensorflow", version, _tensorflow_training.REMEDY)
    yield from _tensorflow_training.obstacles(configuration, cluster, LEVELS, settings=("fusion_mib",))


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one task per rank, each with the addresses of all."""
    argv = worker_command(configuration, cluster)
    nodes = trainer_nodes(configuration)
    workers, tasks = addresses("host", nodes), []
    for rank, node in enumerate(nodes):
        position = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        environment = _tensorflow.environment(configuration, cluster, node)
        if cluster.device == "gpu":
            environment |= network_environment(configuration, cluster, node)
        environment |= {"TF_CONFIG": json.dumps(position)} | _tensorflow.WITHOUT_KERAS_3
        tasks.append(Task(f"trainer-{rank}", TaskRole.TRAINER, node, argv, environment))
    gpus = gpus_per_node(configuration, cluster)
    return Job(tuple(tasks), nodes=configuration.nodes, ports=len(workers), gpus_per_node=gpus)


class MirroredTrainer(FunctionTrainer):
    """One worker of the strategy, with one replica of the network."""

    #: gRPC has about ten threads. Sampled while 9 MB were exchanged alone, at most two of them wanted a core at once in
    #: 87 to 94 % of the samples.
    exchange_threads = 2

    def __init__(self, configuration: Configuration) -> None:
        rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
        _tensorflow.show_own_gpu(os.environ, rank % configuration.devices_per_node)
        super().__init__(configuration, rank, configuration.world_size)
        self._strategy = _strategy(configuration)
        # With the name of this process in it: the devices of all processes are known here.
        self.device = self._strategy.extended.worker_devices[0]
        self.build(self._strategy.scope())

    def exchange(self, size: int) -> Callable[[], None]:
        """Return what averages tensors of the gradients' shapes, the last one cut, in packs as a step does."""
        import tensorflow as tf

        tensors = self.leading_tensors(size)
        averages = tf.function(lambda: self._strategy.run(self._averages, args=(tensors,)))

        def exchange() -> None:
            averages()

        return exchange

    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all ranks, each of which adds its own to a sum: there is no maximum."""
        import numpy as np
        import tensorflow as tf

        if self.world_size == 1:
            return value
        values = np.zeros(self.world_size)
        values[self.rank] = value
        with tf.device(self.device):
            return float(max(self._sums(tf.constant(values)).numpy()))

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
        """Return the means of tensors over all ranks, in a replica."""
        import tensorflow as tf

        averages: list[Any] = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, tensors)
        return averages

    def _step(self, batch: tuple[Any, ...], exchanged: Callable[[list[Any]], list[Any]]) -> Any:
        """Return the loss of a step of this rank's one replica, whose gradients are ``exchanged`` before the update."""
        import tensorflow as tf

        def replica() -> Any:
            loss, gradients = self._compute(*batch)
            tf.distribute.get_replica_context().merge_call(self._update, args=(exchanged(gradients),))
            return loss

        return self._own(self._strategy.run(replica))

    def _update(self, strategy: Any, gradients: list[Any]) -> None:
        """Update the mirrored variables."""

        def update_all(finite: list[Any]) -> None:
            self._optimizer.begin()
            for parameter, gradient, kept in zip(self.network.parameters, finite, self._optimizer.kept, strict=True):
                strategy.extended.update(parameter, self._optimizer.update, args=(gradient, *kept), group=False)

        self._scaler.update(gradients, update_all)


def _strategy(configuration: Configuration) -> Any:
    """Return the strategy of this worker, which waits until all workers have started."""
    from tensorflow import distribute

    packs = {} if configuration.fusion_mib < 0 else {"bytes_per_pack": max(1, configuration.fusion_mib * MIB)}
    implementations = distribute.experimental.CommunicationImplementation
    options = distribute.experimental.CommunicationOptions(
        implementation=implementations.NCCL if _tensorflow.uses_gpu() else implementations.RING,
        timeout_seconds=_processes.collective_seconds(),
        **packs,
    )
    return distribute.MultiWorkerMirroredStrategy(communication_options=options)


FRAMEWORK = Framework(
    name="tensorflow_mirrored",
    display_name="TensorFlow mirrored",
    library="tensorflow",
    packages=_tensorflow_training.PACKAGES,
    strategies=STRATEGIES,
    obstacles=obstacles,
    job=job,
    trainer=MirroredTrainer,
    environment_prefixes=_tensorflow_training.ENVIRONMENT_PREFIXES,
    compilers={"xla": None},
    decided_variables=_tensorflow_training.DECIDED_VARIABLES,
    gpu_support=_tensorflow.gpu_support,
    gpu_remedy=_tensorflow_training.GPU_REMEDY,
    allocator=_tensorflow.TensorflowAllocator,
)
