"""Batches of sequences: the global batch of every step is the same however many replicas share it.

Sequence ``p`` of the common order belongs to replica ``p % replicas``; it follows from the seed and ``p`` alone, as
does which of its positions are masked.
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

from dlperf_study.study.configuration import Configuration
from dlperf_study.training import models
from dlperf_study.training.data_loaders._base import Batch, Consumer, batch_positions
from dlperf_study.training.models._sequences import MASKED, SequenceModel

#: What the random numbers are for; the same seed gives each purpose numbers of its own.
TOKENS, MASKING = 2, 3
#: The token that replaces a masked one, in the vocabulary of BERT as it was released.
MASK = 103


#: ``tokens(position, length)``: int64 tokens of the sequence at a position of the common order.
Tokens = Callable[[int, int], Any]


def sequence_model(configuration: Configuration) -> SequenceModel:
    """Return the model of a configuration whose samples are sequences."""
    return cast(SequenceModel, models.load(configuration.model))


def made_up_tokens(configuration: Configuration) -> Tokens:
    """Return tokens drawn from the whole vocabulary."""
    import numpy as np

    vocabulary, seed = sequence_model(configuration).sizes.vocabulary, configuration.seed

    def tokens(position: int, length: int) -> Any:
        return np.random.default_rng((seed, TOKENS, position)).integers(0, vocabulary, length, dtype=np.int64)

    return tokens


def sequence_batches(configuration: Configuration, consumer: Consumer, tokens: Tokens) -> Iterator[Batch]:
    """Yield the batches of a replica; see ``SequenceModel``."""
    is_masked = sequence_model(configuration).task == MASKED
    for positions in batch_positions(configuration, consumer):
        if is_masked:
            yield masked_batch(configuration, tokens, positions)
        else:
            yield next_tokens(tokens, positions, configuration.sequence_length)


def next_tokens(tokens: Tokens, positions: range, length: int) -> Batch:
    """Return tokens [N, T] and the next ones [N, T], int64."""
    import numpy as np

    rows = np.stack([tokens(position, length + 1) for position in positions])
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, 1:])


def masked_batch(configuration: Configuration, tokens: Tokens, positions: range) -> Batch:
    """Return tokens [N, T] with masks, masked positions [N, M], their tokens [N, M] and next sentences [N], int64."""
    import numpy as np

    length, count = configuration.sequence_length, configuration.masked_positions
    rows = np.stack([tokens(position, length) for position in positions])
    masked = np.empty((len(rows), count), dtype=np.int64)
    is_next = np.empty(len(rows), dtype=np.int64)
    for row, position in enumerate(positions):
        generator = np.random.default_rng((configuration.seed, MASKING, position))
        masked[row] = np.sort(generator.permutation(length)[:count])
        is_next[row] = generator.integers(2)
    labels = np.take_along_axis(rows, masked, axis=1)
    np.put_along_axis(rows, masked, MASK, axis=1)
    return rows, masked, labels, is_next
