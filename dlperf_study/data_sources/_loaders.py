"""The loaders of the libraries, each with its own worker processes. A library that loads otherwise, such as tf.data,
gets a function here.

Every function gets samples, of which ``samples[position]`` is image [3, S, S] float32 and label int64, the positions of
each batch, the number of worker processes, at least 1, and how many batches they prepare ahead. It returns an iterator
of batches: tensors of the library, on the CPU.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from dlperf_study.data_sources._base import Batch

#: Samples, positions, worker processes, batches ahead.
Loader = Callable[[Any, Iterator[range], int, int], Iterator[Batch]]


class BatchPositions:
    """The positions of each batch, in the form in which both libraries take them: a batch sampler."""

    def __init__(self, positions: Iterator[range]) -> None:
        self._positions = positions

    def __iter__(self) -> Iterator[list[int]]:
        return map(list, self._positions)


def paddle_loader(samples: Any, positions: Iterator[range], workers: int, prefetch: int) -> Iterator[Batch]:
    """Load with ``paddle.io.DataLoader``, whose workers hand batches over in shared memory."""
    from paddle import CPUPlace
    from paddle.io import DataLoader

    sampler, ahead = BatchPositions(positions), batches_per_worker(prefetch, workers)
    return iter(
        DataLoader(samples, batch_sampler=sampler, num_workers=workers, prefetch_factor=ahead, places=[CPUPlace()])
    )


def torch_loader(samples: Any, positions: Iterator[range], workers: int, prefetch: int) -> Iterator[Batch]:
    """Load with ``torch.utils.data.DataLoader``, whose workers hand batches over in shared memory."""
    from torch.utils.data import DataLoader

    sampler, ahead = BatchPositions(positions), batches_per_worker(prefetch, workers)
    return iter(DataLoader(samples, batch_sampler=sampler, num_workers=workers, prefetch_factor=ahead))


def batches_per_worker(prefetch: int, workers: int) -> int:
    """Return how many batches each worker prepares ahead, so that all together prepare at least ``prefetch``."""
    return math.ceil(prefetch / workers)


LOADERS: dict[str, Loader] = {"paddle": paddle_loader, "torch": torch_loader}
