"""Batches that a process of its own makes and sends over ZeroMQ, from the same node or from another one.

Each rank has a producer. It sends every batch as two raw buffers, without a copy; as many batches as
``prefetch_batches`` may wait for their step.
"""

from collections.abc import Iterator
from typing import Any

from dlperf_study.data_sources._base import Batch, Consumer, DataSource
from dlperf_study.data_sources._host_batches import host_batches
from dlperf_study.data_sources._producers import endpoint_of
from dlperf_study.errors import RunError
from dlperf_study.study.configuration import Configuration

PREFETCH_BATCHES = 4
#: How long a step waits for a batch: a producer that died is noticed sooner, by the guard of its node.
PATIENCE_SECONDS = 120
#: ZeroMQ keeps at least one message at each end.
SENT_AHEAD = 1


class ReceivedBatches:
    """What the producer of a rank sends; images and labels are views of the messages."""

    def __init__(self, configuration: Configuration, consumer: Consumer) -> None:
        import zmq

        size, count = configuration.image_size, configuration.batch_per_device
        self._shape = (count, 3, size, size)
        self._endpoint = endpoint_of(consumer.rank)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PULL)
        self._socket.rcvhwm = int(DATA_SOURCE.setting(configuration, "prefetch_batches"))
        self._socket.rcvtimeo = round(1000 * PATIENCE_SECONDS)
        self._socket.connect(f"tcp://{self._endpoint}")

    def next(self) -> Batch:
        """Wait for the next message; raises RunError if none arrives in time."""
        import numpy as np
        import zmq

        try:
            images, labels = self._socket.recv_multipart(copy=False)
        except zmq.Again:
            raise RunError(f"the producer at {self._endpoint} sent no batch for {PATIENCE_SECONDS} s") from None
        # The arrays keep the messages in which their values are.
        pixels = np.frombuffer(images.buffer, dtype=np.float32).reshape(self._shape)
        return pixels, np.frombuffer(labels.buffer, dtype=np.int64)

    def close(self) -> None:
        """Close the connection; batches that were not received are dropped."""
        self._context.destroy(linger=0)


def obstacles(configuration: Configuration, library: str) -> Iterator[str]:
    """Yield that there is no other node on which batches could be made."""
    if configuration.remote_producers and configuration.nodes == 1:
        yield "remote_producers needs nodes of at least 2"


def produce(configuration: Configuration, consumer: Consumer, endpoint: str) -> None:
    """Send the batches of a rank to whoever connects to the endpoint, until this process is ended."""
    import zmq

    socket: Any = zmq.Context().socket(zmq.PUSH)
    socket.sndhwm = SENT_AHEAD
    socket.bind(f"tcp://{endpoint}")
    for images, labels in host_batches(configuration, consumer):
        socket.send_multipart([images, labels], copy=False)


def batches_ahead(configuration: Configuration) -> int:
    """Return how many batches both ends keep, with one more in the buffers of the connection."""
    return int(DATA_SOURCE.setting(configuration, "prefetch_batches")) + SENT_AHEAD + 1


DATA_SOURCE = DataSource(
    name="zmq",
    open=ReceivedBatches,
    obstacles=obstacles,
    produce=produce,
    batches_ahead=batches_ahead,
    packages=("pyzmq",),
    settings={"prefetch_batches": PREFETCH_BATCHES, "remote_producers": False, "image_set": "none"},
)
