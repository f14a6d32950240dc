"""TensorFlow: its device, clock, number formats and step, as asked for and as TensorFlow has them.

TensorFlow and Paddle can't share a process: that ends in a segmentation fault. Functions import TensorFlow.
"""

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dlperf_study.study import precision
from dlperf_study.study.communication import ELEMENT_BYTES
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.parameter import IMAGES
from dlperf_study.training import models
from dlperf_study.training.libraries import _base
from dlperf_study.training.libraries._base import Buffer, Output
from dlperf_study.training.models._tensorflow_layers import CHANNELS_LAST

#: Read by TensorFlow at its first convolution, and by nothing that Python could ask: it is on unless this says 0.
AUTOTUNING_VARIABLE = "TF_CUDNN_USE_AUTOTUNE"
#: What TensorFlow prints, after the file and the line, of a driver or a library that it can't use.
_LOG_LINE = re.compile(r"\.cc:\d+\] (.*(?:cuda|GPU).*)", re.IGNORECASE)
NCCL_PACKAGE = "nvidia-nccl-cu12"
#: From [outputs, inputs, k, k] to [k, k, inputs, outputs].
FILTERS = (2, 3, 1, 0)


def gpu_support() -> GpuSupport:
    """Return what TensorFlow can do with the GPUs here."""
    import tensorflow as tf

    if not tf.test.is_built_with_cuda():
        return GpuSupport()
    with _native_log() as log:
        gpus = tf.config.list_physical_devices("GPU")
    names = tuple(tf.config.experimental.get_device_details(gpu).get("device_name", "") for gpu in gpus)
    build = tf.sysconfig.get_build_info()
    obstacle = "" if gpus else obstacle_in("".join(log))
    return GpuSupport(build["cuda_version"], build["cudnn_version"], _nccl_version(), names, obstacle)


def obstacle_in(log: str) -> str:
    """Return the log's last line about GPUs, or nothing."""
    lines: list[str] = ["", *_LOG_LINE.findall(log)]
    return lines[-1].strip()


def _nccl_version() -> str:
    """Return the version of NCCL's own package."""
    try:
        return version(NCCL_PACKAGE)
    except PackageNotFoundError:
        return ""


@contextlib.contextmanager
def _native_log() -> Iterator[list[str]]:
    """Yield a list that gets what is printed to standard error."""
    printed: list[str] = []
    with tempfile.TemporaryFile("w+", errors="replace") as file, contextlib.ExitStack() as stack:
        standard_error = os.dup(2)
        stack.callback(os.close, standard_error)
        stack.callback(os.dup2, standard_error, 2)
        os.dup2(file.fileno(), 2)
        yield printed
        file.seek(0)
        printed.append(file.read())


def uses_gpu() -> bool:
    """Return whether this process trains on a GPU."""
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


class TensorFlow(_base.Library):
    """TensorFlow on the device of this rank, the only one that this process sees.

    ``threads``: that compute; 0: a session decides.
    """

    name = "tensorflow"

    def __init__(self, configuration: Configuration, threads: int = 0) -> None:
        import tensorflow as tf

        if threads:
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(threads)
        self.configuration, self._tf = configuration, tf
        self.device = "/GPU:0" if uses_gpu() else "/CPU:0"
        # CPUs have no TF32.
        tf.config.experimental.enable_tensor_float_32_execution(configuration.precision == "tf32")

    def description(self) -> dict[str, Any]:
        return {
            "library": "tensorflow",
            "library_version": self._tf.__version__,
            "library_commit": str(self._tf.version.GIT_VERSION),
            "cuda": str(self._tf.sysconfig.get_build_info().get("cuda_version", "")),
        }

    def uses_gpu(self) -> bool:
        return uses_gpu()

    def synchronise(self) -> None:
        synchronise(self.device)

    def stopwatch(self) -> _base.Stopwatch:
        if uses_gpu():
            return IdleStopwatch(self.device)
        return _base.HostStopwatch()

    def autotuning(self) -> str:
        return autotuning(os.environ)

    def products(self, images: Any, weights: Any, number_format: str) -> list[Any]:
        tf = self._tf
        with tf.device(self.device):
            channels_last = tf.transpose(tf.cast(images, number_format), CHANNELS_LAST)
            filters = tf.transpose(tf.cast(weights, number_format), FILTERS)
            convolution = tf.nn.conv2d(channels_last, filters, strides=1, padding="VALID")
            rows = tf.reshape(channels_last, [len(images), -1])
            return [tf.cast(tensor, tf.float64).numpy() for tensor in (convolution, rows @ tf.transpose(rows))]

    def placed(self, *batch: Any) -> tuple[Any, ...]:
        with self._tf.device(self.device):
            inputs, *targets = (self._tf.identity(self._tf.convert_to_tensor(array)) for array in batch)
            if self.configuration.samples == IMAGES:
                inputs = in_memory_format(self.configuration, inputs)
            return inputs, *targets

    def trained_parameters(self, layer: Any) -> list[Any]:
        return list(layer.parameters)

    def buffer(self, *parameters: Any) -> Buffer:
        elements = sum(parameter.shape.num_elements() for parameter in parameters)
        return Buffer(elements, ELEMENT_BYTES[self.configuration.gradient_compression], self._tf.float32)

    def zeros(self, elements: int, number_format: Any) -> Any:
        with self._tf.device(self.device):
            return self._tf.zeros([elements], number_format)

    def built(self, rank: int, ranks: int) -> Any:
        return models.load(self.configuration.model).builder("tensorflow")(self.configuration, rank, ranks)

    def loss_and_gradients(
        self, network: Any, batch: tuple[Any, ...], scaled: Callable[[Any], Any] | None = None
    ) -> tuple[Any, list[Any]]:
        """Return the loss of a batch and its gradients."""
        # Both are computed in the precision of the configuration. Gradients are dense, also those of embeddings.
        with self._tf.GradientTape() as tape:
            loss = network.loss(*batch, number_format=computed_in(self.configuration))
            differentiated = scaled(loss) if scaled else loss
        gradients = tape.gradient(differentiated, network.parameters)
        return loss, list(map(self._tf.convert_to_tensor, gradients))


def computed_in(configuration: Configuration) -> Any:
    """Return the type of what convolutions and linear layers compute."""
    import tensorflow as tf

    requested = configuration.precision
    if requested in precision.FULL:
        return tf.float32
    return getattr(tf, precision.COMPUTED_IN[requested])


def in_memory_format(configuration: Configuration, images: Any) -> Any:
    """Return images [N, 3, S, S] as the network takes them."""
    import tensorflow as tf

    if configuration.memory_format == "nchw":
        return images
    return tf.transpose(images, CHANNELS_LAST)


def autotuning(environment: Mapping[str, str]) -> str:
    """Return whether an environment lets cuDNN try its algorithms."""
    if environment.get(AUTOTUNING_VARIABLE, "1").lower() in ("0", "false"):
        return "disabled"
    return "enabled"


def show_own_gpu(environment: MutableMapping[str, str], local_rank: int) -> None:
    """Leave a rank one of the GPUs of its node."""
    # Call this before TensorFlow looks for GPUs. On a CPU there is none to leave.
    if gpus := environment.get(VISIBLE_DEVICES):
        environment[VISIBLE_DEVICES] = gpus.split(",")[local_rank]


def synchronise(device: str) -> None:
    """Wait for the device with this name.

    ``tf.test.experimental.sync_devices`` would wait for those of other processes too, which this one can't reach.
    """
    import tensorflow as tf

    with tf.device(device):
        tf.raw_ops.SyncDevice()


class IdleStopwatch(_base.HostStopwatch):
    """A stopwatch whose marks wait until the GPU is idle: TensorFlow has no events for its streams.

    So no step begins before the one before it has ended on the GPU.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def mark(self) -> None:
        synchronise(self._device)
        super().mark()


class TensorflowAllocator:
    """TensorFlow counts on GPUs only."""

    def restart(self) -> None:
        import tensorflow as tf

        if tf.config.list_physical_devices("GPU"):
            tf.config.experimental.reset_memory_stats("GPU:0")

    def peaks(self) -> _base.Peaks:
        import tensorflow as tf

        if not tf.config.list_physical_devices("GPU"):
            return {}
        return {"allocated_bytes": int(tf.config.experimental.get_memory_info("GPU:0")["peak"])}


def outputs(graph: Any) -> list[Output]:
    """Return the outputs of convolutions, or of matrix products."""

    definition = graph.as_graph_def()
    nodes = [*definition.node]
    for function in definition.library.function:
        nodes += function.node_def
    for product in ("Conv2D", "MatMul"):
        if observed := [_output(node) for node in nodes if node.op == product]:
            return observed
    return []


def _output(node: Any) -> Output:
    import tensorflow as tf

    number_format = tf.as_dtype(node.attr["T"].type).name
    return Output(number_format, node.attr["data_format"].s.decode().lower() if node.op == "Conv2D" else "")
