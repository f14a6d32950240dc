"""Shared by the TensorFlow frameworks: what they refuse, and the environment of their ranks."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from dlperf_study.core.user_commands import install_command, make_or
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.parameter import IMAGES
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE
from dlperf_study.training.frameworks import _obstacles, _processes
from dlperf_study.training.frameworks._base import ClusterView
from dlperf_study.training.frameworks._obstacles import Levels
from dlperf_study.training.libraries._tensorflow_updates import KEPT
from dlperf_study.training.libraries.tensorflow import AUTOTUNING_VARIABLE

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
LEVELS: Levels = _obstacles.BUILT_LEVELS | {
    "precision": ("fp32", "tf32", "amp_fp16", "amp_bf16"),
    "loss_scaling": ("none", "dynamic", "static"),
    "memory_format": ("nchw", "nhwc"),
    "cudnn_autotune": _obstacles.AUTOTUNING,
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
    yield from _obstacles.unsuitable_parts(configuration, "tensorflow", levels, settings, {**FUSED_REFUSED, **refused})
    yield from _obstacles.device_obstacles(configuration, cluster.device)
    if configuration.cudnn_autotune != LIBRARYS_CHOICE and configuration.compiler == "xla":
        yield f"cudnn_autotune {configuration.cudnn_autotune}: XLA tries algorithms by its own xla_gpu_autotune_level"
    if cluster.device == "cpu":
        formats = (configuration.memory_format,) if configuration.samples == IMAGES else ()
        for value in (*formats, configuration.precision):
            if value in REFUSED_ON_CPUS:
                yield REFUSED_ON_CPUS[value]


def environment(configuration: Configuration, cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the environment of the ranks of a node; on a CPU no GPU is visible to them."""
    variables = _processes.common_environment(configuration) | {VISIBLE_DEVICES: ""}
    if cluster.device != "gpu":
        return variables
    variables |= _processes.gpu_environment(cluster, node)
    if configuration.cudnn_autotune != LIBRARYS_CHOICE:
        variables[AUTOTUNING_VARIABLE] = "1" if configuration.cudnn_autotune == "enabled" else "0"
    return variables | _processes.tf32_environment(configuration, cluster.device) | {MEMORY_GROWTH: "true"}
