"""A rank whose steps are functions that TensorFlow traces; each framework adds how gradients travel."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dlperf_study.frameworks import _common, _tensorflow_common, _tensorflow_devices
from dlperf_study.frameworks._base import Drain, LossScaling
from dlperf_study.frameworks._tensorflow_common import TensorflowTrainer, in_memory_format, loss_and_gradients
from dlperf_study.frameworks._tensorflow_precision import LossScaler
from dlperf_study.study.configuration import Configuration


class FunctionTrainer(TensorflowTrainer, ABC):
    """One rank of a data-parallel run."""

    def __init__(self, configuration: Configuration, rank: int, world_size: int) -> None:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(configuration.threads_per_device)
        tf.config.threading.set_inter_op_parallelism_threads(configuration.threads_per_device)
        super().__init__(configuration, rank, world_size, "all_reduce" if world_size > 1 else "none")

    def build(self, scope: AbstractContextManager[Any]) -> None:
        """Build the network, whose variables are made in ``scope``, and the functions of its steps."""
        import tensorflow as tf

        with tf.device(self.device):
            self._scaler = LossScaler(self._configuration)
        with scope:
            self.network = self.build_network()
            self._velocities = _tensorflow_common.velocities(self._configuration, self.network.parameters)
        compiles = self._configuration.compiler == "xla"
        self._compute = tf.function(self._loss_and_gradients, jit_compile=compiles or None)
        self._exchanging_step, self._local_step = tf.function(self._averaged_step), tf.function(self._own_step)

    def on_device(self, images: Any, labels: Any) -> tuple[Any, Any]:
        """Return a batch as tensors on the device of this rank, the images in its memory format."""
        import tensorflow as tf

        with tf.device(self.device):
            placed = tf.identity(tf.convert_to_tensor(images))
            return in_memory_format(self._configuration, placed), tf.identity(tf.convert_to_tensor(labels))

    def graph_of_step(self, batch: tuple[Any, Any]) -> Any:
        """Return the graph of a step with such a batch."""
        return self._exchanging_step.get_concrete_function(*batch).graph

    def train_step(self, batch: tuple[Any, Any]) -> Any:
        """Compute the gradients of this rank's batch, average them over all ranks, and update."""
        return self._exchanging_step(*batch)

    def computation_step(self, batch: tuple[Any, Any]) -> Any:
        """Compute the gradients and update by them."""
        return self._local_step(*batch)

    def loss_scaling(self) -> LossScaling | None:
        """Return the state of loss scaling, or None without it."""
        return self._scaler.state()

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Let ranks update by their own gradients; at the end every variable has the value from before."""
        velocities = [velocity for velocity in self._velocities if velocity is not None]
        trained = [*self.network.parameters, *self.network.statistics, *velocities]
        variables = [*map(self._own, trained), *self._scaler.variables]
        values = [variable.numpy() for variable in variables]
        yield
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def leading_tensors(self, size: int) -> list[Any]:
        """Return tensors of zeros as large as the gradients, the first ``size`` bytes of them: the last one is cut."""
        import tensorflow as tf

        counts = _common.leading_counts(self.parameter_counts(), size // self.element_bytes)
        with tf.device(self.device):
            return [tf.zeros([count]) for count in counts]

    def barrier(self) -> None:
        """Wait for all ranks, each with its device idle."""
        _tensorflow_devices.synchronise(self.device)
        self.agreed_maximum(0.0)

    def settle(self) -> Drain:
        """Wait for the device; under all-reduce a step ends with its update applied, so nothing is pending."""
        _tensorflow_devices.synchronise(self.device)
        return Drain()

    def parameter_checksum(self) -> str:
        """Return a digest of all parameters."""
        return _common.checksum([self._own(parameter).numpy() for parameter in self.network.parameters])

    def close(self) -> None:
        """Wait for the others, so that no rank leaves while one still exchanges."""
        self.barrier()

    @abstractmethod
    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all ranks."""

    @abstractmethod
    def _averages(self, tensors: list[Any]) -> list[Any]:
        """Return the means of tensors over all ranks."""

    @abstractmethod
    def _step(self, images: Any, labels: Any, exchanged: Callable[[list[Any]], list[Any]]) -> Any:
        """Return the loss of a step whose gradients are ``exchanged`` before the update."""

    def _own(self, variable: Any) -> Any:
        """Return this rank's part of a variable."""
        return variable

    def _loss_and_gradients(self, images: Any, labels: Any) -> tuple[Any, list[Any]]:
        return loss_and_gradients(self._configuration, self.network, images, labels, self._scaler.scaled)

    def _averaged_step(self, images: Any, labels: Any) -> Any:
        return self._step(images, labels, self._averages if self.world_size > 1 else list)

    def _own_step(self, images: Any, labels: Any) -> Any:
        return self._step(images, labels, list)
