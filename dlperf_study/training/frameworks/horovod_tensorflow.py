"""Horovod, on models built in TensorFlow: gradients averaged by a background thread, gloo or NCCL underneath.

Horovod 0.28.1 is compiled against TensorFlow 2.15: Keras 3 breaks it in 2.18, and newer ones lack its headers. That one
needs an older numpy than this project, so it has a Python of its own, which the cluster file names.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from dlperf_study.core.user_commands import make_or
from dlperf_study.study.communication import ALL_REDUCE
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.job import Job
from dlperf_study.training.frameworks import _horovod, _obstacles, _tensorflow
from dlperf_study.training.frameworks._base import ClusterView, Framework
from dlperf_study.training.frameworks._horovod import HorovodGroup
from dlperf_study.training.frameworks._tensorflow import FunctionGroup, FunctionTrainer
from dlperf_study.training.libraries import tensorflow as tensorflow_library
from dlperf_study.training.libraries._base import nccl_version
from dlperf_study.training.libraries.tensorflow import TensorFlow

STRATEGIES = (ALL_REDUCE,)
BUILT = _tensorflow.BUILT | {"strategy": STRATEGIES, "gradient_compression": ("none", "fp16")}
TENSORFLOW = "2.15."
PYTHON = "the Python of the cluster file for horovod_tensorflow"
MAKE = make_or("horovod-tensorflow", "make -C CHECKOUT horovod-tensorflow")
REMEDY = (
    f"`{MAKE}` installs it in a separate environment; name its Python in the cluster file: "
    "python: {horovod_tensorflow: PROJECT/.horovod-tensorflow/bin/python}"
)


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    yield from _obstacles.server_obstacles(configuration)
    yield from _horovod.obstacles(configuration, cluster)
    if obstacle := installation_obstacle(version):
        yield obstacle
    yield from _tensorflow.obstacles(configuration, cluster, BUILT, _horovod.SETTINGS)


def installation_obstacle(version: str | None) -> str:
    """Return what is not installed in the Python, if known."""
    if version is None:
        return f"tensorflow is not installed in {PYTHON}; {REMEDY}"
    wrong = wrong_version(version)
    if wrong:
        return f"{wrong}; {REMEDY}"
    return ""


def wrong_version(version: str) -> str:
    """Return that TensorFlow is another, or Horovod missing."""
    if version and not version.startswith(TENSORFLOW):
        return f"{PYTHON} has tensorflow {version}, but Horovod 0.28.1 trains with TensorFlow {TENSORFLOW}1"
    missing = _obstacles.missing_further_package(version)
    if missing:
        return f"{missing} is not installed in {PYTHON}"
    return ""


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one ``horovodrun`` on the first node."""
    return _horovod.job(configuration, cluster, _tensorflow.environment(configuration, cluster, 0))


def gpu_support() -> GpuSupport:
    """Return TensorFlow's support of GPUs, with Horovod's NCCL."""
    support = tensorflow_library.gpu_support()
    try:
        import horovod.tensorflow as hvd
    # One that is compiled for PyTorch alone: the plan says what is not installed.
    except ImportError:
        return support
    return replace(support, nccl=nccl_version(hvd.nccl_built()))


class HorovodTensorflowGroup(HorovodGroup, FunctionGroup):
    """All ranks, which average each gradient by Horovod, as its ``DistributedGradientTape`` does."""

    def __init__(self, hvd: Any, support: Callable[[], GpuSupport], compression: str) -> None:
        super().__init__(hvd, support)
        self._compression = getattr(hvd.Compression, compression)

    def barrier(self) -> None:
        self.maximum(0.0)

    def maximum(self, value: float) -> float:
        import tensorflow as tf

        with tf.device("/CPU:0"):
            return float(max(self._hvd.allgather(tf.constant([value], tf.float64), name="agreed_maximum").numpy()))

    def averages(self, tensors: list[Any]) -> list[Any]:
        return self._averaged(tensors, "gradient")

    def averages_alone(self, tensors: list[Any]) -> list[Any]:
        # A name belongs to one shape: Horovod remembers what was negotiated about it.
        elements = sum(tensor.shape.num_elements() for tensor in tensors)
        return self._averaged(tensors, f"exchange.{elements}")

    def _averaged(self, tensors: Sequence[Any], name: str) -> list[Any]:
        options = {"op": self._hvd.Average, "compression": self._compression}
        averages = []
        for index, tensor in enumerate(tensors):
            averages.append(self._hvd.allreduce(tensor, name=f"{name}.{index}", **options))
        return averages


class HorovodTensorflowTrainer(FunctionTrainer):
    """One rank whose functions average gradients by Horovod."""

    def __init__(self, configuration: Configuration) -> None:
        _horovod.show_gpus_of_node(os.environ)
        tensorflow_library.show_own_gpu(os.environ, int(os.environ["HOROVOD_LOCAL_RANK"]))
        import horovod.tensorflow as hvd

        group = HorovodTensorflowGroup(hvd, gpu_support, configuration.gradient_compression)
        super().__init__(configuration, TensorFlow(configuration, configuration.threads_per_device), group)

    def description(self) -> dict[str, Any]:
        import horovod

        inherited = super().description()
        return inherited | {"library_version": f"{inherited['library_version']} with horovod {horovod.__version__}"}


FRAMEWORK = Framework(
    name="horovod_tensorflow",
    display_name="Horovod (TensorFlow)",
    library="tensorflow",
    packages=_tensorflow.PACKAGES,
    further_packages=("horovod",),
    strategies=STRATEGIES,
    obstacles=obstacles,
    wrong_version=wrong_version,
    version_remedy=REMEDY,
    job=job,
    trainer=HorovodTensorflowTrainer,
    environment_prefixes=(*_tensorflow.ENVIRONMENT_PREFIXES, _horovod.ENVIRONMENT_PREFIX),
    compilers={"xla": None},
    decided_variables=(*_tensorflow.DECIDED_VARIABLES, *_horovod.DECIDED_VARIABLES),
    gpu_support=gpu_support,
    gpu_remedy=f"{MAKE} HOROVOD_GPU_OPERATIONS=NCCL",
    allocator=tensorflow_library.TensorflowAllocator,
)
