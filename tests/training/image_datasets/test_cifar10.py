"""CIFAR-10's own files."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from dlperf_study.training.image_datasets import open_image_dataset
from tests.training.image_datasets import tiny


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.cifar10(tmp_path)


def test_the_folder_and_the_one_above_it_are_the_same_set(folder):
    for path in (folder, folder.parent):
        image_dataset = open_image_dataset(path)
        assert (image_dataset.path, image_dataset.classes, len(image_dataset)) == (folder, tiny.CLASSES, 12)


def test_images_are_those_that_were_written(folder):
    image_dataset = open_image_dataset(folder)
    written = [np.asarray(image.resize((32, 32))) for of_class in tiny.images() for image in of_class]
    # Image k of all is in batch k % 5, and the batches are read one after another.
    order = [*range(0, 12, 5), *range(1, 12, 5), *range(2, 12, 5), *range(3, 12, 5), *range(4, 12, 5)]
    for index, position in enumerate(order):
        assert np.array_equal(np.asarray(image_dataset.image(index)), written[position])
        assert image_dataset.labels[index] == position // tiny.PER_CLASS
    assert image_dataset.location(4) == f"{folder}/data_batch_2 row 1"


@pytest.mark.parametrize("encoding", ["bytes", "latin1"])
def test_the_readers_of_the_libraries_can_read_what_is_written(folder, encoding):
    """PaddlePaddle reads with the one encoding, torchvision with the other."""
    content = pickle.loads((folder / "data_batch_1").read_bytes(), encoding=encoding)
    names = {"batch_label", "labels", "data", "filenames"}
    assert set(content) == (names if encoding == "latin1" else {name.encode() for name in names})
    data = content["data" if encoding == "latin1" else b"data"]
    assert (data.dtype, data.shape) == (np.dtype("uint8"), (3, 3072))
