"""The batches of every data loader: their shapes and types, and that only a fixed source repeats one."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.parameter import IMAGES
from dlperf_study.training import data_loaders
from dlperf_study.training.data_loaders._base import Batches, Consumer
from dlperf_study.training.image_datasets._base import FOLDER_VARIABLE
from tests.evidence_factory import configuration
from tests.training.data_loaders.serving import producer
from tests.training.image_datasets import tiny

SMALL = {"image_size": 16, "classes": 10, "batch_per_device": 3}


@pytest.fixture(autouse=True)
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The images of sources that read some."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tiny.class_folders(tmp_path / "pictures")))


@contextmanager
def opened(name: str, rank: int = 0, **changes: object) -> "Iterator[Batches]":
    """Open a data loader for one of two ranks that train with its first library, with its producer if it has one."""
    source = data_loaders.load(name)
    if next(source.obstacles(configuration(data_loader=name), ""), ""):
        changes["image_dataset"] = "pictures"
    asked: Configuration = configuration(data_loader=name, **{**SMALL, **changes})
    consumer = Consumer(rank, 2, next(iter(source.libraries), "none"))
    with producer(asked, rank), closing(source.open(asked, consumer)) as batches:
        yield batches


def arrays(batches: Batches) -> tuple[np.ndarray, np.ndarray]:
    """Return copies of the next batch as numpy's arrays."""
    images, labels = batches.next()
    return np.array(images), np.array(labels)


OF_IMAGES = [name for name in data_loaders.names() if IMAGES in data_loaders.load(name).samples]


@pytest.mark.parametrize("name", OF_IMAGES)
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
