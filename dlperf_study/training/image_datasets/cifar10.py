"""CIFAR-10's own files: pickles of 32 x 32 images, as the original archive unpacks them.

A batch has ``data``, uint8 [N, 3072] with the red, green and blue plane of each image, and ``labels``, a list of N
integers. ``batches.meta`` has ``label_names``, the names of the classes. What is written here, the readers of the
libraries can read too.
"""

import pickle
from pathlib import Path
from typing import Any, ClassVar

from dlperf_study.core.errors import ImageDatasetError
from dlperf_study.training.image_datasets._base import ImageDataset, ImageDatasetFormat

#: The folder in the original archive.
FOLDER = "cifar-10-batches-py"
META = "batches.meta"
TRAINING_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST_BATCH = "test_batch"
SIDE = 32
ROW_BYTES = 3 * SIDE * SIDE
#: What a pickled array is made of, and all that a file of this format may name.
_ALLOWED = {
    *(("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct")),
    *(("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")),
}
#: A list of Pillow images for each class.
Labelled = list[list[Any]]
#: The implementation in Python: only that one can be told how to write a type.
_Pickler: Any = pickle._Pickler


class Cifar10(ImageDataset):
    """Images of 32 x 32 pixels in memory; ``files`` has the file and the number of images of each batch."""

    def __init__(self, path: Path, classes: list[str], labels: Any, rows: Any, files: list[tuple[Path, int]]) -> None:
        super().__init__(path, classes, labels)
        self._rows, self._files = rows, files

    def location(self, index: int) -> str:
        """Return the batch of an image and its row."""
        for file, count in self._files:
            if index < count:
                return f"{file} row {index}"
            index -= count
        raise IndexError(index)

    def image(self, index: int) -> Any:
        """Return an image as a Pillow image in RGB."""
        from PIL import Image

        return Image.fromarray(self._rows[index].reshape(3, SIDE, SIDE).transpose(1, 2, 0))


def is_in(path: Path) -> bool:
    """Return whether a folder has a file of CIFAR-10."""
    names = (META, *TRAINING_BATCHES)
    return any((folder / name).is_file() for folder in (path, path / FOLDER) for name in names)


def class_names(path: Path) -> list[str]:
    """Return the names of the classes; raises ImageDatasetError."""
    file = _folder(path) / META
    names = _values(file, "label_names")[0]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ImageDatasetError(f"{file}: label_names is {names!r:.80}, which is not a list of names")
    return names


def open_cifar10(path: Path) -> Cifar10:
    """Return the images of the training batches; raises ImageDatasetError."""
    import numpy as np

    folder, classes = _folder(path), class_names(path)
    batches = [_batch(folder / name, len(classes)) for name in TRAINING_BATCHES]
    rows, labels = zip(*batches, strict=True)
    files = [(folder / name, len(images)) for name, images in zip(TRAINING_BATCHES, rows, strict=True)]
    return Cifar10(folder, classes, np.concatenate(labels), np.concatenate(rows), files)


def _folder(path: Path) -> Path:
    if (path / FOLDER).is_dir():
        return path / FOLDER
    return path


def _batch(file: Path, classes: int) -> tuple[Any, Any]:
    """Return rows [N, 3072] uint8 and labels [N] int64."""
    import numpy as np

    rows, labels = _values(file, "data", "labels")
    if not isinstance(rows, np.ndarray) or rows.dtype != np.uint8 or rows.shape[1:] != (ROW_BYTES,):
        shape = f"{rows.dtype} {list(rows.shape)}" if isinstance(rows, np.ndarray) else type(rows).__name__
        raise ImageDatasetError(f"{file}: data is {shape}, which is not uint8 [N, {ROW_BYTES}]")
    if not isinstance(labels, list) or len(labels) != len(rows):
        count = len(labels) if isinstance(labels, list) else repr(labels)
        raise ImageDatasetError(f"{file}: labels are {count}, but data has {len(rows)} images")
    if not labels:
        raise ImageDatasetError(f"{file} has no images")
    for row, label in enumerate(labels):
        if type(label) is not int or not 0 <= label < classes:
            raise ImageDatasetError(f"{file} row {row}: the label is {label!r}; it must be from 0 to {classes - 1}")
    return rows, np.array(labels, dtype=np.int64)


def _values(file: Path, *names: str) -> list[Any]:
    """Return values by name, of bytes or of strings."""
    content = _unpickled(file)
    if not isinstance(content, dict):
        raise ImageDatasetError(f"{file} has no mapping, but {type(content).__name__}")
    by_name = {key.decode() if isinstance(key, bytes) else key: value for key, value in content.items()}
    if missing := [name for name in names if name not in by_name]:
        raise ImageDatasetError(f"{file} has no {missing[0]}; it has {', '.join(map(str, by_name)) or 'nothing'}")
    return [by_name[name] for name in names]


def _unpickled(file: Path) -> Any:
    try:
        with file.open("rb") as stream:
            return _ArrayUnpickler(stream, encoding="latin1").load()
    except FileNotFoundError:
        raise ImageDatasetError(f"there is no file {file}") from None
    except ImageDatasetError as error:
        raise ImageDatasetError(f"{file} {error}") from None
    # A damaged pickle can raise nearly everything.
    except Exception as error:
        raise ImageDatasetError(f"{file} can't be read as a pickle: {error or type(error).__name__}") from error


class _ArrayUnpickler(pickle.Unpickler):
    """Reads what CIFAR-10 has and nothing else: a pickle may otherwise start any program."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a part of an array; raises ImageDatasetError otherwise."""
        if (module, name) not in _ALLOWED:
            raise ImageDatasetError(f"names {module}.{name}, which is no part of CIFAR-10")
        return super().find_class(module, name)


def write_cifar10(folder: Path, classes: tuple[str, ...], training: Labelled, validation: Labelled) -> None:
    """Write images: every batch has images of every class."""
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
    """Return an image as red, green and blue plane."""
    import numpy as np

    return np.asarray(image.resize((SIDE, SIDE))).transpose(2, 0, 1).reshape(-1)


def _pickle_as_python_2(content: dict[bytes, Any], file: Path) -> None:
    """Write strings as the original has them."""
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


FORMAT = ImageDatasetFormat("cifar10", "CIFAR-10's own files", is_in, class_names, open_cifar10)
