"""The batches that Python makes on the host, whatever carries them to the step."""

from collections.abc import Iterator

from dlperf_study.data_sources._base import Batch, Consumer
from dlperf_study.data_sources._random_batch import random_batch, random_generator
from dlperf_study.data_sources._samples import batch_positions, samples_of
from dlperf_study.study.configuration import PARAMETERS, Configuration

NO_IMAGES = PARAMETERS["image_set"].default


def host_batches(configuration: Configuration, consumer: Consumer) -> Iterator[Batch]:
    """Yield, without end, the batches of a rank: read from its image set, or random values if it reads none.

    Images are float32 [N, 3, S, S], labels int64 [N]; each batch has memory of its own.
    """
    if configuration.image_set == NO_IMAGES:
        generator = random_generator(configuration, consumer.rank)
        while True:
            yield random_batch(configuration, generator)
    samples = samples_of(configuration)
    for positions in batch_positions(configuration, consumer):
        yield samples.batch(positions)
