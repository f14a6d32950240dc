"""Shared by the Paddle frameworks: the number of a rank, the stopwatch of a GPU, the description of a rank."""

import os
from typing import Any

from dlperf_study import models
from dlperf_study.frameworks._base import HostStopwatch, Stopwatch
from dlperf_study.frameworks._common import model_facts
from dlperf_study.study.configuration import Configuration

PACKAGES = ("paddlepaddle-gpu", "paddlepaddle")
ENVIRONMENT_PREFIXES = ("FLAGS_", "GLOG_")


def environment_rank() -> tuple[int, int]:
    """Return (rank, world size) as Paddle's launcher and parameter-server protocol name them."""
    return int(os.environ.get("PADDLE_TRAINER_ID", "0")), int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))


class EventStopwatch:
    """Marks in the stream of the device, so that timing a step costs no synchronisation."""

    def __init__(self) -> None:
        self._events: list[Any] = []

    def mark(self) -> None:
        """Record an event after the work queued so far."""
        from paddle.device import Event

        event = Event(enable_timing=True)
        event.record()
        self._events.append(event)

    def seconds(self) -> list[float]:
        """Wait for the last event, then return the seconds between successive events."""
        self._events[-1].synchronize()
        return [a.elapsed_time(b) / 1e3 for a, b in zip(self._events, self._events[1:], strict=False)]


def on_gpu() -> bool:
    """Return whether this process trains on a GPU."""
    import paddle

    return str(paddle.get_device()).startswith("gpu")


def stopwatch() -> Stopwatch:
    """Return the stopwatch of this process's device."""
    return EventStopwatch() if on_gpu() else HostStopwatch()


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


def description(configuration: Configuration, parameters: int, gradient_bytes: int) -> dict[str, Any]:
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
    } | model_facts(configuration)
