"""Folders of JPEGs, one for each class."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dlperf_study.training.image_datasets import class_names, describe, open_image_dataset
from tests.training.image_datasets import tiny


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.class_folders(tmp_path / "pictures")


def test_labels_are_the_positions_of_the_folders_in_alphabetical_order(folder):
    image_dataset = open_image_dataset(folder)
    assert (image_dataset.classes, len(image_dataset)) == (tiny.CLASSES, 12)
    assert image_dataset.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert image_dataset.summary == "12 images in 3 classes"
    assert [Path(image_dataset.location(index)).parent.name for index in (0, 4, 11)] == ["apple", "bear", "chair"]


def test_an_image_is_the_one_of_its_file_in_colours(folder):
    image_dataset = open_image_dataset(folder)
    with Image.open(image_dataset.location(5)) as image:
        expected = np.asarray(image)
    assert np.array_equal(np.asarray(image_dataset.image(5)), expected)
    Image.new("L", (20, 30), 7).save(image_dataset.location(0))
    assert np.asarray(image_dataset.image(0)).shape == (30, 20, 3)


def test_hidden_files_are_no_images_and_without_train_the_folder_itself_is_read(folder):
    assert open_image_dataset(folder / "train").path == open_image_dataset(folder).path == folder / "train"
    (folder / "train" / ".listing").touch()
    (folder / "train" / "bear" / ".listing").touch()
    assert len(open_image_dataset(folder)) == 12


def test_a_description_says_what_is_there(tmp_path, snapshot):
    folder = tiny.class_folders(tmp_path)
    assert describe(folder) == snapshot


def test_classes_are_known_without_opening_every_image(tmp_path):
    folder = tiny.class_folders(tmp_path / "jpegs")
    (folder / "train" / "bear" / "b.png").touch()
    for path in (folder, tiny.cifar10(tmp_path / "cifar10")):
        assert class_names(path) == list(tiny.CLASSES)
