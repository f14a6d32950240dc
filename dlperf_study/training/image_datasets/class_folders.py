"""A folder with one folder of JPEGs for each class, as ImageNet is unpacked: ``train/n01440764/n01440764_18.JPEG``.

Labels are the positions of the class folders in alphabetical order, as in the loaders of the libraries. Where there is
a folder ``train``, that is read.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dlperf_study.core.errors import ImageDatasetError
from dlperf_study.core.wording import counted
from dlperf_study.training.image_datasets._base import ImageDataset, ImageDatasetFormat

EXTENSIONS = (".jpeg", ".jpg")
TRAINING_FOLDER = "train"


class ClassFolders(ImageDataset):
    """Images in one folder for each class; ``files`` are their paths in the order of the labels."""

    def __init__(self, path: Path, classes: list[str], labels: Any, files: list[str]) -> None:
        super().__init__(path, classes, labels)
        self.files = files

    def location(self, index: int) -> str:
        """Return the file of an image."""
        return self.files[index]

    def image(self, index: int) -> Any:
        """Return an image in RGB; raises ImageDatasetError with its file."""
        return self._read(index, lambda image: image.convert("RGB"))

    def size(self, index: int) -> tuple[int, int]:
        """Return width and height by the header of an image."""
        width, height = self._read(index, lambda image: image.size)
        return width, height

    def _read(self, index: int, read: Callable[[Any], Any]) -> Any:
        from PIL import Image

        try:
            with Image.open(self.files[index]) as image:
                return read(image)
        # Pillow reports damaged files with several classes of exceptions.
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise ImageDatasetError(f"{self.location(index)} can't be decoded: {_reason(error)}") from error


def is_in(path: Path) -> bool:
    """Return whether a folder in it has a JPEG."""
    folders = [entry.path for entry in _entries(_training_folder(path)) if entry.is_dir()]
    return any(entry.name.lower().endswith(EXTENSIONS) for folder in folders for entry in _entries(Path(folder)))


def class_names(path: Path) -> list[str]:
    """Return the names of two or more class folders."""
    root = _training_folder(path)
    names = [entry.name for entry in _entries(root) if entry.is_dir()]
    if len(names) < 2:
        raise ImageDatasetError(f"{root} has {counted(len(names), 'class folder')}; training needs at least 2")
    return names


def open_class_folders(path: Path) -> ClassFolders:
    """Return the images of a folder of class folders; raises ImageDatasetError."""
    import numpy as np

    root, classes = _training_folder(path), class_names(path)
    files: list[str] = []
    counts: list[int] = []
    for name in classes:
        of_class = _jpegs(root / name)
        files.extend(of_class)
        counts.append(len(of_class))
    labels = np.repeat(np.arange(len(classes), dtype=np.int64), counts)
    return ClassFolders(root, classes, labels, files)


def _training_folder(path: Path) -> Path:
    if (path / TRAINING_FOLDER).is_dir():
        return path / TRAINING_FOLDER
    return path


def _jpegs(folder: Path) -> list[str]:
    """Return the files of one class, in alphabetical order."""
    files = []
    for entry in _entries(folder):
        if not entry.name.lower().endswith(EXTENSIONS):
            names = " or ".join(EXTENSIONS)
            raise ImageDatasetError(f"{entry.path} does not end in {names}; convert it to JPEG, or remove it")
        files.append(entry.path)
    if not files:
        raise ImageDatasetError(f"{folder} is an empty folder: a class needs at least one JPEG")
    return files


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    """Return what a folder has, sorted, without hidden files."""
    with os.scandir(folder) as entries:
        return sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)


def _reason(error: Exception) -> str:
    """Return what Pillow says, without the path."""
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return "it is not an image"
    return str(error)


FORMAT = ImageDatasetFormat(
    "class_folders", "folders of JPEGs, one for each class", is_in, class_names, open_class_folders
)
