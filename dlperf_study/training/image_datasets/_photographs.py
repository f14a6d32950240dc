"""A small set of labelled images, cut from the photographs that scikit-image ships: nothing is downloaded.

A class is one photograph. Its images are cut from random positions, in sizes around the mean of ImageNet, which is
about 400 x 350 pixels. The same images, scaled to 32 x 32, are written as CIFAR-10's own files.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dlperf_study.core.paths import image_datasets_folder
from dlperf_study.training.image_datasets.cifar10 import write_cifar10
from dlperf_study.training.image_datasets.class_folders import TRAINING_FOLDER

#: The functions of ``skimage.data``. All are in the public domain or CC0, as their documentation says.
PHOTOGRAPHS = (
    *("astronaut", "brick", "camera", "chelsea", "coffee"),
    *("grass", "gravel", "hubble_deep_field", "retina", "rocket"),
)
IMAGES_PER_CLASS, VALIDATION_IMAGES_PER_CLASS = 64, 16
VALIDATION_FOLDER = "val"
#: The names of the two sets, which are those of their folders.
AS_JPEGS, AS_CIFAR10 = "photographs", "photographs_cifar10"
#: The shortest and the longest side of a cut, in pixels; no photograph is smaller.
SIDES = (240, 512)
JPEG_QUALITY = 90
SEED = 0

Cuts = list[list[Any]]


def make_photographs(folder: Path) -> tuple[Path, Path]:
    """Write the set in both formats; return both folders."""
    # The images are the same in every call. Each folder is complete or not there, also after an interrupt.
    import numpy as np

    generator = np.random.default_rng(SEED)
    photographs = list(map(_photograph, PHOTOGRAPHS))
    training = [_cuts(photograph, IMAGES_PER_CLASS, generator) for photograph in photographs]
    validation = [_cuts(photograph, VALIDATION_IMAGES_PER_CLASS, generator) for photograph in photographs]
    with _replaced(folder / AS_JPEGS) as as_jpegs:
        write_class_folders(as_jpegs / TRAINING_FOLDER, PHOTOGRAPHS, training)
        write_class_folders(as_jpegs / VALIDATION_FOLDER, PHOTOGRAPHS, validation)
    with _replaced(folder / AS_CIFAR10) as as_cifar10:
        write_cifar10(as_cifar10, PHOTOGRAPHS, training, validation)
    return folder / AS_JPEGS, folder / AS_CIFAR10


def made_image_datasets() -> dict[str, str]:
    """Return where ``make data`` writes each set."""
    return {name: str(image_datasets_folder() / name) for name in (AS_JPEGS, AS_CIFAR10)}


@contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """Yield an empty folder that replaces ``path`` at the end."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    for leftover in (unfinished, path):
        if leftover.exists():
            shutil.rmtree(leftover)
    unfinished.mkdir(parents=True)
    yield unfinished
    unfinished.rename(path)


def write_class_folders(folder: Path, classes: tuple[str, ...], images: Cuts) -> None:
    """Write images, a list of each class, as JPEGs: ``<class>/<class>_<index>.JPEG``."""
    for name, of_class in zip(classes, images, strict=True):
        (folder / name).mkdir(parents=True)
        for index, image in enumerate(of_class):
            image.save(folder / name / f"{name}_{index}.JPEG", quality=JPEG_QUALITY)


def _photograph(name: str) -> Any:
    """Return a photograph in RGB; some are grey."""
    import skimage.data
    from PIL import Image

    return Image.fromarray(getattr(skimage.data, name)()).convert("RGB")


def _cuts(photograph: Any, count: int, generator: Any) -> list[Any]:
    cuts = []
    for _ in range(count):
        width, height = (generator.integers(SIDES[0], min(SIDES[1], side) + 1) for side in photograph.size)
        left = generator.integers(0, photograph.width - width + 1)
        top = generator.integers(0, photograph.height - height + 1)
        cuts.append(photograph.crop((left, top, left + width, top + height)))
    return cuts
