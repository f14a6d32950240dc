"""Sources that read images: the same samples from each, divided among the ranks."""

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from dlperf_study.core.errors import ImageDatasetError, RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import data_loaders
from dlperf_study.training.data_loaders._base import Batches, Consumer, batch_positions
from dlperf_study.training.data_loaders._host_batches import host_batches, pixel_batches, pixel_format
from dlperf_study.training.data_loaders._samples import Samples, configured_samples
from dlperf_study.training.image_datasets import open_image_dataset
from dlperf_study.training.image_datasets._base import FOLDER_VARIABLE
from tests.evidence_factory import configuration
from tests.training.data_loaders.serving import producer
from tests.training.image_datasets import tiny

BATCHES = 5
READING = {"image_dataset": "pictures", "image_size": 16, "classes": 3, "batch_per_device": 3, "devices_per_node": 2}


@pytest.fixture(params=["class_folders", "cifar10"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny image dataset, which is that of this process."""
    path = getattr(tiny, request.param)(tmp_path / "pictures")
    monkeypatch.setenv(FOLDER_VARIABLE, str(path))
    return Path(path)


@contextmanager
def opened(source: str, library: str = "none", rank: int = 0, **changes: Any) -> Iterator[Batches]:
    requested = configuration(data_loader=source, **{**READING, **changes})
    with producer(requested, rank), closing(_open(source, requested, Consumer(rank, 2, library))) as batches:
        yield batches


def _open(source: str, requested: Configuration, consumer: Consumer) -> Batches:
    return data_loaders.load(source).open(requested, consumer)


def digest(source: str, library: str = "none", **changes: Any) -> str:
    """Return a digest of the first batches of a source."""
    values = hashlib.sha256()
    with opened(source, library, **changes) as batches:
        for _ in range(BATCHES):
            for array in batches.next():
                values.update(np.asarray(array).tobytes())
    return values.hexdigest()


@pytest.mark.needs("torch")
def test_every_source_delivers_the_same_tensors_for_the_same_seed(folder):
    for rank in (0, 1):
        expected = digest("files", "paddle", rank=rank, data_workers=0)
        assert digest("files", "paddle", rank=rank, data_workers=2) == expected
        assert digest("files", "torch", rank=rank, data_workers=2) == expected
        assert digest("zmq", rank=rank) == expected
    assert digest("files", "paddle", data_workers=0) != expected
    assert digest("files", "paddle", data_workers=0, seed=1) != digest("files", "paddle", data_workers=0)


def test_the_ranks_share_every_pass_over_the_set_and_each_pass_has_its_order(folder):
    samples = configured_samples(configuration(**READING))
    count, ranks = len(samples.image_dataset), [Consumer(rank, 2, "none") for rank in (0, 1)]
    positions: list[int] = []
    # Two batches of three on two ranks are one pass over twelve images.
    for rank in ranks:
        for batch in islice(batch_positions(configuration(**READING), rank), 4):
            positions.extend(batch)
    assert sorted(positions) == list(range(2 * count))
    passes = [[samples.index(position) for position in range(first, first + count)] for first in (0, count)]
    assert sorted(passes[0]) == sorted(passes[1]) == list(range(count))
    assert passes[0] != passes[1]


def test_a_sample_has_the_label_of_its_image_and_is_cut_from_it(tmp_path):
    """Every class has one colour here, which a cut, a flip and a change of scale leave as it is."""
    from PIL import Image

    from dlperf_study.training.image_datasets._photographs import write_class_folders

    colours = [(255, 0, 0), (0, 255, 0), (10, 20, 30)]
    flat = [[Image.new("RGB", (40, 30), colour) for _ in range(2)] for colour in colours]
    write_class_folders(tmp_path, ("a", "b", "c"), flat)
    samples = Samples(open_image_dataset(tmp_path), 8, seed=0)
    for position in range(12):
        image, label = samples[position]
        colour = (np.array(colours[label]) / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
        assert (image.shape, image.dtype) == ((3, 8, 8), np.float32)
        # JPEG changes a colour by a few of 255 values.
        assert np.abs(image - colour[:, None, None]).max() < 0.1


def test_without_an_image_set_the_host_makes_values_up():
    first, second = islice(host_batches(configuration(batch_per_device=2, image_size=8), Consumer(0, 1, "none")), 2)
    assert first[0].shape == (2, 3, 8, 8)
    assert not np.array_equal(first[0], second[0])


@pytest.mark.parametrize("image_dataset", ["none", "pictures"])
def test_pixels_are_a_quarter_of_the_bytes_and_become_the_same_images(folder, image_dataset):
    requested, consumer = configuration(**{**READING, "image_dataset": image_dataset}), Consumer(1, 2, "none")
    pixels, labels = next(pixel_batches(requested, consumer))
    images, expected_labels = next(host_batches(requested, consumer))
    assert 4 * pixels.nbytes == images.nbytes
    assert np.array_equal(labels, expected_labels)
    pixel, normalised = pixel_format(requested), np.empty_like(images)
    for of_image, image in zip(pixels, normalised, strict=True):
        assert of_image.shape == pixel.shape
        pixel.normalise(of_image, image)
    assert np.array_equal(normalised, images)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("library", ["paddle", "torch"])
# PaddlePaddle reads in a thread, which ends with the exception.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_broken_image_is_named_by_the_process_that_trains(tmp_path, monkeypatch, library, workers):
    path = tiny.class_folders(tmp_path)
    monkeypatch.setenv(FOLDER_VARIABLE, str(path))
    for file in (path / "train").rglob("*.JPEG"):
        file.write_bytes(b"x")
    message = rf"^{path}/train/\w+/\w+\.JPEG can't be decoded: it is not an image$"
    before = set(psutil.Process().children())
    with (
        opened("files", library, data_workers=workers) as batches,
        pytest.raises(ImageDatasetError, match=message) as error,
    ):
        batches.next()
    assert set(psutil.Process().children()) <= before, f"workers outlive their source, as long as {error.value!r} does"


@pytest.mark.parametrize("library", ["paddle", pytest.param("torch", marks=pytest.mark.needs("torch"))])
def test_no_worker_that_reads_files_outlives_its_source(folder, library):
    before = set(psutil.Process().children())
    with opened("files", library, data_workers=1) as batches:
        batches.next()
        assert len(set(psutil.Process().children()) - before) == 1
    assert set(psutil.Process().children()) <= before


def test_a_producer_that_is_not_there_ends_the_wait(monkeypatch, refused):
    monkeypatch.setattr("dlperf_study.training.data_loaders.zmq.PATIENCE_SECONDS", 0.2)
    monkeypatch.setenv("DLPERF_STUDY_PRODUCERS", "127.0.0.1:9")
    batches = _open("zmq", configuration(), Consumer(0, 1, "none"))
    with closing(batches), refused(RunError):
        batches.next()


def test_a_received_batch_stays_as_it_is_until_the_next_is_requested(folder):
    """The memory of batches is used again, and the queue is full before each is compared."""
    requested = configuration(data_loader="zmq", prefetch_batches=1, **READING)
    expected = host_batches(requested, Consumer(0, 2, "none"))
    with opened("zmq", prefetch_batches=1) as batches:
        for images, labels in islice(expected, 2 * BATCHES):
            received = batches.next()
            time.sleep(0.05)
            assert np.array_equal(received[0], images)
            assert np.array_equal(received[1], labels)


@pytest.mark.timeout(20)
def test_a_rank_that_waits_for_its_producer_can_be_closed(monkeypatch):
    monkeypatch.setenv("DLPERF_STUDY_PRODUCERS", "127.0.0.1:9")
    before = {*threading.enumerate()}
    batches = _open("zmq", configuration(), Consumer(0, 1, "none"))
    time.sleep(0.1)
    batches.close()
    # Threads of earlier tests may end meanwhile.
    assert {*threading.enumerate()} <= before
