"""TensorFlow, parameters kept by servers: asynchronous, or synchronous. Sessions run what ``ServedGraph`` builds.

It is the graph of one trainer, as TensorFlow's between-graph replication has it. Every trainer builds the same graph:
the parameters are variables of the servers, shared by their names, and everything else is its own. Its steps read them
there and add gradients there, so each trainer has its own steps and its own clock. ``ParameterServerStrategy`` has a
coordinator instead, which schedules the steps of all trainers, goes on without those that died, and exits with code 0.

A synchronous step is that of ``tf.compat.v1.train.SyncReplicasOptimizer``, without its thread: accumulators on the
servers average the gradients of all trainers, the first trainer applies the averages once, and only then do all get a
token, which ends the step.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from typing import Any

from dlperf_study.study import communication
from dlperf_study.study.communication import Drain
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.job import Job, Task, TaskRole
from dlperf_study.training.frameworks import _obstacles, _processes, _tensorflow
from dlperf_study.training.frameworks._base import ClusterView, Framework
from dlperf_study.training.frameworks._trainer import CollectiveTrainer, Communication
from dlperf_study.training.libraries import _base
from dlperf_study.training.libraries import tensorflow as tensorflow_library
from dlperf_study.training.libraries._base import Output
from dlperf_study.training.libraries.tensorflow import TensorFlow

#: Trainers are in lockstep, so no gradient is late; accumulators drop those of a smaller number than their own.
NEVER_LATE = 2**62
FIRST_SERVER = "/job:ps/task:0"


class ServedGraph:
    """The networks of a trainer and its operations, by name.

    ``served`` has its parameters on the servers, ``own`` is a copy of this trainer, with a rule to update it.
    """

    def __init__(self, library: TensorFlow, rank: int) -> None:
        import tensorflow as tf

        self._tf: Any = tf
        configuration, self._library = library.configuration, library
        self._configuration, self._rank, self._trainers = configuration, rank, configuration.world_size
        size, samples = configuration.image_size, configuration.batch_per_device
        self._new_images = tf.compat.v1.placeholder(tf.float32, [samples, 3, size, size])
        self._new_labels = tf.compat.v1.placeholder(tf.int64, [samples])
        with tf.device(f"/job:worker/task:{rank}"):
            self._build_batch()
            with _parameters_on_servers(configuration.parameter_servers):
                self.served = library.built(rank, self._trainers)
            self.own = library.built(rank, self._trainers)
            self.loss, gradients = self._loss_and_gradients(self.served)
            self.push = self._pushed(gradients)
            self.own_loss, own_gradients = self._loss_and_gradients(self.own)
            self.update_own = self._updated(self.own.parameters, own_gradients)
            self.pull = self._pulled()
            self.communicate = self._communicated()
        self._value = tf.compat.v1.placeholder(tf.float64, [])
        with tf.device(FIRST_SERVER):
            self._largest = self._maximum()

    def take_batch(self, session: Any, images: Any, labels: Any) -> None:
        """Let steps train on a batch until the next one."""
        import numpy as np

        batch = {self._new_images: np.asarray(images), self._new_labels: np.asarray(labels)}
        session.run(self._batch_taken, batch)

    def initialise(self, session: Any) -> None:
        """Give all variables their initial values, also on servers."""
        variables = [*self.served.statistics, *self.own.parameters, *self.own.statistics, *self._zeros, *self._batch]
        if self._rank == 0:
            variables += self.served.parameters
        session.run([variable.initializer for variable in variables])
        self.agreed_maximum(session, 0.0)

    def agreed_maximum(self, session: Any, value: float) -> float:
        return float(session.run(self._largest, {self._value: value}))

    def _maximum(self) -> Any:
        """Return the largest value, by a queue for each two trainers."""

        # A trainer can be one round ahead of another, so a queue holds two values.
        def queue(sender: int, receiver: int) -> Any:
            return self._tf.queue.FIFOQueue(2, self._tf.float64, [[]], shared_name=f"from_{sender}_to_{receiver}")

        everyone = range(self._trainers)
        sent = [queue(self._rank, receiver).enqueue(self._value) for receiver in everyone]
        with self._tf.control_dependencies(sent):
            return self._tf.reduce_max([queue(sender, self._rank).dequeue() for sender in everyone])

    def _build_batch(self) -> None:
        """Make the variables of the batch: feeding would copy it."""
        images = tensorflow_library.in_memory_format(self._configuration, self._new_images)
        new_values = (images, self._new_labels)
        self._batch = [
            self._tf.Variable(self._tf.zeros(value.shape, value.dtype), trainable=False) for value in new_values
        ]
        pairs = zip(self._batch, new_values, strict=True)
        self._batch_taken = self._tf.group([variable.assign(value, read_value=False) for variable, value in pairs])

    def _loss_and_gradients(self, network: Any) -> tuple[Any, list[Any]]:
        batch = tuple(map(self._tf.convert_to_tensor, self._batch))
        return self._library.loss_and_gradients(network, batch)

    def _updated(self, parameters: list[Any], gradients: list[Any]) -> Any:
        """Return what applies gradients where the parameters are."""
        optimizer = self._tf.compat.v1.train.GradientDescentOptimizer(_base.LEARNING_RATE, use_locking=True)
        return optimizer.apply_gradients(zip(gradients, parameters, strict=True))

    def _pushed(self, gradients: list[Any]) -> Any:
        if self._configuration.strategy == "async":
            return self._updated(self.served.parameters, gradients)
        accumulators = [self._accumulator(k, parameter) for k, parameter in enumerate(self.served.parameters)]
        pushes = [a.apply_grad(g, local_step=NEVER_LATE) for a, g in zip(accumulators, gradients, strict=True)]
        with self._tf.device(FIRST_SERVER):
            tokens = self._tf.queue.FIFOQueue(self._trainers, self._tf.int32, [[]], shared_name="tokens")
        if self._rank == 0:
            averages = [accumulator.take_grad(self._trainers) for accumulator in accumulators]
            with self._tf.control_dependencies([self._updated(self.served.parameters, averages)]):
                pushes.append(tokens.enqueue_many([self._tf.zeros([self._trainers], self._tf.int32)]))
        with self._tf.control_dependencies(pushes):
            return tokens.dequeue().op

    def _accumulator(self, number: int, parameter: Any) -> Any:
        with self._tf.device(parameter.device):
            name = f"accumulator_{number}"
            return self._tf.compat.v1.ConditionalAccumulator(self._tf.float32, parameter.shape, shared_name=name)

    def _pulled(self) -> Any:
        pairs = zip(self.own.parameters, self.served.parameters, strict=True)
        return self._tf.group(
            [copy.assign(self._tf.convert_to_tensor(source), read_value=False) for copy, source in pairs]
        )

    def _communicated(self) -> Any:
        """Return what pushes gradients of zeros and then pulls."""
        self._zeros = [
            self._tf.Variable(lambda p=p: self._tf.zeros(p.shape), trainable=False) for p in self.own.parameters
        ]
        with self._tf.control_dependencies([self._pushed([self._tf.convert_to_tensor(zero) for zero in self._zeros])]):
            return self._pulled()


def _parameters_on_servers(parameter_servers: int) -> AbstractContextManager[Any]:
    """Place parameters on the servers in turn, other variables here."""
    import tensorflow as tf

    servers_in_turn = count()

    def create(next_creator: Any, **options: Any) -> Any:
        if options.get("trainable") is False:
            return next_creator(**options)
        with tf.device(f"/job:ps/task:{next(servers_in_turn) % parameter_servers}"):
            return next_creator(**options)

    scope: AbstractContextManager[Any] = tf.variable_creator_scope(create)
    return scope


STRATEGIES = ("async", "sync")
BUILT = _tensorflow.BUILT | {
    "strategy": STRATEGIES,
    "optimizer": ("sgd",),
    "compiler": ("none",),
    "precision": ("fp32", "tf32", "amp_bf16"),
    "loss_scaling": ("none",),
}
REFUSED_VALUES = {
    "xla": "compiler xla: XLA compiles no variables of other processes, such as parameters on servers",
    "amp_fp16": "precision amp_fp16: parameter servers also apply gradients that are not finite",
}


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if not configuration.parameter_servers:
        yield f"strategy {configuration.strategy} needs parameter_servers of at least 1"
    yield from _obstacles.missing_library("tensorflow", version, _tensorflow.REMEDY)
    yield from _obstacles.sequence_obstacles(configuration)
    yield from _tensorflow.obstacles(configuration, cluster, BUILT, refused=REFUSED_VALUES)


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one task per server, ended by the launcher, and per trainer."""
    parameter_servers, trainers = _processes.server_nodes(configuration), _processes.trainer_nodes(configuration)
    processes = {
        "ps": _processes.addresses("server_host", parameter_servers),
        "worker": _processes.addresses("host", trainers, first_port=len(parameter_servers)),
    }
    argv, tasks = _processes.worker_command(configuration, cluster), []
    roles = ((TaskRole.SERVER, "ps", "PSERVER", parameter_servers), (TaskRole.TRAINER, "worker", "TRAINER", trainers))
    for role, kind, worker_role, nodes in roles:
        for index, node in enumerate(nodes):
            position = {"cluster": processes, "task": {"type": kind, "index": index}}
            environment = _tensorflow.environment(configuration, cluster, node)
            if role is TaskRole.SERVER:
                environment[VISIBLE_DEVICES] = ""
            environment |= {"TF_CONFIG": json.dumps(position), "TRAINING_ROLE": worker_role}
            environment |= _tensorflow.WITHOUT_KERAS_3
            tasks.append(Task(f"{role}-{index}", role, node, argv, environment))
    gpus = _processes.gpus_per_node(configuration, cluster)
    return Job(tuple(tasks), configuration.nodes, ports=len(tasks), gpus_per_node=gpus)


class ServedStep(_base.Step):
    """A step of one trainer, in a session of its own: it reads parameters and applies gradients on the servers."""

    def __init__(self, session: Any, graph: ServedGraph) -> None:
        self._session, self._graph = session, graph

    def __call__(self, batch: None) -> Any:
        return self._session.run([self._graph.loss, self._graph.push])[0]

    def local(self, batch: None) -> Any:
        """Do a step of the copy that this trainer has."""
        return self._session.run([self._graph.own_loss, self._graph.update_own])[0]

    def observed(self, batch: None, layer: Any) -> tuple[list[Output], dict[str, int]]:
        self(batch)
        return tensorflow_library.outputs(self._session.graph), {}

    @contextmanager
    def restored(self) -> Iterator[None]:
        self._session.run(self._graph.pull)
        yield


class ServedTrainers(Communication):
    """All trainers, which meet over queues on the servers."""

    #: gRPC has about ten threads. Sampled while 9 MB were communicated alone, at most two of them wanted a core at once
    #: in 87 to 89 % of the samples.
    threads = 2
    session: Any
    graph: ServedGraph

    def barrier(self) -> None:
        self.maximum(0.0)

    def maximum(self, value: float) -> float:
        return self.graph.agreed_maximum(self.session, value)

    def all_reduce(self, tensors: Sequence[Any]) -> Callable[[], None]:
        return partial(self.session.run, self.graph.communicate)

    def leave(self) -> None:
        self.session.close()


class ParameterServerTrainer(CollectiveTrainer):
    """One trainer, with a session of its own."""

    def __init__(self, configuration: Configuration) -> None:
        position = json.loads(os.environ["TF_CONFIG"])
        rank = position["task"]["index"]
        tensorflow_library.show_own_gpu(os.environ, rank % configuration.devices_per_node)
        import tensorflow as tf

        library, trainers = TensorFlow(configuration), ServedTrainers(rank, configuration.world_size)
        super().__init__(configuration, library, trainers)
        self.communication_kind = communication.STRATEGIES[configuration.strategy].communication
        for endpoint in position["cluster"]["ps"]:
            _processes.wait_for(endpoint)
        self._server = _server(configuration)
        with tf.Graph().as_default():
            self._graph = trainers.graph = ServedGraph(library, rank)
            self.layer = self._graph.served
            settings = _settings(configuration)
            # Without these it would wait for the other trainers.
            settings.device_filters.extend(["/job:ps", f"/job:worker/task:{rank}"])
            self._session = trainers.session = tf.compat.v1.Session(self._server.target, config=settings)
        self._graph.initialise(self._session)
        step = ServedStep(self._session, self._graph)
        self.train_step, self.computation_step = step, step.local

    def transfer_batch(self, *batch: Any) -> None:
        self._graph.take_batch(self._session, *batch)

    def communicate(self, size: int) -> Callable[[], None]:
        return self._communication.all_reduce(())

    def barrier(self) -> None:
        self._communication.barrier()

    def agreed_maximum(self, value: float) -> float:
        return self._communication.maximum(value)

    def settle(self) -> Drain:
        self.barrier()
        return Drain()

    def parameter_checksum(self) -> str:
        return _base.checksum(self._session.run(self.layer.parameters))


def serve(configuration: Configuration) -> None:
    """Be one parameter server, until the launcher ends this process."""
    _server(configuration).join()


def _server(configuration: Configuration) -> Any:
    """Start the server of this process."""
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
    display_name="TensorFlow parameter server",
    library="tensorflow",
    packages=_tensorflow.PACKAGES,
    strategies=STRATEGIES,
    obstacles=obstacles,
    job=job,
    trainer=ParameterServerTrainer,
    server=serve,
    environment_prefixes=_tensorflow.ENVIRONMENT_PREFIXES,
    decided_variables=_tensorflow.DECIDED_VARIABLES,
    gpu_support=tensorflow_library.gpu_support,
    gpu_remedy=_tensorflow.GPU_REMEDY,
    allocator=tensorflow_library.TensorflowAllocator,
)
