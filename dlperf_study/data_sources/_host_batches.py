"""The samples and batches that Python makes on the host, whatever carries them to the step."""

from collections.abc import Iterator

from dlperf_study.data_sources._base import Batch, Consumer
from dlperf_study.data_sources._made_up_samples import MadeUpSamples
from dlperf_study.data_sources._samples import Samples, batch_positions, samples_of
from dlperf_study.study.configuration import PARAMETERS, Configuration

NO_IMAGES = PARAMETERS["image_set"].default


def host_samples(configuration: Configuration) -> Samples | MadeUpSamples:
    """Return the samples of the image set of a configuration, or made-up ones if it names none."""
    return MadeUpSamples(configuration) if configuration.image_set == NO_IMAGES else samples_of(configuration)


def host_batches(configuration: Configuration, consumer: Consumer) -> Iterator[Batch]:
    """Yield, without end, the batches of a rank: images float32 [N, 3, S, S] and labels int64 [N].

    Each batch has memory of its own.
    """
    samples = host_samples(configuration)
    for positions in batch_positions(configuration, consumer):
        yield samples.batch(positions)
