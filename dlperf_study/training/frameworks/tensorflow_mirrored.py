"""TensorFlow's MultiWorkerMirroredStrategy: one process per device, gradients averaged by its collectives.

Between CPUs these are rings over gRPC, between GPUs those of NCCL. Gradients are concatenated into packs first: one
pack of all of them, or as many as the configuration's ``fusion_mib`` asks for.
"""

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from dlperf_study.study.communication import ALL_REDUCE
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Job, Task, TaskRole
from dlperf_study.training.frameworks import _obstacles, _processes, _tensorflow
from dlperf_study.training.frameworks._base import ClusterView, Framework
from dlperf_study.training.libraries import tensorflow as tensorflow_library
from dlperf_study.training.libraries.tensorflow import TensorFlow

STRATEGIES = (ALL_REDUCE,)
BUILT = _tensorflow.BUILT | {"strategy": STRATEGIES}
MIB = 2**20


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    yield from _obstacles.server_obstacles(configuration)
    yield from _obstacles.missing_library("tensorflow", version, _tensorflow.REMEDY)
    yield from _tensorflow.obstacles(configuration, cluster, BUILT, settings=("fusion_mib",))


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one task per rank with all addresses."""
    argv = _processes.worker_command(configuration, cluster)
    nodes = _processes.trainer_nodes(configuration)
    workers, tasks = _processes.addresses("host", nodes), []
    for rank, node in enumerate(nodes):
        position = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        environment = _tensorflow.environment(configuration, cluster, node)
        if cluster.device == "gpu":
            environment |= _processes.network_environment(configuration, cluster, node)
        environment |= {"TF_CONFIG": json.dumps(position)} | _tensorflow.WITHOUT_KERAS_3
        tasks.append(Task(f"trainer-{rank}", TaskRole.TRAINER, node, argv, environment))
    gpus = _processes.gpus_per_node(configuration, cluster)
    return Job(tuple(tasks), nodes=configuration.nodes, ports=len(workers), gpus_per_node=gpus)


class MirroredGroup(_tensorflow.FunctionGroup):
    """The workers of a strategy, each with one replica of the network."""

    #: gRPC has about ten threads. Sampled while 9 MB were communicated alone, at most two of them wanted a core at once
    #: in 87 to 94 % of the samples.
    threads = 2

    def __init__(self, rank: int, ranks: int, strategy: Any) -> None:
        super().__init__(rank, ranks)
        self._strategy = strategy
        # With the name of this process in it: the devices of all processes are known here.
        self.device = strategy.extended.worker_devices[0]

    def scope(self) -> AbstractContextManager[Any]:
        scope: AbstractContextManager[Any] = self._strategy.scope()
        return scope

    def barrier(self) -> None:
        self.maximum(0.0)

    def maximum(self, value: float) -> float:
        import numpy as np
        import tensorflow as tf

        # There is no maximum: each rank adds its own value to a sum.
        values = np.zeros(self.ranks)
        values[self.rank] = value

        def replica() -> Any:
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, constant)

        with tf.device(self.device):
            constant = tf.constant(values)
            return float(max(self.own(self._strategy.run(replica)).numpy()))

    def averages(self, tensors: list[Any]) -> list[Any]:
        import tensorflow as tf

        averages: list[Any] = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, tensors)
        return averages

    def averages_alone(self, tensors: list[Any]) -> Any:
        return self._strategy.run(self.averages, args=(tensors,))

    def own(self, variable: Any) -> Any:
        return self._strategy.experimental_local_results(variable)[0]

    def run(
        self, step: _tensorflow.FunctionStep, batch: tuple[Any, ...], communicated: _tensorflow.GradientReduction
    ) -> Any:
        import tensorflow as tf

        def update(strategy: Any, gradients: list[Any]) -> None:
            step.scaler.update(gradients, partial(self._update_all, step))

        def replica() -> Any:
            loss, gradients = step.compute(*batch)
            tf.distribute.get_replica_context().merge_call(update, args=(communicated(gradients),))
            return loss

        return self.own(self._strategy.run(replica))

    def _update_all(self, step: _tensorflow.FunctionStep, gradients: list[Any]) -> None:
        """Update the mirrored variables."""
        optimizer = step.optimizer
        optimizer.begin()
        for parameter, gradient, kept in zip(step.network.parameters, gradients, optimizer.kept, strict=True):
            self._strategy.extended.update(parameter, optimizer.update, args=(gradient, *kept), group=False)


class MirroredTrainer(_tensorflow.FunctionTrainer):
    """One worker of the strategy."""

    def __init__(self, configuration: Configuration) -> None:
        rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
        tensorflow_library.show_own_gpu(os.environ, rank % configuration.devices_per_node)
        library = TensorFlow(configuration, configuration.threads_per_device)
        group = MirroredGroup(rank, configuration.world_size, _strategy(configuration))
        library.device = group.device
        super().__init__(configuration, library, group)


def _strategy(configuration: Configuration) -> Any:
    """Return the strategy, once all workers have started."""
    from tensorflow import distribute

    packs = {} if configuration.fusion_mib < 0 else {"bytes_per_pack": max(1, configuration.fusion_mib * MIB)}
    implementations = distribute.experimental.CommunicationImplementation
    options = distribute.experimental.CommunicationOptions(
        implementation=implementations.NCCL if tensorflow_library.uses_gpu() else implementations.RING,
        timeout_seconds=_processes.collective_seconds(),
        **packs,
    )
    return distribute.MultiWorkerMirroredStrategy(communication_options=options)


FRAMEWORK = Framework(
    name="tensorflow_mirrored",
    display_name="TensorFlow mirrored",
    library="tensorflow",
    packages=_tensorflow.PACKAGES,
    strategies=STRATEGIES,
    obstacles=obstacles,
    job=job,
    trainer=MirroredTrainer,
    environment_prefixes=_tensorflow.ENVIRONMENT_PREFIXES,
    compilers={"xla": None},
    decided_variables=_tensorflow.DECIDED_VARIABLES,
    gpu_support=tensorflow_library.gpu_support,
    gpu_remedy=_tensorflow.GPU_REMEDY,
    allocator=tensorflow_library.TensorflowAllocator,
)
