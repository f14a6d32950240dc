"""Batches that tf.data loads, next to those without workers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dlperf_study.core.paths import PROJECT
from dlperf_study.training.frameworks._tensorflow import WITHOUT_KERAS_3
from tests.training.image_datasets import tiny

PROGRAM = Path(__file__).with_name("tensorflow_batches.py")
FORMATS = ("class_folders", "cifar10")

pytestmark = pytest.mark.needs("tensorflow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an image dataset of each format, and one whose JPEGs are none."""
    folder = tmp_path_factory.mktemp("images")
    for name in FORMATS:
        getattr(tiny, name)(folder / name)
    for file in tiny.class_folders(folder / "broken").rglob("*.JPEG"):
        file.write_bytes(b"x")
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Any]:
    """What the program prints of them."""
    folders = [str(folder / name) for name in (*FORMATS, "broken")]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *folders],
        env={**os.environ, **WITHOUT_KERAS_3, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", FORMATS)
def test_labels_are_the_same_and_pixels_differ_by_the_rounding_of_the_decoder(results, folder, name):
    of_format = results[str(folder / name)]
    for rank in ("first", "second"):
        assert of_format[rank]["labels"]
        assert of_format[rank]["largest"] < 1.01
        assert 0 < of_format[rank]["mean"] < 0.3
    # Samples of Python need no decoder.
    assert of_format["in_python"] == {"labels": True, "mean": 0.0, "largest": 0.0}


def test_values_of_tensorflow_are_new_in_every_step_and_follow_from_seed_and_rank(results):
    host = results["host"]
    assert (host["new"], host["repeated"], host["labels"]) == (True, True, True)
    assert host["deviation"] == pytest.approx(1, abs=0.05)


def test_a_broken_image_is_named(results, folder):
    assert results["failure"].startswith(f"{folder / 'broken' / 'train'}/")
    assert results["failure"].endswith(".JPEG can't be decoded: it is not an image")
