"""Folders of JPEGs, one for each class."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dlperf_study.errors import ImageSetError
from dlperf_study.image_sets.opening import decode_some, open_image_set
from tests.image_sets import tiny


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.class_folders(tmp_path / "pictures")


def test_labels_are_the_positions_of_the_folders_in_alphabetical_order(folder: Path) -> None:
    image_set = open_image_set(folder)
    assert (image_set.classes, len(image_set)) == (tiny.CLASSES, 12)
    assert image_set.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert image_set.summary == "12 images in 3 classes"
    assert [Path(image_set.location(index)).parent.name for index in (0, 4, 11)] == ["apple", "bear", "chair"]


def test_an_image_is_the_one_of_its_file_in_colours(folder: Path) -> None:
    image_set = open_image_set(folder)
    with Image.open(image_set.location(5)) as image:
        expected = np.asarray(image)
    assert np.array_equal(np.asarray(image_set.image(5)), expected)
    Image.new("L", (20, 30), 7).save(image_set.location(0))
    assert np.asarray(image_set.image(0)).shape == (30, 20, 3)


def test_without_a_folder_train_the_folder_itself_is_read(folder: Path) -> None:
    assert open_image_set(folder / "train").path == open_image_set(folder).path == folder / "train"


def test_hidden_files_are_no_images(folder: Path) -> None:
    (folder / "train" / ".listing").touch()
    (folder / "train" / "bear" / ".listing").touch()
    assert len(open_image_set(folder)) == 12


def test_a_broken_jpeg_is_named(folder: Path) -> None:
    image_set = open_image_set(folder)
    file = Path(image_set.location(7))
    file.write_bytes(file.read_bytes()[:700])
    with pytest.raises(ImageSetError, match=rf"^{file} can't be decoded: .*truncated"):
        decode_some(image_set, 12)
    file.write_bytes(b"no image at all")
    with pytest.raises(ImageSetError, match=rf"^{file} can't be decoded: it is no image$"):
        decode_some(image_set, 12)
    file.unlink()
    with pytest.raises(ImageSetError, match=rf"^{file} can't be decoded: .*No such file"):
        decode_some(image_set, 12)


def test_some_images_are_decoded_evenly_spaced(folder: Path) -> None:
    image_set = open_image_set(folder)
    assert decode_some(image_set, 100) == 12
    Path(image_set.location(11)).write_bytes(b"")
    assert decode_some(image_set, 4) == 4
    Path(image_set.location(9)).write_bytes(b"")
    with pytest.raises(ImageSetError, match=r"chair_1\.JPEG can't be decoded: it is no image"):
        decode_some(image_set, 4)


def test_a_class_without_images_is_named(folder: Path) -> None:
    (folder / "train" / "dog").mkdir()
    with pytest.raises(ImageSetError, match=r"dog is an empty folder: a class needs at least one JPEG"):
        open_image_set(folder)


def test_a_file_that_is_no_jpeg_is_named(folder: Path) -> None:
    (folder / "train" / "bear" / "b.png").touch()
    with pytest.raises(ImageSetError, match=r"bear/b\.png is no JPEG by its name; names end in \.jpeg, \.jpg"):
        open_image_set(folder)


def test_one_class_is_not_enough(tmp_path: Path) -> None:
    (tmp_path / "only").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "only" / "a.jpg")
    with pytest.raises(ImageSetError, match=r"has 1 class folder; training needs at least 2"):
        open_image_set(tmp_path)
