"""A set of labelled images that is open, and what a format declares. Standard library only at import."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlperf_study.core.wording import counted

#: Training processes find the folder of their images in this variable.
FOLDER_VARIABLE = "DLPERF_STUDY_IMAGES"


class ImageDataset(ABC):
    """Labelled images in one folder.

    ``classes`` are the names of the classes in the order of their labels, ``labels`` is an int64 array with the label
    of each image.
    """

    def __init__(self, path: Path, classes: Sequence[str], labels: Any) -> None:
        self.path, self.classes, self.labels = path, tuple(classes), labels

    def __len__(self) -> int:
        return len(self.labels)

    @abstractmethod
    def location(self, index: int) -> str:
        """Return the file of an image, and its place there."""

    @abstractmethod
    def image(self, index: int) -> Any:
        """Return an image in RGB; raises ImageDatasetError."""

    @property
    def summary(self) -> str:
        """Its size: ``640 images in 10 classes``."""
        return f"{counted(len(self), 'image')} in {len(self.classes)} classes"


@dataclass(frozen=True)
class ImageDatasetFormat:
    """How images and labels are kept in a folder.

    ``title`` names it for readers. ``is_in(path)`` returns whether a folder looks like one. ``class_names(path)``
    returns the classes without looking at every image; ``open(path)`` returns the images for training. Both raise
    ImageDatasetError for the first thing that is wrong with the folder.
    """

    name: str
    title: str
    is_in: Callable[[Path], bool]
    class_names: Callable[[Path], list[str]]
    open: Callable[[Path], ImageDataset]
