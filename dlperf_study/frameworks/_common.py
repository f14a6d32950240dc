"""Shared by the trainers of every library: the hyperparameters, and digests of parameters."""

import hashlib
import socket
import time
from typing import Any

from dlperf_study import models
from dlperf_study.errors import RunError
from dlperf_study.study.configuration import Configuration

#: Small, so that tiny batches with batch norm stay finite; it has no influence on speed.
LEARNING_RATE = 0.001
MOMENTUM = 0.9
START_SECONDS = 60.0
#: Bytes of one element of a gradient on the link, by its compression.
ELEMENT_BYTES = {"none": 4, "fp16": 2}


def checksum(arrays: list[Any]) -> str:
    """Return a digest of the arrays' bytes, in the order given."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()


def leading_counts(counts: list[int], elements: int) -> list[int]:
    """Return how many elements of successive buffers are among the first ``elements``; buffers after them are left out.

    ``counts`` are the numbers of elements of the buffers.
    """
    leading: list[int] = []
    for count in counts:
        taken = min(count, elements - sum(leading))
        if taken <= 0:
            break
        leading.append(taken)
    return leading


def model_facts(configuration: Configuration) -> dict[str, Any]:
    """Return the fields of the rank log about the work of one sample."""
    model = models.load(configuration.model)
    size, classes, ratio = configuration.image_size, configuration.classes, configuration.sample_ratio
    return {"flops_per_sample": model.flops_per_sample(size, classes, ratio), "flops_source": model.flops_source}


def wait_for(endpoint: str) -> None:
    """Wait until a process answers at ``host:port``.

    A gradient pushed to a server that does not listen yet is lost with an error; a rank that finds no master
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
