"""Shared by the TensorFlow frameworks: what they refuse, one rank's network, loss and update, and steps as functions.

TensorFlow and Paddle can't share a process: that ends in a segmentation fault. Functions import TensorFlow.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import Any

from dlperf_study.core.user_commands import install_command, make_or
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import ALL_REDUCE, ELEMENT_BYTES, NO_EXCHANGE, Drain
from dlperf_study.study.parameter import IMAGES
from dlperf_study.study.precision import LossScaling
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE
from dlperf_study.training import models
from dlperf_study.training.frameworks import _tensorflow, _training
from dlperf_study.training.frameworks._base import ClusterView, Stopwatch
from dlperf_study.training.frameworks._obstacles import (
    AUTOTUNING,
    BUILT_LEVELS,
    Levels,
    device_obstacles,
    unsuitable_parts,
)
from dlperf_study.training.frameworks._tensorflow_updates import KEPT, LossScaler, Optimizer
from dlperf_study.training.frameworks._training import Output
from dlperf_study.training.models._tensorflow_layers import CHANNELS_LAST

PACKAGES = ("tensorflow-cpu", "tensorflow")
ENVIRONMENT_PREFIXES = ("TF_CPP_", "TF_ENABLE_", "TF_XLA_", "XLA_")
#: Which process does what, its numbers of threads, and its memory of a GPU.
DECIDED_VARIABLES = (
    *("TF_CONFIG", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"),
    _tensorflow.MEMORY_GROWTH,
)
REMEDY = install_command("tensorflow")
GPU_REMEDY = make_or("gpu TENSORFLOW_INDEX=default", "pip install 'tensorflow[and-cuda]'")
LEVELS: Levels = BUILT_LEVELS | {
    "precision": ("fp32", "tf32", "amp_fp16", "amp_bf16"),
    "loss_scaling": ("none", "dynamic", "static"),
    "memory_format": ("nchw", "nhwc"),
    "cudnn_autotune": AUTOTUNING,
    "compiler": ("none", "xla"),
    "optimizer": tuple(KEPT),
}
_ONE_VARIABLE = "TensorFlow's operations, such as ResourceApplyMomentum, update one variable each"
FUSED_REFUSED = {kernels: f"fused_optimizer {kernels}: {_ONE_VARIABLE}" for kernels in ("fused", "foreach")}
REFUSED_ON_CPUS = {
    "nchw": "memory_format nchw: on a CPU, TensorFlow's convolutions take nhwc only",
    "amp_fp16": "precision amp_fp16: on a CPU, TensorFlow computes it some hundred times slower than fp32",
}


def obstacles(
    configuration: Configuration,
    cluster: ClusterView,
    levels: Levels,
    settings: tuple[str, ...] = (),
    refused: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield each reason why TensorFlow can't run the configuration."""
    yield from unsuitable_parts(configuration, "tensorflow", levels, settings, {**FUSED_REFUSED, **refused})
    yield from device_obstacles(configuration, cluster.device)
    if configuration.cudnn_autotune != LIBRARYS_CHOICE and configuration.compiler == "xla":
        yield f"cudnn_autotune {configuration.cudnn_autotune}: XLA tries algorithms by its own xla_gpu_autotune_level"
    if cluster.device == "cpu":
        formats = (configuration.memory_format,) if configuration.samples == IMAGES else ()
        for value in (*formats, configuration.precision):
            if value in REFUSED_ON_CPUS:
                yield REFUSED_ON_CPUS[value]


class TensorflowTrainer:
    """One rank; each framework adds how gradients travel.

    ``exchange_threads``: how many threads of a process exchange gradients; ``element_bytes``: of one of these.
    ``device`` is the name of the device of this rank.
    """

    exchange_threads: int
    tensor_library = "tensorflow"
    network: Any
    _first_outputs: list[Output]
    train_step: Callable[[Any], Any]
    graph_of_step: Callable[[Any], Any]

    def __init__(self, configuration: Configuration, rank: int, world_size: int, exchange_kind: str) -> None:
        self.rank, self.world_size, self.exchange_kind = rank, world_size, exchange_kind
        self._configuration = configuration
        self.element_bytes = ELEMENT_BYTES[configuration.gradient_compression]
        self.device = _tensorflow.own_device()
        _tensorflow.set_tf32(configuration)

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log about library, device and model."""
        import tensorflow as tf

        elements = sum(self.parameter_counts())
        is_exchanging = self.exchange_kind != NO_EXCHANGE
        return {
            "library": "tensorflow",
            "library_version": tf.__version__,
            "library_commit": str(tf.version.GIT_VERSION),
            "cuda": str(tf.sysconfig.get_build_info().get("cuda_version", "")),
            "device": "gpu" if _tensorflow.uses_gpu() else "cpu",
            "parameters": elements,
            "gradient_bytes": self.element_bytes * elements if is_exchanging else 0,
            "exchange_threads": self.exchange_threads if is_exchanging else 0,
        } | _training.model_facts(self._configuration)

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch for this rank's device."""
        return _tensorflow.stopwatch(self.device)

    def loss_value(self, loss: Any) -> float:
        """Return a loss as a number."""
        return float(loss)

    def first_step(self, batch: Any) -> str:
        """Do the first step; return the number format in which the network computes."""
        self.train_step(batch)
        import tensorflow as tf

        self._first_outputs = _tensorflow.outputs(self.graph_of_step(batch))
        with tf.device(self.device):
            return _training.observed_format(self._first_outputs, _tensorflow.products)

    def tuning(self) -> dict[str, str]:
        """Return, after the first step, the levels of what tunes TensorFlow; cuDNN is for GPUs only."""
        levels = {"cudnn_autotune": _tensorflow.autotuning(os.environ)} if _tensorflow.uses_gpu() else {}
        return levels | _training.observed_memory_format(self._first_outputs)

    def parameter_counts(self) -> list[int]:
        """Return the numbers of elements of the parameters."""
        return [parameter.shape.num_elements() for parameter in self.network.parameters]

    def build_network(self) -> Any:
        """Return the network of the configuration, with the same initial parameters on every rank."""
        configuration = self._configuration
        return models.load(configuration.model).builder("tensorflow")(configuration, self.rank, self.world_size)


def in_memory_format(configuration: Configuration, images: Any) -> Any:
    """Return a tensor of images [N, 3, S, S] as the network takes it."""
    import tensorflow as tf

    return images if configuration.memory_format == "nchw" else tf.transpose(images, CHANNELS_LAST)


def loss_and_gradients(
    configuration: Configuration, network: Any, batch: tuple[Any, ...], scaled: Callable[[Any], Any] | None = None
) -> tuple[Any, list[Any]]:
    """Return the loss of one batch, and the gradients of what ``scaled`` makes of it.

    Both are computed in the precision of the configuration. Gradients are dense, also those of embeddings.
    """
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = network.loss(*batch, number_format=_tensorflow.computed_in(configuration))
        differentiated = scaled(loss) if scaled else loss
    return loss, list(map(tf.convert_to_tensor, tape.gradient(differentiated, network.parameters)))


class FunctionTrainer(TensorflowTrainer, ABC):
    """One rank of a data-parallel run."""

    def __init__(self, configuration: Configuration, rank: int, world_size: int) -> None:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(configuration.threads_per_device)
        tf.config.threading.set_inter_op_parallelism_threads(configuration.threads_per_device)
        super().__init__(configuration, rank, world_size, ALL_REDUCE if world_size > 1 else NO_EXCHANGE)

    def build(self, scope: AbstractContextManager[Any]) -> None:
        """Build the network, whose variables are made in ``scope``, and the functions of its steps."""
        import tensorflow as tf

        with scope:
            self.network = self.build_network()
        # What each rank computes alike it keeps alone: a strategy would send every initial value to all ranks.
        with tf.device(self.device):
            self._scaler = LossScaler(self._configuration)
            self._optimizer = Optimizer(self._configuration, self.network.parameters)
        compiles = self._configuration.compiler == "xla"
        self._compute = tf.function(self._loss_and_gradients, jit_compile=compiles or None)
        self._exchanging_step, self._local_step = tf.function(self._averaged_step), tf.function(self._own_step)

    def transfer_batch(self, *batch: Any) -> tuple[Any, ...]:
        """Return a batch as tensors on the device of this rank, images in its memory format."""
        import tensorflow as tf

        with tf.device(self.device):
            inputs, *targets = (tf.identity(tf.convert_to_tensor(array)) for array in batch)
            if self._configuration.samples == IMAGES:
                inputs = in_memory_format(self._configuration, inputs)
            return inputs, *targets

    def graph_of_step(self, batch: tuple[Any, ...]) -> Any:
        """Return the graph of a step with such a batch."""
        return self._exchanging_step.get_concrete_function(*batch).graph

    def train_step(self, batch: tuple[Any, ...]) -> Any:
        """Compute the gradients of this rank's batch, average them over all ranks, and update."""
        return self._exchanging_step(*batch)

    def computation_step(self, batch: tuple[Any, ...]) -> Any:
        """Compute the gradients and update by them."""
        return self._local_step(*batch)

    def loss_scaling(self) -> LossScaling | None:
        """Return the state of loss scaling, or None without it."""
        return self._scaler.state()

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Let ranks update by their own gradients; at the end every variable has the value from before."""
        trained = [*self.network.parameters, *self.network.statistics]
        variables = [*map(self._own, trained), *self._scaler.variables, *self._optimizer.variables]
        values = [variable.numpy() for variable in variables]
        yield
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def leading_tensors(self, size: int) -> list[Any]:
        """Return tensors of zeros as large as the gradients, the first ``size`` bytes of them: the last one is cut."""
        import tensorflow as tf

        counts = _training.leading_counts(self.parameter_counts(), size // self.element_bytes)
        with tf.device(self.device):
            return [tf.zeros([count]) for count in counts]

    def barrier(self) -> None:
        """Wait for all ranks, each with its device idle."""
        _tensorflow.synchronise(self.device)
        self.agreed_maximum(0.0)

    def settle(self) -> Drain:
        """Wait for the device; under all-reduce a step ends with its update applied, so nothing is pending."""
        _tensorflow.synchronise(self.device)
        return Drain()

    def parameter_checksum(self) -> str:
        """Return a digest of all parameters."""
        return _training.checksum([self._own(parameter).numpy() for parameter in self.network.parameters])

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
    def _step(self, batch: tuple[Any, ...], exchanged: Callable[[list[Any]], list[Any]]) -> Any:
        """Return the loss of a step whose gradients are ``exchanged`` before the update."""

    def _own(self, variable: Any) -> Any:
        """Return this rank's part of a variable."""
        return variable

    def _loss_and_gradients(self, *batch: Any) -> tuple[Any, list[Any]]:
        return loss_and_gradients(self._configuration, self.network, batch, self._scaler.scaled)

    def _averaged_step(self, *batch: Any) -> Any:
        return self._step(batch, self._averages if self.world_size > 1 else list)

    def _own_step(self, *batch: Any) -> Any:
        return self._step(batch, list)
