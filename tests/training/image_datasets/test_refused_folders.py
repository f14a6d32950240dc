"""What is wrong with a folder of images, and that its message names it."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlperf_study.core.errors import ImageDatasetError
from dlperf_study.training.image_datasets import class_names, decode_some, open_image_dataset, require_classes
from tests.training.image_datasets import tiny


class _Command:
    def __reduce__(self) -> Any:
        return os.system, ("touch /nowhere/started",)


def rewritten(name: str, **changes: Any) -> Callable[[Path], Any]:
    """Return what changes a file of CIFAR-10."""
    return lambda folder: tiny.rewrite(folder / name, **changes)


def truncated(name: str, count: int) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:count])


def one_class(folder: Path) -> None:
    for name in ("bear", "chair"):
        (folder / "train" / name).rename(folder / name)


CIFAR10 = {
    "a label beyond the classes": rewritten("data_batch_2", labels=[0, 1, 3]),
    "a label that is text": rewritten("data_batch_2", labels=[0, "1", 2]),
    "a label too few": rewritten("data_batch_2", labels=[0, 1]),
    "no labels": rewritten("data_batch_4", labels=None),
    "images that are bytes": rewritten("data_batch_4", data=b"x"),
    "images of another size": rewritten("data_batch_1", data=np.zeros((3, 1024), np.uint8)),
    "names of classes that are text": rewritten("batches.meta", label_names="abc"),
    "no names of classes": rewritten("batches.meta", label_names=None),
    "a truncated file": truncated("data_batch_3", 500),
    "a missing file": lambda folder: (folder / "data_batch_3").unlink(),
    "a file that would start a program": lambda folder: (folder / "batches.meta").write_bytes(
        pickle.dumps({"label_names": _Command()}, protocol=2)
    ),
}
CLASS_FOLDERS = {
    "a class without images": lambda folder: (folder / "train" / "dog").mkdir(),
    "a file that is no JPEG": lambda folder: (folder / "train" / "bear" / "b.png").touch(),
    "one class": one_class,
    "a truncated image": truncated("train/bear/bear_3.JPEG", 700),
    "text in place of an image": lambda folder: (folder / "train/bear/bear_3.JPEG").write_bytes(b"no image at all"),
}
CASES = [
    *((tiny.cifar10, what, damage) for what, damage in CIFAR10.items()),
    *((tiny.class_folders, what, damage) for what, damage in CLASS_FOLDERS.items()),
]


@pytest.mark.parametrize(("make", "damage"), [pytest.param(make, damage, id=what) for make, what, damage in CASES])
def test_what_is_wrong_is_named(make, damage, tmp_path, refused):
    folder = make(tmp_path)
    damage(folder)
    with refused(ImageDatasetError):
        decode_some(open_image_dataset(folder), 12)


def test_an_image_that_is_gone_is_named(tmp_path, refused):
    image_dataset = open_image_dataset(tiny.class_folders(tmp_path))
    Path(image_dataset.location(7)).unlink()
    with refused(ImageDatasetError):
        decode_some(image_dataset, 12)


@pytest.mark.parametrize("read", [open_image_dataset, class_names])
def test_a_path_that_is_no_folder_of_images_is_named(read, tmp_path, refused):
    (tmp_path / "empty" / "folder").mkdir(parents=True)
    (tmp_path / "archive.tar.gz").touch()
    for name in ("empty", "nowhere", "archive.tar.gz"):
        with refused(ImageDatasetError):
            read(tmp_path / name)


def test_the_number_of_classes_must_be_that_of_the_configuration(tmp_path, refused):
    require_classes(tmp_path, 3, 3)
    with refused(ImageDatasetError):
        require_classes(tmp_path, 3, 10)


def test_a_damaged_image_between_those_that_are_decoded_is_not_noticed(tmp_path):
    image_dataset = open_image_dataset(tiny.class_folders(tmp_path))
    assert decode_some(image_dataset, 100) == 12
    Path(image_dataset.location(11)).write_bytes(b"")
    assert decode_some(image_dataset, 4) == 4
    Path(image_dataset.location(9)).write_bytes(b"")
    with pytest.raises(ImageDatasetError, match=r"chair_1\.JPEG"):
        decode_some(image_dataset, 4)
