"""The set that is cut from the photographs of a package."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from dlperf_study.__main__ import main
from dlperf_study.training.image_datasets import _photographs, open_image_dataset


@pytest.fixture(autouse=True)
def few_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_photographs, "IMAGES_PER_CLASS", 5)
    monkeypatch.setattr(_photographs, "VALIDATION_IMAGES_PER_CLASS", 1)


def test_both_formats_have_the_same_images_and_every_call_makes_the_same(tmp_path):
    as_jpegs, as_cifar10 = map(open_image_dataset, _photographs.make_photographs(tmp_path))
    assert as_jpegs.classes == as_cifar10.classes == tuple(sorted(_photographs.PHOTOGRAPHS))
    assert len(as_jpegs) == len(as_cifar10) == 50
    digest = _digest(tmp_path)
    _photographs.make_photographs(tmp_path)
    assert _digest(tmp_path) == digest
    # The first image of the first class is the first in both; JPEG changes pixels a little.
    small = np.asarray(as_jpegs.image(0).resize((32, 32)), dtype=float)
    assert np.abs(small - np.asarray(as_cifar10.image(0), dtype=float)).mean() < 2


def _digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert files
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()


def test_an_interrupted_call_leaves_no_set(tmp_path, monkeypatch):
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_photographs, "write_class_folders", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _photographs.make_photographs(tmp_path)
    assert not (tmp_path / _photographs.AS_JPEGS).exists()


def test_the_command_makes_the_sets_and_examines_a_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("dlperf_study.cli.measuring.image_datasets_folder", lambda: tmp_path)
    assert main(["make-data"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("image datasets: photographs, photographs_cifar10; ")
    assert main(["make-data", str(tmp_path / "photographs")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "50 images in 10 classes, 50 of them decoded" in lines[0]
    assert lines[1].startswith(f"image dataset: {tmp_path}/photographs; ")
    next((tmp_path / "photographs" / "train" / "chelsea").iterdir()).write_bytes(b"x")
    assert main(["make-data", str(tmp_path / "photographs")]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert "can't be decoded: it is not an image" in errors[0]
