"""The graph of one trainer with parameter servers, as TensorFlow's between-graph replication has it.

Every trainer builds the same graph: the parameters are variables of the servers, shared by their names, and everything
else is its own. Its steps read them there and add gradients there, so each trainer has its own steps and its own clock.
``ParameterServerStrategy`` has a coordinator instead, which schedules the steps of all trainers, goes on without those
that died, and exits with code 0.

A synchronous step is that of ``tf.compat.v1.train.SyncReplicasOptimizer``, without its thread: accumulators on the
servers average the gradients of all trainers, the first trainer applies the averages once, and only then do all get a
token, which ends the step.
"""

from contextlib import AbstractContextManager
from itertools import count
from typing import Any

from dlperf_study.frameworks import _common, _tensorflow_common
from dlperf_study.study.configuration import Configuration

#: Trainers are in lockstep, so no gradient is late; accumulators drop those of a smaller number than their own.
NEVER_LATE = 2**62
FIRST_SERVER = "/job:ps/task:0"


class ServedGraph:
    """The networks of a trainer and its operations, by name; ``build`` makes a network.

    ``served`` has its parameters on the servers, ``own`` is a copy of this trainer, with a rule to update it.
    """

    def __init__(self, configuration: Configuration, rank: int, build: Any) -> None:
        import tensorflow as tf

        self._configuration, self._rank, self._trainers = configuration, rank, configuration.world_size
        size, samples = configuration.image_size, configuration.batch_per_device
        self._new_images = tf.compat.v1.placeholder(tf.float32, [samples, 3, size, size])
        self._new_labels = tf.compat.v1.placeholder(tf.int64, [samples])
        with tf.device(f"/job:worker/task:{rank}"):
            self._build_batch()
            with _parameters_on_servers(configuration.servers):
                self.served = build()
            self.own = build()
            self.loss, gradients = self._loss_and_gradients(self.served)
            self.push = self._pushed(gradients)
            self.own_loss, own_gradients = self._loss_and_gradients(self.own)
            self.update_own = self._updated(self.own.parameters, own_gradients)
            self.pull = self._pulled()
            self.exchange = self._exchanged()
        self._value = tf.compat.v1.placeholder(tf.float64, [])
        with tf.device(FIRST_SERVER):
            self._largest = self._maximum()

    def take_batch(self, session: Any, images: Any, labels: Any) -> None:
        """Let steps train on a batch, images [N, 3, S, S] and labels [N], until the next one."""
        import numpy as np

        batch = {self._new_images: np.asarray(images), self._new_labels: np.asarray(labels)}
        session.run(self._batch_taken, batch)

    def initialise(self, session: Any) -> None:
        """Give all variables their initial values; those on the servers have them when this returns."""
        variables = [*self.served.statistics, *self.own.parameters, *self.own.statistics, *self._zeros, *self._batch]
        if self._rank == 0:
            variables += self.served.parameters
        session.run([variable.initializer for variable in variables])
        self.agreed_maximum(session, 0.0)

    def agreed_maximum(self, session: Any, value: float) -> float:
        """Return the largest ``value`` of all trainers, each of which must call it."""
        return float(session.run(self._largest, {self._value: value}))

    def _maximum(self) -> Any:
        """Return the largest value of all trainers: each sends its own to all, by a queue for each two of them.

        A trainer can be one round ahead of another, so a queue holds two values.
        """
        import tensorflow as tf

        def queue(sender: int, receiver: int) -> Any:
            return tf.queue.FIFOQueue(2, tf.float64, [[]], shared_name=f"from_{sender}_to_{receiver}")

        everyone = range(self._trainers)
        sent = [queue(self._rank, receiver).enqueue(self._value) for receiver in everyone]
        with tf.control_dependencies(sent):
            return tf.reduce_max([queue(sender, self._rank).dequeue() for sender in everyone])

    def _build_batch(self) -> None:
        """Make the variables of the batch: a step that was fed with it would copy it to its device every time."""
        import tensorflow as tf

        images = _tensorflow_common.in_memory_format(self._configuration, self._new_images)
        new_values = (images, self._new_labels)
        self._batch = [tf.Variable(tf.zeros(value.shape, value.dtype), trainable=False) for value in new_values]
        pairs = zip(self._batch, new_values, strict=True)
        self._batch_taken = tf.group([variable.assign(value, read_value=False) for variable, value in pairs])

    def _loss_and_gradients(self, network: Any) -> tuple[Any, list[Any]]:
        import tensorflow as tf

        images, labels = map(tf.convert_to_tensor, self._batch)
        return _tensorflow_common.loss_and_gradients(self._configuration, network, images, labels)

    def _updated(self, parameters: list[Any], gradients: list[Any]) -> Any:
        """Return what applies gradients where the parameters are."""
        import tensorflow as tf

        optimizer = tf.compat.v1.train.GradientDescentOptimizer(_common.LEARNING_RATE, use_locking=True)
        return optimizer.apply_gradients(zip(gradients, parameters, strict=True))

    def _pushed(self, gradients: list[Any]) -> Any:
        """Return what applies gradients on the servers, alone or with those of all trainers."""
        import tensorflow as tf

        if self._configuration.strategy == "async":
            return self._updated(self.served.parameters, gradients)
        accumulators = [self._accumulator(k, parameter) for k, parameter in enumerate(self.served.parameters)]
        pushes = [a.apply_grad(g, local_step=NEVER_LATE) for a, g in zip(accumulators, gradients, strict=True)]
        with tf.device(FIRST_SERVER):
            tokens = tf.queue.FIFOQueue(self._trainers, tf.int32, [[]], shared_name="tokens")
        if self._rank == 0:
            averages = [accumulator.take_grad(self._trainers) for accumulator in accumulators]
            with tf.control_dependencies([self._updated(self.served.parameters, averages)]):
                pushes.append(tokens.enqueue_many([tf.zeros([self._trainers], tf.int32)]))
        with tf.control_dependencies(pushes):
            return tokens.dequeue().op

    def _accumulator(self, number: int, parameter: Any) -> Any:
        import tensorflow as tf

        with tf.device(parameter.device):
            name = f"accumulator_{number}"
            return tf.compat.v1.ConditionalAccumulator(tf.float32, parameter.shape, shared_name=name)

    def _pulled(self) -> Any:
        """Return what copies the parameters of the servers to the own ones."""
        import tensorflow as tf

        pairs = zip(self.own.parameters, self.served.parameters, strict=True)
        return tf.group([copy.assign(tf.convert_to_tensor(source), read_value=False) for copy, source in pairs])

    def _exchanged(self) -> Any:
        """Return what pushes gradients of zeros and then pulls."""
        import tensorflow as tf

        self._zeros = [tf.Variable(lambda p=p: tf.zeros(p.shape), trainable=False) for p in self.own.parameters]
        with tf.control_dependencies([self._pushed([tf.convert_to_tensor(zero) for zero in self._zeros])]):
            return self._pulled()


def _parameters_on_servers(servers: int) -> AbstractContextManager[Any]:
    """Place what is trained on the servers in turn, as TensorFlow does by default, and all other variables here."""
    import tensorflow as tf

    servers_in_turn = count()

    def create(next_creator: Any, **options: Any) -> Any:
        if options.get("trainable") is False:
            return next_creator(**options)
        with tf.device(f"/job:ps/task:{next(servers_in_turn) % servers}"):
            return next_creator(**options)

    scope: AbstractContextManager[Any] = tf.variable_creator_scope(create)
    return scope
