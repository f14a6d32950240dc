"""Steps of TensorFlow as functions: gradients, their averages over all ranks, and the update."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.precision import LossScaling
from dlperf_study.training.frameworks._trainer import CollectiveTrainer, Communication
from dlperf_study.training.libraries import tensorflow as tensorflow_library
from dlperf_study.training.libraries._base import Output
from dlperf_study.training.libraries._tensorflow_updates import LossScaler, Optimizer
from dlperf_study.training.libraries.tensorflow import TensorFlow

#: Returns what the ranks make of the gradients of one.
GradientReduction = Callable[[list[Any]], list[Any]]


class FunctionGroup(Communication):
    """All ranks, which average gradients inside of functions."""

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context in which variables of the network are made."""
        return nullcontext()

    @abstractmethod
    def averages(self, tensors: list[Any]) -> list[Any]:
        """Return the means of tensors over all ranks."""

    def run(self, step: "FunctionStep", batch: tuple[Any, ...], communicated: GradientReduction) -> Any:
        """Return the loss of a step whose gradients are ``communicated`` before the update."""
        loss, gradients = step.compute(*batch)
        step.scaler.update(communicated(gradients), step.update)
        return loss

    def own(self, variable: Any) -> Any:
        """Return this rank's part of a variable."""
        return variable

    def all_reduce(self, tensors: Sequence[Any]) -> Callable[[], None]:
        """Return what averages tensors as a step does."""
        import tensorflow as tf

        averages = tf.function(lambda: self.averages(list(tensors)))

        def communicate() -> None:
            averages()

        return communicate


class FunctionStep:
    """One step of training, with its gradients averaged over all ranks or, as ``local``, without that."""

    def __init__(self, library: TensorFlow, network: Any, group: FunctionGroup) -> None:
        import tensorflow as tf

        self._library, self.network, self._group = library, network, group
        configuration = library.configuration
        # What each rank computes alike it keeps alone: a strategy would send every initial value to all ranks.
        with tf.device(library.device):
            self.scaler = LossScaler(configuration)
            self.optimizer = Optimizer(configuration, network.parameters)
        compiles = configuration.compiler == "xla"
        self.compute = tf.function(self._loss_and_gradients, jit_compile=compiles or None)
        self._communicating, self._local = tf.function(self._averaged_step), tf.function(self._own_step)

    def __call__(self, batch: tuple[Any, ...]) -> Any:
        """Compute the gradients of this rank's batch, average them over all ranks, and update."""
        return self._communicating(*batch)

    def local(self, batch: tuple[Any, ...]) -> Any:
        """Compute the gradients and update by them."""
        return self._local(*batch)

    def update(self, gradients: list[Any]) -> None:
        """Update the parameters by their gradients."""
        self.optimizer.begin()
        for parameter, gradient, kept in zip(self.network.parameters, gradients, self.optimizer.kept, strict=True):
            self.optimizer.update(parameter, gradient, *kept)

    def observed(self, batch: tuple[Any, ...], layer: Any) -> tuple[list[Output], dict[str, int]]:
        """Do the first step; return what its graph says of its outputs."""
        self(batch)
        return tensorflow_library.outputs(self._communicating.get_concrete_function(*batch).graph), {}

    def update_kernels(self) -> dict[str, str]:
        """Return nothing: TensorFlow can't be asked."""
        return {}

    def loss_scaling(self) -> LossScaling | None:
        """Return the state of loss scaling, or None without it."""
        return self.scaler.state()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Give every variable, at the end, the value from before."""
        trained = [*self.network.parameters, *self.network.statistics]
        variables = [*map(self._group.own, trained), *self.scaler.variables, *self.optimizer.variables]
        values = [variable.numpy() for variable in variables]
        yield
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def _loss_and_gradients(self, *batch: Any) -> tuple[Any, list[Any]]:
        return self._library.loss_and_gradients(self.network, batch, self.scaler.scaled)

    def _averaged_step(self, *batch: Any) -> Any:
        return self._group.run(self, batch, self._group.averages if self._group.ranks > 1 else list)

    def _own_step(self, *batch: Any) -> Any:
        return self._group.run(self, batch, list)


class FunctionTrainer(CollectiveTrainer):
    """One rank of a data-parallel run, whose steps are functions."""

    def __init__(self, configuration: Configuration, library: TensorFlow, group: FunctionGroup) -> None:
        super().__init__(configuration, library, group)
        with group.scope():
            self.layer = library.built(self.rank, self.world_size)
        step = FunctionStep(library, self.layer, group)
        self.train_step, self.computation_step, self._group = step, step.local, group

    def parameter_checksum(self) -> str:
        """Return a digest of all parameters."""
        return self._checksum(map(self._group.own, self.layer.parameters))

    def _without_communication(self) -> AbstractContextManager[Any]:
        return nullcontext()
