"""TensorFlow: its devices, clock and number formats, as asked for and as TensorFlow has them."""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.precision import COMPUTED_IN, FULL
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE
from dlperf_study.training.frameworks import _training
from dlperf_study.training.frameworks._base import ClusterView, HostStopwatch, Peaks, Stopwatch
from dlperf_study.training.frameworks._processes import common_environment, gpu_environment
from dlperf_study.training.frameworks._training import Output
from dlperf_study.training.models._tensorflow_layers import CHANNELS_LAST

#: By default TensorFlow takes nearly all memory of a GPU when it starts, so that nothing could be told of its use.
MEMORY_GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"
#: Read by TensorFlow at its first convolution, and by nothing that Python could ask: it is on unless this says 0.
AUTOTUNING_VARIABLE = "TF_CUDNN_USE_AUTOTUNE"
#: TensorFlow 2.16 and later imports Keras 3 with itself, and pandas and matplotlib with that, for a third of its start;
#: Keras 2 would be imported at its first use. The networks here use neither.
WITHOUT_KERAS_3 = {"TF_USE_LEGACY_KERAS": "1"}
#: What TensorFlow prints, after the file and the line, of a driver or a library that it can't use.
_LOG_LINE = re.compile(r"\.cc:\d+\] (.*(?:cuda|GPU).*)", re.IGNORECASE)
NCCL_PACKAGE = "nvidia-nccl-cu12"


def environment(configuration: Configuration, cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the environment of the ranks of a node; on a CPU no GPU is visible to them."""
    variables = common_environment(configuration) | {VISIBLE_DEVICES: ""}
    if cluster.device != "gpu":
        return variables
    variables |= gpu_environment(cluster, node)
    if configuration.cudnn_autotune != LIBRARYS_CHOICE:
        variables[AUTOTUNING_VARIABLE] = "1" if configuration.cudnn_autotune == "enabled" else "0"
    return variables | _training.tf32_environment(configuration, cluster.device) | {MEMORY_GROWTH: "true"}


def autotuning(environment: Mapping[str, str]) -> str:
    """Return whether TensorFlow lets cuDNN try its algorithms, by the environment of its process."""
    return "disabled" if environment.get(AUTOTUNING_VARIABLE, "1").lower() in ("0", "false") else "enabled"


def show_own_gpu(environment: MutableMapping[str, str], local_rank: int) -> None:
    """Leave a rank one of the GPUs of its node: every part of TensorFlow would use all that it sees.

    Call this before TensorFlow looks for GPUs. On a CPU there is none to leave.
    """
    if gpus := environment.get(VISIBLE_DEVICES):
        environment[VISIBLE_DEVICES] = gpus.split(",")[local_rank]


def gpu_support() -> GpuSupport:
    """Return what TensorFlow can do with the GPUs that this process may use."""
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
    """Return the last line in which TensorFlow's log says why there is no GPU, without time and place; or nothing."""
    lines = _LOG_LINE.findall(log)
    return lines[-1].strip() if lines else ""


def _nccl_version() -> str:
    """Return the version of NCCL, which wheels of TensorFlow load from a package of its own."""
    try:
        return version(NCCL_PACKAGE)
    except PackageNotFoundError:
        return ""


@contextlib.contextmanager
def _native_log() -> Iterator[list[str]]:
    """Yield a list that gets what this process prints to standard error: the exceptions of TensorFlow do not say it."""
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


def own_device() -> str:
    """Return the name of the device of this process, where no other process has a device."""
    return "/GPU:0" if uses_gpu() else "/CPU:0"


def synchronise(device: str) -> None:
    """Wait for the device with this name.

    ``tf.test.experimental.sync_devices`` would wait for those of other processes too, which this one can't reach.
    """
    import tensorflow as tf

    with tf.device(device):
        tf.raw_ops.SyncDevice()


def stopwatch(device: str) -> Stopwatch:
    """Return the stopwatch of the device with this name."""
    return IdleStopwatch(device) if uses_gpu() else HostStopwatch()


class IdleStopwatch(HostStopwatch):
    """A stopwatch whose marks wait until the GPU is idle: TensorFlow has no events for its streams.

    So no step begins before the one before it has ended on the GPU.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def mark(self) -> None:
        """Wait for the GPU, then read the monotonic clock."""
        synchronise(self._device)
        super().mark()


class TensorflowAllocator:
    """TensorFlow counts on GPUs only."""

    def restart(self) -> None:
        """Count peaks from what is allocated now."""
        import tensorflow as tf

        if tf.config.list_physical_devices("GPU"):
            tf.config.experimental.reset_memory_stats("GPU:0")

    def peaks(self) -> Peaks:
        """Return the peaks since ``restart``; empty on a CPU. How much it took from the device it does not say."""
        import tensorflow as tf

        if not tf.config.list_physical_devices("GPU"):
            return {}
        return {"allocated_bytes": int(tf.config.experimental.get_memory_info("GPU:0")["peak"])}


#: From [outputs, inputs, k, k] to [k, k, inputs, outputs].
FILTERS = (2, 3, 1, 0)


def set_tf32(configuration: Configuration) -> None:
    """Switch TF32 on or off; CPUs have none."""
    import tensorflow as tf

    tf.config.experimental.enable_tensor_float_32_execution(configuration.precision == "tf32")


def computed_in(configuration: Configuration) -> Any:
    """Return the type of what convolutions and linear layers compute."""
    import tensorflow as tf

    return tf.float32 if configuration.precision in FULL else getattr(tf, COMPUTED_IN[configuration.precision])


def outputs(graph: Any) -> list[Output]:
    """Return what a graph says of the outputs of its convolutions; without these, of its matrix products."""

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


def products(images: Any, weights: Any, number_format: str) -> list[Any]:
    """Return a convolution and a matrix product: ``Products`` of ``_training.py``."""
    import tensorflow as tf

    channels_last = tf.transpose(tf.cast(images, number_format), CHANNELS_LAST)
    filters = tf.transpose(tf.cast(weights, number_format), FILTERS)
    convolution = tf.nn.conv2d(channels_last, filters, strides=1, padding="VALID")
    rows = tf.reshape(channels_last, [len(images), -1])
    return [tf.cast(tensor, tf.float64).numpy() for tensor in (convolution, rows @ tf.transpose(rows))]
