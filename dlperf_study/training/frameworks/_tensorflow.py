"""Shared by the TensorFlow frameworks: what they refuse, the environment of their ranks, and steps as functions."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType
from typing import Any

from dlperf_study.core.user_commands import install_command, make_or
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.parameter import IMAGES
from dlperf_study.study.precision import LossScaling
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE
from dlperf_study.training.frameworks import _obstacles, _processes
from dlperf_study.training.frameworks._base import ClusterView
from dlperf_study.training.frameworks._obstacles import Values
from dlperf_study.training.frameworks._trainer import CollectiveTrainer, Communication
from dlperf_study.training.libraries import tensorflow as tensorflow_library
from dlperf_study.training.libraries._base import Output, Step
from dlperf_study.training.libraries._tensorflow_updates import KEPT, LossScaler, Optimizer
from dlperf_study.training.libraries.tensorflow import TensorFlow

#: By default TensorFlow takes nearly all memory of a GPU when it starts, so that nothing could be told of its use.
MEMORY_GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"
#: TensorFlow 2.16 and later imports Keras 3 with itself, and pandas and matplotlib with that, for a third of its start;
#: Keras 2 would be imported at its first use. The networks here use neither.
WITHOUT_KERAS_3 = {"TF_USE_LEGACY_KERAS": "1"}
PACKAGES = ("tensorflow-cpu", "tensorflow")
ENVIRONMENT_PREFIXES = ("TF_CPP_", "TF_ENABLE_", "TF_XLA_", "XLA_")
#: Which process does what, its numbers of threads, and its memory of a GPU.
DECIDED_VARIABLES = (
    *("TF_CONFIG", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"),
    MEMORY_GROWTH,
)
REMEDY = install_command("tensorflow")
GPU_REMEDY = make_or("gpu TENSORFLOW_INDEX=default", "pip install 'tensorflow[and-cuda]'")
BUILT: Values = _obstacles.BUILT_FOR_LIBRARIES | {"compiler": ("none", "xla"), "optimizer": tuple(KEPT)}
_ONE_VARIABLE = "TensorFlow's operations, such as ResourceApplyMomentum, update one variable each"
FUSED_REFUSED = {kernels: f"fused_optimizer {kernels}: {_ONE_VARIABLE}" for kernels in ("fused", "foreach")}
REFUSED_ON_CPUS = {
    "nchw": "memory_format nchw: on a CPU, TensorFlow's convolutions take nhwc only",
    "amp_fp16": "precision amp_fp16: on a CPU, TensorFlow computes it some hundred times slower than fp32",
}


def obstacles(
    configuration: Configuration,
    cluster: ClusterView,
    built: Values,
    settings: tuple[str, ...] = (),
    refused: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield each reason why TensorFlow can't run the configuration."""
    yield from _obstacles.unsuitable_parts(configuration, "tensorflow", built, settings, {**FUSED_REFUSED, **refused})
    yield from _obstacles.device_obstacles(configuration, cluster.device)
    if configuration.cudnn_autotune != LIBRARYS_CHOICE and configuration.compiler == "xla":
        yield f"cudnn_autotune {configuration.cudnn_autotune}: XLA tries algorithms by its own xla_gpu_autotune_level"
    if cluster.device == "cpu":
        formats = (configuration.memory_format,) if configuration.samples == IMAGES else ()
        for value in (*formats, configuration.precision):
            if value in REFUSED_ON_CPUS:
                yield REFUSED_ON_CPUS[value]


def environment(configuration: Configuration, cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the environment of the ranks of a node."""
    variables = _processes.common_environment(configuration) | {VISIBLE_DEVICES: ""}
    if cluster.device != "gpu":
        return variables
    variables |= _processes.gpu_environment(cluster, node)
    if configuration.cudnn_autotune != LIBRARYS_CHOICE:
        variables[tensorflow_library.AUTOTUNING_VARIABLE] = "1" if configuration.cudnn_autotune == "enabled" else "0"
    return variables | _processes.tf32_environment(configuration, cluster.device) | {MEMORY_GROWTH: "true"}


#: Returns what the ranks make of the gradients of one.
GradientReduction = Callable[[list[Any]], list[Any]]


class FunctionGroup(Communication):
    """All ranks, which average gradients inside of functions."""

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context in which variables are made."""
        return nullcontext()

    @abstractmethod
    def averages(self, tensors: list[Any]) -> list[Any]:
        """Return the means of tensors over all ranks."""

    def run(self, step: "FunctionStep", batch: tuple[Any, ...], communicated: GradientReduction) -> Any:
        """Return the loss of a step with ``communicated`` gradients."""
        loss, gradients = step.compute(*batch)
        step.scaler.update(communicated(gradients), step.update)
        return loss

    def own(self, variable: Any) -> Any:
        """Return this rank's part of a variable."""
        return variable

    @abstractmethod
    def averages_alone(self, tensors: list[Any]) -> list[Any]:
        """Return means over all ranks, outside of a step."""

    def all_reduce(self, tensors: Sequence[Any]) -> Callable[[], None]:
        """Return what averages tensors as a step does."""
        import tensorflow as tf

        averages = tf.function(lambda: self.averages_alone(list(tensors)))

        def communicate() -> None:
            averages()

        return communicate


class FunctionStep(Step):
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
        self(batch)
        return tensorflow_library.outputs(self._communicating.get_concrete_function(*batch).graph), {}

    def loss_scaling(self) -> LossScaling | None:
        return self.scaler.state()

    @contextmanager
    def restored(self) -> Iterator[None]:
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
        return self._checksum(map(self._group.own, self.layer.parameters))
