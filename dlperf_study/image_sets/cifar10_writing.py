"""Write images as CIFAR-10's own files, which the readers of the libraries can read too."""

import pickle
from pathlib import Path
from typing import Any, ClassVar

from dlperf_study.image_sets.formats.cifar10 import FOLDER, META, SIDE, TEST_BATCH, TRAINING_BATCHES

#: A list of Pillow images for each class.
Labelled = list[list[Any]]
#: The implementation in Python: only that one can be told how to write a type.
_Pickler: Any = pickle._Pickler


def write_cifar10(folder: Path, classes: tuple[str, ...], training: Labelled, validation: Labelled) -> None:
    """Write images, a list of each class, as CIFAR-10 keeps them: every batch has images of every class."""
    inner = folder / FOLDER
    inner.mkdir(parents=True)
    labelled = _labelled(training)
    for first, name in enumerate(TRAINING_BATCHES):
        _write_batch(inner / name, labelled[first :: len(TRAINING_BATCHES)])
    _write_batch(inner / TEST_BATCH, _labelled(validation))
    names = [name.encode() for name in classes]
    _pickle_as_python_2({b"label_names": names, b"num_vis": 3 * SIDE * SIDE}, inner / META)


def _labelled(images: Labelled) -> list[tuple[int, Any]]:
    """Return (label, image) of all classes."""
    labelled: list[tuple[int, Any]] = []
    for label, of_class in enumerate(images):
        labelled.extend((label, image) for image in of_class)
    return labelled


def _write_batch(file: Path, labelled: list[tuple[int, Any]]) -> None:
    import numpy as np

    rows = np.stack([_row(image) for _, image in labelled])
    labels = [label for label, _ in labelled]
    content = {b"batch_label": file.name.encode(), b"labels": labels, b"data": rows, b"filenames": []}
    _pickle_as_python_2(content, file)


def _row(image: Any) -> Any:
    """Return an image of 32 x 32 pixels as CIFAR-10 has it: its red, green and blue plane one after another."""
    import numpy as np

    return np.asarray(image.resize((SIDE, SIDE))).transpose(2, 0, 1).reshape(-1)


def _pickle_as_python_2(content: dict[bytes, Any], file: Path) -> None:
    """Write as the original was: readers of CIFAR-10 take its strings for bytes, or for text in Latin-1."""
    with file.open("wb") as stream:
        _Python2Pickler(stream, protocol=2).dump(content)


class _Python2Pickler(_Pickler):  # type: ignore[misc]
    """Writes bytes as strings of Python 2, which pickles of Python 3 don't have."""

    dispatch: ClassVar[dict[Any, Any]] = dict(_Pickler.dispatch)

    def _save_string(self, content: bytes) -> None:
        is_short = len(content) < 256
        length = bytes([len(content)]) if is_short else len(content).to_bytes(4, "little")
        self.write((pickle.SHORT_BINSTRING if is_short else pickle.BINSTRING) + length + content)
        self.memoize(content)

    dispatch[bytes] = _save_string
