"""Image datasets of a few small images, in every format."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dlperf_study.training.image_datasets._photographs import write_class_folders
from dlperf_study.training.image_datasets.cifar10 import FOLDER, write_cifar10

CLASSES = ("apple", "bear", "chair")
#: Enough for every batch of CIFAR-10 to have one.
PER_CLASS = 4


def images() -> list[list[Image.Image]]:
    """Return a list of images for each class, each image different."""
    generator = np.random.default_rng(1)
    pixels = generator.integers(0, 256, (len(CLASSES), PER_CLASS, 6, 8, 3), dtype=np.uint8)
    return [[Image.fromarray(image).resize((64, 48)) for image in of_class] for of_class in pixels]


def class_folders(folder: Path) -> Path:
    write_class_folders(folder / "train", CLASSES, images())
    return folder


def cifar10(folder: Path) -> Path:
    write_cifar10(folder, CLASSES, images(), images())
    return folder / FOLDER


def rewrite(file: Path, **changes: Any) -> None:
    """Change values of a file of CIFAR-10; None removes one."""
    content = pickle.loads(file.read_bytes(), encoding="bytes")
    content |= {name.encode(): value for name, value in changes.items()}
    kept = {name: value for name, value in content.items() if value is not None}
    file.write_bytes(pickle.dumps(kept, protocol=2))
