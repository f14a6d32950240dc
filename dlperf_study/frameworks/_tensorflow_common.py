"""Shared by the TensorFlow frameworks: what they refuse, the environment of a rank, and one rank's network.

TensorFlow and Paddle can't share a process: that ends in a segmentation fault. Functions import TensorFlow.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from dlperf_study import models
from dlperf_study.frameworks import _common, _number_formats
from dlperf_study.frameworks._base import (
    BUILT_LEVELS,
    ClusterView,
    Drain,
    HostStopwatch,
    Levels,
    Stopwatch,
    common_environment,
    data_source_obstacles,
    missing_library,
    model_obstacles,
    unbuilt_levels,
)
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import VISIBLE_DEVICES

PACKAGES = ("tensorflow-cpu", "tensorflow")
ENVIRONMENT_PREFIXES = ("TF_CPP_", "TF_ENABLE_", "TF_XLA_", "XLA_")
#: Which process does what, and its numbers of threads.
DECIDED_VARIABLES = ("TF_CONFIG", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS")
#: From [N, 3, S, S] to [N, S, S, 3].
CHANNELS_LAST = (0, 2, 3, 1)
#: From [outputs, inputs, k, k] to [k, k, inputs, outputs].
FILTERS = (2, 3, 1, 0)
LEVELS: Levels = BUILT_LEVELS | {
    "precision": ("fp32", "amp_bf16"),
    "memory_format": ("nhwc",),
    "compiler": ("none", "xla"),
}
REFUSED_LEVELS = {
    "nchw": "memory_format nchw: on a CPU, TensorFlow's convolutions take nhwc only",
    "amp_fp16": "precision amp_fp16: on a CPU, TensorFlow computes it some hundred times slower than fp32",
}


def obstacles(
    configuration: Configuration,
    cluster: ClusterView,
    version: str | None,
    levels: Levels,
    settings: tuple[str, ...] = (),
    refused: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield each reason why TensorFlow can't run the configuration."""
    yield from missing_library("tensorflow", version, "make tensorflow")
    yield from unbuilt_levels(configuration, levels, settings, {**REFUSED_LEVELS, **refused})
    yield from model_obstacles(configuration, "tensorflow")
    yield from data_source_obstacles(configuration, "tensorflow")
    if cluster.device != "cpu":
        yield f"device is {cluster.device}, but {configuration.framework} is built for cpu"


def environment(configuration: Configuration) -> dict[str, str]:
    """Return the environment of every process of a run; no GPU is visible to it."""
    return common_environment(configuration) | {VISIBLE_DEVICES: ""}


class TensorflowTrainer:
    """One rank; each framework adds how gradients travel.

    ``exchange_threads``: how many threads of a process TensorFlow exchanges gradients with.
    """

    exchange_threads: int
    tensor_library = "tensorflow"
    network: Any
    train_step: Callable[[Any], Any]
    graph_of_step: Callable[[Any], Any]

    def __init__(self, configuration: Configuration, rank: int, world_size: int, exchange_kind: str) -> None:
        self.rank, self.world_size, self.exchange_kind = rank, world_size, exchange_kind
        self._configuration = configuration

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log about library, device and model."""
        import tensorflow as tf

        elements = sum(parameter.shape.num_elements() for parameter in self.network.parameters)
        is_exchanging = self.exchange_kind != "none"
        return {
            "library": "tensorflow",
            "library_version": tf.__version__,
            "library_commit": str(tf.version.GIT_VERSION),
            "cuda": "",
            "device": "cpu",
            "parameters": elements,
            "gradient_bytes": 4 * elements if is_exchanging else 0,
            "exchange_threads": self.exchange_threads if is_exchanging else 0,
        } | _common.model_facts(self._configuration)

    def loss_scaling(self) -> None:
        """Return nothing: losses are not scaled in float32 and bfloat16."""

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch for the CPU."""
        return HostStopwatch()

    def loss_value(self, loss: Any) -> float:
        """Return a loss as a number."""
        return float(loss)

    def first_step(self, batch: Any) -> str:
        """Do the first step; return the number format in which the network computes."""
        self.train_step(batch)
        return _number_formats.observed_format(number_formats(self.graph_of_step(batch)), products)

    def settle(self) -> Drain:
        """Do nothing: a step ends with its update applied, so nothing is pending."""
        return Drain()

    def build_network(self) -> Any:
        """Return the network of the configuration, with the same initial parameters on every rank."""
        configuration = self._configuration
        return models.load(configuration.model).builder("tensorflow")(configuration, self.rank, self.world_size)


def number_formats(graph: Any) -> list[str]:
    """Return the number formats of the convolutions in a graph.

    Without convolutions, those of its matrix products.
    """
    import tensorflow as tf

    definition = graph.as_graph_def()
    nodes = [*definition.node]
    for function in definition.library.function:
        nodes += function.node_def
    for product in ("Conv2D", "MatMul"):
        if names := [tf.as_dtype(node.attr["T"].type).name for node in nodes if node.op == product]:
            return names
    return []


def products(images: Any, weights: Any, number_format: str) -> list[Any]:
    """Return a convolution and a matrix product: ``Products`` of ``_number_formats.py``."""
    import tensorflow as tf

    channels_last = tf.transpose(tf.cast(images, number_format), CHANNELS_LAST)
    filters = tf.transpose(tf.cast(weights, number_format), FILTERS)
    convolution = tf.nn.conv2d(channels_last, filters, strides=1, padding="VALID")
    rows = tf.reshape(channels_last, [len(images), -1])
    return [tf.cast(tensor, tf.float64).numpy() for tensor in (convolution, rows @ tf.transpose(rows))]


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


def loss_and_gradients(configuration: Configuration, network: Any, images: Any, labels: Any) -> tuple[Any, list[Any]]:
    """Return the loss and the gradients of one batch, computed in the precision of the configuration."""
    import tensorflow as tf

    number_format = {"fp32": tf.float32, "amp_bf16": tf.bfloat16}[configuration.precision]
    with tf.GradientTape() as tape:
        loss = network.loss(images, labels, number_format)
    return loss, tape.gradient(loss, network.parameters)
