"""Which folder has images, and which set has the classes of a configuration."""

from pathlib import Path

import pytest

from dlperf_study.errors import ImageSetError
from dlperf_study.image_sets.opening import describe, open_image_set
from tests.image_sets import tiny


def test_a_folder_without_images_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    formats = "neither CIFAR-10's own files nor folders of JPEGs, one for each class"
    with pytest.raises(ImageSetError, match=f"^{tmp_path} has {formats}$"):
        open_image_set(tmp_path)


def test_a_path_that_is_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImageSetError, match=f"^there is no folder {tmp_path}/nowhere$"):
        open_image_set(tmp_path / "nowhere")
    archive = tmp_path / "cifar-10-python.tar.gz"
    archive.touch()
    with pytest.raises(ImageSetError, match=f"^{archive} is a file; unpack it, and name the folder$"):
        open_image_set(archive)


def test_a_description_says_what_is_there(tmp_path: Path) -> None:
    folder = tiny.class_folders(tmp_path)
    title = "folders of JPEGs, one for each class"
    assert describe(folder) == f"{folder}/train: {title}, 12 images in 3 classes, 12 of them decoded"


def test_the_number_of_classes_must_be_that_of_the_configuration(tmp_path: Path) -> None:
    image_set = open_image_set(tiny.class_folders(tmp_path))
    image_set.require_classes(3)
    with pytest.raises(ImageSetError, match=rf"^{tmp_path}/train has 3 classes, but classes is 10 in the config"):
        image_set.require_classes(10)
