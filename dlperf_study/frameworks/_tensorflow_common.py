"""Shared by the TensorFlow frameworks: what they refuse, and one rank's network, loss and update.

TensorFlow and Paddle can't share a process: that ends in a segmentation fault. Functions import TensorFlow.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from dlperf_study import models
from dlperf_study.frameworks import _common, _number_formats, _tensorflow_devices, _tensorflow_precision, _tuning
from dlperf_study.frameworks._base import ClusterView
from dlperf_study.frameworks._number_formats import Output
from dlperf_study.frameworks._obstacles import (
    BUILT_LEVELS,
    Levels,
    data_source_obstacles,
    model_obstacles,
    unbuilt_levels,
)
from dlperf_study.frameworks._stopwatches import Stopwatch
from dlperf_study.models._tensorflow_layers import CHANNELS_LAST
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE

PACKAGES = ("tensorflow-cpu", "tensorflow")
ENVIRONMENT_PREFIXES = ("TF_CPP_", "TF_ENABLE_", "TF_XLA_", "XLA_")
#: Which process does what, its numbers of threads, and its memory of a GPU.
DECIDED_VARIABLES = (
    *("TF_CONFIG", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"),
    _tensorflow_devices.MEMORY_GROWTH,
)
REMEDY, GPU_REMEDY = "make tensorflow", "make gpu TENSORFLOW_INDEX=default"
LEVELS: Levels = BUILT_LEVELS | {
    "precision": ("fp32", "tf32", "amp_fp16", "amp_bf16"),
    "loss_scaling": ("none", "dynamic", "static"),
    "memory_format": ("nchw", "nhwc"),
    "cudnn_autotune": _tuning.AUTOTUNING,
    "compiler": ("none", "xla"),
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
    yield from unbuilt_levels(configuration, levels, settings, {**FUSED_REFUSED, **refused})
    yield from _number_formats.scaling_obstacles(configuration)
    yield from _number_formats.device_obstacles(configuration, cluster.device)
    yield from _tuning.device_obstacles(configuration, cluster.device)
    if configuration.cudnn_autotune != LIBRARYS_CHOICE and configuration.compiler == "xla":
        yield f"cudnn_autotune {configuration.cudnn_autotune}: XLA tries algorithms by its own xla_gpu_autotune_level"
    yield from model_obstacles(configuration, "tensorflow")
    yield from data_source_obstacles(configuration, "tensorflow")
    if cluster.device == "cpu":
        for value in (configuration.memory_format, configuration.precision):
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
        self.element_bytes = _common.ELEMENT_BYTES[configuration.gradient_compression]
        self.device = _tensorflow_devices.own_device()
        _tensorflow_precision.set_tf32(configuration)

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log about library, device and model."""
        import tensorflow as tf

        elements = sum(self.parameter_counts())
        is_exchanging = self.exchange_kind != "none"
        return {
            "library": "tensorflow",
            "library_version": tf.__version__,
            "library_commit": str(tf.version.GIT_VERSION),
            "cuda": str(tf.sysconfig.get_build_info().get("cuda_version", "")),
            "device": "gpu" if _tensorflow_devices.on_gpu() else "cpu",
            "parameters": elements,
            "gradient_bytes": self.element_bytes * elements if is_exchanging else 0,
            "exchange_threads": self.exchange_threads if is_exchanging else 0,
        } | _common.model_facts(self._configuration)

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch for this rank's device."""
        return _tensorflow_devices.stopwatch(self.device)

    def loss_value(self, loss: Any) -> float:
        """Return a loss as a number."""
        return float(loss)

    def first_step(self, batch: Any) -> str:
        """Do the first step; return the number format in which the network computes."""
        self.train_step(batch)
        import tensorflow as tf

        self._first_outputs = _tensorflow_precision.outputs(self.graph_of_step(batch))
        with tf.device(self.device):
            return _number_formats.observed_format(self._first_outputs, _tensorflow_precision.products)

    def tuning(self) -> dict[str, str]:
        """Return, after the first step, the levels of what tunes TensorFlow; cuDNN is for GPUs only."""
        levels = {"cudnn_autotune": _tensorflow_devices.autotuning(os.environ)} if _tensorflow_devices.on_gpu() else {}
        return levels | _tuning.observed_memory_format(self._first_outputs)

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


def velocities(configuration: Configuration, parameters: list[Any]) -> list[Any]:
    """Return what the optimizer keeps of each parameter: a variable of zeros, None without momentum."""
    import tensorflow as tf

    if configuration.optimizer == "sgd":
        return [None] * len(parameters)
    return [tf.Variable(lambda p=p: tf.zeros(p.shape), trainable=False) for p in parameters]


def update(parameter: Any, velocity: Any, gradient: Any) -> None:
    """Apply a gradient to a parameter, by the rule of Paddle and PyTorch."""
    if velocity is not None:
        gradient = velocity.assign(_common.MOMENTUM * velocity + gradient)
    parameter.assign_sub(_common.LEARNING_RATE * gradient)


def loss_and_gradients(
    configuration: Configuration, network: Any, images: Any, labels: Any, scaled: Callable[[Any], Any] | None = None
) -> tuple[Any, list[Any]]:
    """Return the loss of one batch, and the gradients of what ``scaled`` makes of it.

    Both are computed in the precision of the configuration.
    """
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = network.loss(images, labels, _tensorflow_precision.computed_in(configuration))
        differentiated = scaled(loss) if scaled else loss
    return loss, tape.gradient(differentiated, network.parameters)
