"""Which folder has images, and which set has the classes of a configuration."""

from pathlib import Path

import pytest

from dlperf_study.errors import ImageSetError
from dlperf_study.image_sets.opening import class_names, describe, open_image_set, require_classes
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


def test_classes_are_known_without_opening_every_image(tmp_path: Path) -> None:
    folder = tiny.class_folders(tmp_path / "jpegs")
    (folder / "train" / "bear" / "b.png").touch()
    for path in (folder, tiny.cifar10(tmp_path / "cifar10")):
        assert class_names(path) == list(tiny.CLASSES)
    with pytest.raises(ImageSetError, match=rf"^there is no folder {tmp_path}/nowhere$"):
        class_names(tmp_path / "nowhere")


def test_the_number_of_classes_must_be_that_of_the_configuration(tmp_path: Path) -> None:
    require_classes(tmp_path, 3, 3)
    with pytest.raises(ImageSetError, match=rf"^{tmp_path} has 3 classes, but classes is 10; give classes: 3, or "):
        require_classes(tmp_path, 3, 10)
