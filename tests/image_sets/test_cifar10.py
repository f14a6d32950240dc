"""CIFAR-10's own files."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlperf_study.errors import ImageSetError
from dlperf_study.image_sets.opening import open_image_set
from tests.image_sets import tiny


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.cifar10(tmp_path)


def test_the_folder_and_the_one_above_it_are_the_same_set(folder: Path) -> None:
    for path in (folder, folder.parent):
        image_set = open_image_set(path)
        assert (image_set.path, image_set.classes, len(image_set)) == (folder, tiny.CLASSES, 12)


def test_images_are_those_that_were_written(folder: Path) -> None:
    image_set = open_image_set(folder)
    written = [np.asarray(image.resize((32, 32))) for of_class in tiny.images() for image in of_class]
    # Image k of all is in batch k % 5, and the batches are read one after another.
    order = [*range(0, 12, 5), *range(1, 12, 5), *range(2, 12, 5), *range(3, 12, 5), *range(4, 12, 5)]
    for index, position in enumerate(order):
        assert np.array_equal(np.asarray(image_set.image(index)), written[position])
        assert image_set.labels[index] == position // tiny.PER_CLASS
    assert image_set.location(4) == f"{folder}/data_batch_2 row 1"


@pytest.mark.parametrize("encoding", ["bytes", "latin1"])
def test_the_readers_of_the_libraries_can_read_what_is_written(folder: Path, encoding: str) -> None:
    """PaddlePaddle reads with the one encoding, torchvision with the other."""
    content = pickle.loads((folder / "data_batch_1").read_bytes(), encoding=encoding)
    names = {"batch_label", "labels", "data", "filenames"}
    assert set(content) == (names if encoding == "latin1" else {name.encode() for name in names})
    data = content["data" if encoding == "latin1" else b"data"]
    assert (data.dtype, data.shape) == (np.dtype("uint8"), (3, 3072))


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("data_batch_2", {"labels": [0, 1, 3]}, r"data_batch_2 row 2: the label is 3; it must be from 0 to 2"),
        ("data_batch_2", {"labels": [0, "1", 2]}, r"data_batch_2 row 1: the label is '1'; it must be from 0 to 2"),
        ("data_batch_2", {"labels": [0, 1]}, r"data_batch_2: labels are 2, but data has 3 images"),
        ("data_batch_4", {"labels": None}, r"data_batch_4 has no labels; it has batch_label, data, filenames"),
        ("data_batch_4", {"data": b"x"}, r"data_batch_4: data is bytes, which is not uint8 \[N, 3072\]"),
        ("batches.meta", {"label_names": "abc"}, r"batches\.meta: label_names is 'abc', which is not a list of names"),
        ("batches.meta", {"label_names": None}, r"batches\.meta has no label_names; it has num_vis"),
    ],
)
def test_a_wrong_file_is_named_with_its_value(folder: Path, file: str, changes: dict[str, Any], message: str) -> None:
    tiny.rewrite(folder / file, **changes)
    with pytest.raises(ImageSetError, match=message):
        open_image_set(folder)


def test_images_of_another_size_are_refused(folder: Path) -> None:
    tiny.rewrite(folder / "data_batch_1", data=np.zeros((3, 1024), np.uint8))
    with pytest.raises(ImageSetError, match=r"data_batch_1: data is uint8 \[3, 1024\], which is not uint8 \[N, 3072\]"):
        open_image_set(folder)


def test_a_missing_and_a_truncated_file_are_named(folder: Path) -> None:
    file = folder / "data_batch_3"
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(ImageSetError, match=rf"^{file} can't be read as a pickle: "):
        open_image_set(folder)
    file.unlink()
    with pytest.raises(ImageSetError, match=rf"^there is no file {file}$"):
        open_image_set(folder)


class _Command:
    def __reduce__(self) -> Any:
        return os.system, ("touch /nowhere/started",)


def test_a_file_that_would_start_a_program_is_refused(folder: Path) -> None:
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": _Command()}, protocol=2))
    with pytest.raises(ImageSetError, match=r"batches\.meta names posix\.system, which is no part of CIFAR-10"):
        open_image_set(folder)
