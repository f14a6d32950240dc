"""Batches that a process of its own makes and sends over ZeroMQ, from the same node or from another one.

Each rank has a producer. It decodes and cuts out the images of every batch, and sends their 8-bit pixels and the labels
as two raw buffers, without a copy. A thread of the rank receives them and normalises them, which takes a quarter of the
bytes over the connection; as many batches as ``prefetch_batches`` may wait for their step.
"""

from collections.abc import Generator, Iterator
from itertools import cycle
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.data_loaders._base import Batch, Consumer, DataLoader
from dlperf_study.training.data_loaders._host_batches import QueuedBatches, pixel_batches, pixel_format
from dlperf_study.training.data_loaders._producers import producer_endpoint

PREFETCH_BATCHES = 4
#: How long a rank waits for a batch: a producer that died is noticed sooner, by the node agent of its node.
PATIENCE_SECONDS = 120
#: ZeroMQ keeps at least one message at each end.
SENT_AHEAD = RECEIVED_AHEAD = 1


def open_connection(configuration: Configuration, consumer: Consumer) -> QueuedBatches:
    """Connect the thread of a rank to its producer."""
    import zmq

    context = zmq.Context()
    batches = received_batches(context, configuration, producer_endpoint(consumer.rank))
    # A context that is ended ends every wait of its sockets, and then waits until they are closed.
    return QueuedBatches(DATA_LOADER.name, batches, DATA_LOADER.prefetch(configuration), interrupt=context.term)


def received_batches(context: Any, configuration: Configuration, endpoint: str) -> Generator[Batch, None, None]:
    """Yield what a producer sends; raises RunError after the limit."""
    import numpy as np
    import zmq

    count, pixel = configuration.batch_per_device, pixel_format(configuration)
    buffers = cycle(image_buffers(configuration))
    with context.socket(zmq.PULL) as socket:
        socket.rcvhwm, socket.rcvtimeo = RECEIVED_AHEAD, round(1000 * PATIENCE_SECONDS)
        socket.connect(f"tcp://{endpoint}")
        while True:
            try:
                pixels, labels = socket.recv_multipart(copy=False)
            except zmq.Again:
                raise RunError(f"the producer at {endpoint} sent no batch for {PATIENCE_SECONDS} s") from None
            images = next(buffers)
            received = np.frombuffer(pixels.buffer, dtype=np.uint8).reshape(count, *pixel.shape)
            # One image after the other: its pixels stay in the cache of the processor for all three colours.
            for of_image, image in zip(received, images, strict=True):
                pixel.normalise(of_image, image)
            # The array keeps the message in which its values are.
            yield images, np.frombuffer(labels.buffer, dtype=np.int64)


def image_buffers(configuration: Configuration) -> list[Any]:
    """Return memory for the batches of the queue, the one that is trained on, and the one that is being written."""
    # New memory for every batch would cost more than normalising does.
    import numpy as np

    size = configuration.image_size
    shape = (configuration.batch_per_device, 3, size, size)
    return [np.empty(shape, dtype=np.float32) for _ in range(DATA_LOADER.prefetch(configuration) + 2)]


def obstacles(configuration: Configuration, library: str) -> Iterator[str]:
    """Yield that there is no other node for producers."""
    if configuration.remote_producers and configuration.nodes == 1:
        yield "remote_producers needs nodes of at least 2"


def produce(configuration: Configuration, consumer: Consumer, endpoint: str) -> None:
    """Send the batches of a rank until this process ends."""
    import zmq

    socket: Any = zmq.Context().socket(zmq.PUSH)
    socket.sndhwm = SENT_AHEAD
    socket.bind(f"tcp://{endpoint}")
    for pixels, labels in pixel_batches(configuration, consumer):
        socket.send_multipart([pixels, labels], copy=False)


def batches_ahead(configuration: Configuration) -> int:
    """Return those in queue, thread, ZeroMQ and connection."""
    return DATA_LOADER.prefetch(configuration) + 1 + RECEIVED_AHEAD + SENT_AHEAD + 1


DATA_LOADER = DataLoader(
    name="zmq",
    display_name="ZeroMQ",
    open=open_connection,
    obstacles=obstacles,
    produce=produce,
    batches_ahead=batches_ahead,
    packages=("pyzmq",),
    settings={"prefetch_batches": PREFETCH_BATCHES, "remote_producers": False, "image_dataset": "none"},
)
