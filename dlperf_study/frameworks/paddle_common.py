"""What the Paddle frameworks share: synthetic data, the stopwatch of a GPU, checksums, the description of a rank."""

import hashlib
import socket
import time
from typing import Any

from dlperf_study import models
from dlperf_study.errors import RunError
from dlperf_study.frameworks.base import HostStopwatch, Stopwatch, environment_rank
from dlperf_study.study.configuration import Configuration

DISTRIBUTIONS = ("paddlepaddle-gpu", "paddlepaddle")
#: Small, so that tiny batches with batch norm stay finite; it has no influence on speed.
LEARNING_RATE = 0.001
MOMENTUM = 0.9
START_SECONDS = 60.0


class EventStopwatch:
    """Marks on the device's own stream, so that timing a step costs no synchronisation."""

    def __init__(self) -> None:
        self._events: list[Any] = []

    def mark(self) -> None:
        """Record an event behind the work queued so far."""
        from paddle.device import Event

        event = Event(enable_timing=True)
        event.record()
        self._events.append(event)

    def seconds(self) -> list[float]:
        """Wait for the last event, then return the seconds between successive ones."""
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


def synthetic_batch(configuration: Configuration) -> tuple[Any, Any]:
    """Return images [N, 3, S, S] float32 and labels [N] int64, constant, different on every rank.

    Real values and not zeros: a network fed zeros trains on denormals and constant activations,
    which is faster on some devices.
    """
    import numpy as np

    rank, _ = environment_rank()
    generator = np.random.default_rng([configuration.seed, rank])
    size, count = configuration.image_size, configuration.batch_per_device
    images = generator.standard_normal((count, 3, size, size), dtype=np.float32)
    return images, generator.integers(0, configuration.classes, count, dtype=np.int64)


def wait_for(endpoint: str) -> None:
    """Wait until a process answers at ``host:port``.

    A gradient pushed to a server that does not listen yet is lost with an error; a rank that meets no master
    sleeps for three seconds before it tries again.
    """
    host, port = endpoint.split(":")
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RunError(f"nothing answered at {endpoint} within {START_SECONDS:.0f} s")


def checksum(arrays: list[Any]) -> str:
    """Return a digest of the arrays' bytes, in the order given."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()


def description(configuration: Configuration, parameters: int, gradient_bytes: int) -> dict[str, Any]:
    """Return the part of the ``rank`` line that is the same for every Paddle framework."""
    import paddle

    model = models.load(configuration.model)
    return {
        "library": "paddle",
        "library_version": paddle.__version__,
        "library_commit": paddle.version.commit,
        "cuda": str(paddle.version.cuda()),
        "device": "gpu" if on_gpu() else "cpu",
        "parameters": parameters,
        "gradient_bytes": gradient_bytes,
        "flops_per_sample": model.flops_per_sample(
            configuration.image_size, configuration.classes, configuration.sample_ratio
        ),
        "flops_source": model.flops_source,
    }
