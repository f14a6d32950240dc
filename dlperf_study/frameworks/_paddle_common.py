"""Shared by the Paddle frameworks: the number of a rank, what Paddle can do with GPUs, the description of a rank."""

import os
from functools import partial
from typing import Any

from dlperf_study import models
from dlperf_study.frameworks._base import EventStopwatch, HostStopwatch, Stopwatch
from dlperf_study.frameworks._common import model_facts
from dlperf_study.frameworks._gpu_support import GpuSupport, nccl_version, obstacle_of
from dlperf_study.study.configuration import Configuration

PACKAGES = ("paddlepaddle-gpu", "paddlepaddle")
GPU_REMEDY = "make gpu PADDLE_INDEX=ADDRESS"
ENVIRONMENT_PREFIXES = ("FLAGS_", "GLOG_")


def environment_rank() -> tuple[int, int]:
    """Return (rank, world size) as Paddle's launcher and parameter-server protocol name them."""
    return int(os.environ.get("PADDLE_TRAINER_ID", "0")), int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))


def on_gpu() -> bool:
    """Return whether this process trains on a GPU."""
    import paddle

    return str(paddle.get_device()).startswith("gpu")


def gpu_support() -> GpuSupport:
    """Return what Paddle can do with the GPUs that this process may use."""
    import paddle

    if not paddle.device.is_compiled_with_cuda():
        return GpuSupport()
    names: tuple[str, ...] = ()
    obstacle = ""
    try:
        names = tuple(map(paddle.device.cuda.get_device_name, range(paddle.device.cuda.device_count())))
    # What Paddle raises where CUDA fails has no documented class.
    except Exception as error:
        obstacle = obstacle_of(error)
    version = paddle.version
    nccl = nccl_version(int(version.nccl()))
    return GpuSupport(str(version.cuda()), str(version.cudnn()), nccl, names, obstacle)


def stopwatch() -> Stopwatch:
    """Return the stopwatch of this process's device."""
    if not on_gpu():
        return HostStopwatch()
    from paddle.device import Event

    return EventStopwatch(partial(Event, enable_timing=True))


def synchronise() -> None:
    """Wait for the device; on a CPU there is nothing to wait for."""
    import paddle

    if on_gpu():
        paddle.device.synchronize()


def build_layer(configuration: Configuration) -> Any:
    """Build the model, with the same initial parameters on every rank."""
    import paddle

    rank, world_size = environment_rank()
    paddle.seed(configuration.seed)
    return models.load(configuration.model).builder("paddle")(configuration, rank, world_size)


def description(
    configuration: Configuration, parameters: int, gradient_bytes: int, exchange_threads: int
) -> dict[str, Any]:
    """Return the part of the ``rank`` line that is the same for every Paddle framework."""
    import paddle

    return {
        "library": "paddle",
        "library_version": paddle.__version__,
        "library_commit": paddle.version.commit,
        "cuda": str(paddle.version.cuda()),
        "device": "gpu" if on_gpu() else "cpu",
        "parameters": parameters,
        "gradient_bytes": gradient_bytes,
        "exchange_threads": exchange_threads,
    } | model_facts(configuration)
