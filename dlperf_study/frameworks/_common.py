"""Shared by the trainers of every library: the hyperparameters, and digests of parameters."""

import hashlib
import os
import socket
import time
from typing import Any

from dlperf_study import models
from dlperf_study.errors import RunError
from dlperf_study.study.configuration import Configuration

#: Small, so that tiny batches with batch norm stay finite; it has no influence on speed.
LEARNING_RATE = 0.001
MOMENTUM = 0.9
#: How long ranks may take to meet, and a collective to end, where the cluster file says nothing else: many ranks may
#: read a library of 2 GB from one file server.
MEET_SECONDS = COLLECTIVE_SECONDS = 300.0
#: The variables of training processes with the limits of the cluster file.
MEET_VARIABLE, COLLECTIVE_VARIABLE = "DLPERF_STUDY_MEET_SECONDS", "DLPERF_STUDY_COLLECTIVE_SECONDS"
#: What a message names that one of these limits ended.
MEET_KEY = "start_up.meet_seconds of the cluster file"
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


def start_up_environment(meet_seconds: float, collective_seconds: float) -> dict[str, str]:
    """Return the variables of training processes with these limits."""
    return {MEET_VARIABLE: f"{meet_seconds:g}", COLLECTIVE_VARIABLE: f"{collective_seconds:g}"}


def meet_seconds() -> float:
    """Return how long the ranks of this run may take to meet."""
    return float(os.environ.get(MEET_VARIABLE, MEET_SECONDS))


def collective_seconds() -> float:
    """Return how long a collective of this run may take."""
    return float(os.environ.get(COLLECTIVE_VARIABLE, COLLECTIVE_SECONDS))


def wait_for(endpoint: str) -> None:
    """Wait until a process answers at ``host:port``; raises RunError when none does in time.

    A gradient pushed to a server that does not listen yet is lost with an error; a rank that finds no master
    sleeps for three seconds before it tries again.
    """
    host, port = endpoint.split(":")
    limit = meet_seconds()
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RunError(f"nothing answered at {endpoint} within {limit:g} s, which is {MEET_KEY}")
