"""Horovod, on models built in TensorFlow: gradients averaged by a background thread, gloo or NCCL underneath.

Horovod 0.28.1 is compiled against TensorFlow 2.15: Keras 3 breaks it in 2.18, and newer ones lack its headers. That one
needs an older numpy than this project, so it has a Python of its own, which the cluster file names.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from dlperf_study.core.user_commands import make_or
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import ALL_REDUCE
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.job import Job
from dlperf_study.training.frameworks import _horovod, _tensorflow, _tensorflow_training
from dlperf_study.training.frameworks._base import ClusterView, Framework, exchange_library, nccl_version
from dlperf_study.training.frameworks._obstacles import missing_further_package, server_obstacles
from dlperf_study.training.frameworks._tensorflow_training import FunctionTrainer

STRATEGIES = (ALL_REDUCE,)
LEVELS = _tensorflow_training.LEVELS | {"strategy": STRATEGIES, "gradient_compression": ("none", "fp16")}
TENSORFLOW = "2.15."
PYTHON = "the Python that the cluster file names for horovod_tensorflow"
MAKE = make_or("horovod-tensorflow", "make -C CHECKOUT horovod-tensorflow")
REMEDY = (
    f"`{MAKE}` installs it in an environment of its own, whose Python the cluster file names: "
    "python: {horovod_tensorflow: PROJECT/.horovod-tensorflow/bin/python}"
)


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    yield from server_obstacles(configuration)
    yield from _horovod.obstacles(configuration, cluster)
    if obstacle := installation_obstacle(version):
        yield obstacle
    yield from _tensorflow_training.obstacles(configuration, cluster, LEVELS, _horovod.SETTINGS)


def installation_obstacle(version: str | None) -> str:
    """Return what is not installed in the Python of the cluster file, if its libraries are known; else nothing."""
    if version is None:
        return f"tensorflow is not installed in {PYTHON}; {REMEDY}"
    wrong = wrong_version(version)
    return f"{wrong}; {REMEDY}" if wrong else ""


def wrong_version(version: str) -> str:
    """Return that TensorFlow has another version than the one below Horovod, or that Horovod is missing."""
    if version and not version.startswith(TENSORFLOW):
        return f"{PYTHON} has tensorflow {version}, but Horovod 0.28.1 trains with TensorFlow {TENSORFLOW}1"
    missing = missing_further_package(version)
    return f"{missing} is not installed in {PYTHON}" if missing else ""


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one ``horovodrun`` on the first node."""
    return _horovod.job(configuration, cluster, _tensorflow.environment(configuration, cluster, 0))


def gpu_support() -> GpuSupport:
    """Return what the TensorFlow below Horovod can do with GPUs; the NCCL is the one that Horovod was compiled with."""
    support = _tensorflow.gpu_support()
    try:
        import horovod.tensorflow as hvd
    # One that is compiled for PyTorch alone: the plan says what is not installed.
    except ImportError:
        return support
    return replace(support, nccl=nccl_version(hvd.nccl_built()))


class HorovodTensorflowTrainer(FunctionTrainer):
    """One rank whose functions average each gradient by Horovod, as its ``DistributedGradientTape`` does."""

    #: Horovod's own, and one of gloo that moves bytes, as sampled while gradients were exchanged alone.
    exchange_threads = 2

    def __init__(self, configuration: Configuration) -> None:
        _horovod.show_gpus_of_node(os.environ)
        _tensorflow.show_own_gpu(os.environ, int(os.environ["HOROVOD_LOCAL_RANK"]))
        import horovod.tensorflow as hvd

        hvd.init()
        super().__init__(configuration, hvd.rank(), hvd.size())
        self.build(nullcontext())

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log, with the versions of TensorFlow and Horovod."""
        import horovod

        inherited = super().description()
        support = gpu_support() if _tensorflow.uses_gpu() else None
        exchange = {"exchange_library": exchange_library(support)} if self.world_size > 1 else {}
        version = f"{inherited['library_version']} with horovod {horovod.__version__}"
        return inherited | {"library_version": version} | exchange

    def exchange(self, size: int) -> Callable[[], None]:
        """Return what all-reduces tensors of the gradients' sizes; Horovod fuses them as it does in a step."""
        import tensorflow as tf

        tensors = self.leading_tensors(size)
        # A name belongs to one shape: Horovod remembers what was negotiated about it.
        averages = tf.function(lambda: self._averaged(tensors, f"exchange.{size}"))

        def exchange() -> None:
            averages()

        return exchange

    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all ranks."""
        import horovod.tensorflow as hvd
        import tensorflow as tf

        with tf.device("/CPU:0"):
            return float(max(hvd.allgather(tf.constant([value], tf.float64), name="agreed_maximum").numpy()))

    def close(self) -> None:
        """Wait for the others, then stop Horovod's thread."""
        import horovod.tensorflow as hvd

        self.barrier()
        hvd.shutdown()

    def _averages(self, tensors: list[Any]) -> list[Any]:
        return self._averaged(tensors, "gradient")

    def _averaged(self, tensors: list[Any], name: str) -> list[Any]:
        """Return the means of tensors over all ranks; Horovod tells them apart by their names."""
        import horovod.tensorflow as hvd

        compression = getattr(hvd.Compression, self._configuration.gradient_compression)
        options = {"op": hvd.Average, "compression": compression}
        return [hvd.allreduce(tensor, name=f"{name}.{k}", **options) for k, tensor in enumerate(tensors)]

    def _step(self, batch: tuple[Any, ...], exchanged: Callable[[list[Any]], list[Any]]) -> Any:
        """Return the loss of a step whose gradients are ``exchanged`` before the update."""
        loss, gradients = self._compute(*batch)
        self._scaler.update(exchanged(gradients), self._update)
        return loss

    def _update(self, gradients: list[Any]) -> None:
        self._optimizer.begin()
        for parameter, gradient, kept in zip(self.network.parameters, gradients, self._optimizer.kept, strict=True):
            self._optimizer.update(parameter, gradient, *kept)


FRAMEWORK = Framework(
    name="horovod_tensorflow",
    display_name="Horovod (TensorFlow)",
    library="tensorflow",
    packages=_tensorflow_training.PACKAGES,
    further_packages=("horovod",),
    strategies=STRATEGIES,
    obstacles=obstacles,
    wrong_version=wrong_version,
    version_remedy=REMEDY,
    job=job,
    trainer=HorovodTensorflowTrainer,
    environment_prefixes=(*_tensorflow_training.ENVIRONMENT_PREFIXES, _horovod.ENVIRONMENT_PREFIX),
    compilers={"xla": None},
    decided_variables=(*_tensorflow_training.DECIDED_VARIABLES, *_horovod.DECIDED_VARIABLES),
    gpu_support=gpu_support,
    gpu_remedy=f"{MAKE} HOROVOD_GPU_OPERATIONS=NCCL",
    allocator=_tensorflow.TensorflowAllocator,
)
