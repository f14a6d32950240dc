"""Shared by the Paddle frameworks: the number of a rank, what Paddle can do with GPUs, the description of a rank."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

from dlperf_study import models
from dlperf_study.frameworks._common import model_facts
from dlperf_study.frameworks._gpu_support import GpuSupport, nccl_version, obstacle_of
from dlperf_study.frameworks._stopwatches import EventStopwatch, HostStopwatch, Stopwatch
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


def on_device(values: Any) -> Any:
    """Return an array of numpy, or a tensor, as a tensor on this process's device; a tensor there is not copied."""
    import paddle

    if not paddle.is_tensor(values):
        return paddle.to_tensor(values)
    return values.cuda() if on_gpu() else values


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
    layer = models.load(configuration.model).builder("paddle")(configuration, rank, world_size)
    return _with_channels_last(layer) if configuration.memory_format == "nhwc" else layer


def layout_obstacles(configuration: Configuration) -> Iterator[str]:
    """Yield why a model is not trained with channels last: its linear layers would get features in another order."""
    model = configuration.model
    if configuration.memory_format != "nhwc" or model not in models.names():
        return
    if not models.load(model).pools_to_pixel:
        reason = "it flattens features of several pixels, and Paddle's layers would put them in another order"
        yield f"memory_format nhwc: model {model} is not built so for Paddle: {reason}"


def in_layout(configuration: Configuration, images: Any) -> Any:
    """Return a tensor of images [N, 3, S, S] as Paddle's layers take it: with ``nhwc``, [N, S, S, 3]."""
    return images.transpose([0, 2, 3, 1]) if configuration.memory_format == "nhwc" else images


def _with_channels_last(layer: Any) -> Any:
    """Make every layer of a network take and return features [N, H, W, C]; weights keep their layout."""
    for part in layer.sublayers():
        for name in ("_data_format", "data_format"):
            if getattr(part, name, None) == "NCHW":
                setattr(part, name, "NHWC")
    return layer


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
