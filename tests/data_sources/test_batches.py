"""The batches of every data source: their shapes and types, and that only a fixed source repeats one."""

from contextlib import closing

import numpy as np
import pytest

from dlperf_study import data_sources
from dlperf_study.data_sources._base import Batches, Consumer
from dlperf_study.study.configuration import Configuration
from tests.evidence_factory import configuration

SMALL = {"image_size": 16, "classes": 10, "batch_per_device": 3}


def opened(name: str, rank: int = 0, **changes: object) -> "closing[Batches]":
    """Open a data source for one of two ranks that train with its first library."""
    source = data_sources.load(name)
    asked: Configuration = configuration(data_source=name, **{**SMALL, **changes})
    return closing(source.open(asked, Consumer(rank, 2, next(iter(source.libraries), "none"))))


def arrays(batches: Batches) -> tuple[np.ndarray, np.ndarray]:
    """Return copies of the next batch as numpy's arrays."""
    images, labels = batches.next()
    return np.array(images), np.array(labels)


@pytest.mark.parametrize("name", data_sources.names())
def test_a_batch_has_the_shapes_and_types_of_the_configuration(name):
    with opened(name) as batches:
        images, labels = arrays(batches)
    assert (images.shape, images.dtype) == ((3, 3, 16, 16), np.float32)
    assert (labels.shape, labels.dtype) == ((3,), np.int64)
    assert 0 <= labels.min() <= labels.max() < 10


def test_a_fixed_batch_is_always_the_same_and_different_on_each_rank():
    with opened("synthetic_device") as first, opened("synthetic_device", rank=1) as second:
        images, labels = arrays(first)
        assert np.array_equal(arrays(first)[0], images)
        assert np.array_equal(arrays(first)[1], labels)
        assert not np.array_equal(arrays(second)[0], images)
    with opened("synthetic_device", seed=1) as batches:
        assert not np.array_equal(arrays(batches)[0], images)
