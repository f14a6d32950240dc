"""Loads batches by tf.data, in a process without Paddle, next to those without workers; prints JSON.

    tensorflow_batches.py FOLDER...

For each folder of images: whether the labels are the same, and how far images differ, in steps of a pixel's value.
"""

import json
import os
import sys
from contextlib import closing
from typing import Any

import numpy as np

from dlperf_study.core.errors import ImageDatasetError
from dlperf_study.training import data_loaders
from dlperf_study.training.data_loaders._base import Consumer
from dlperf_study.training.data_loaders._samples import DEVIATION, LARGEST_VALUE
from dlperf_study.training.image_datasets._base import FOLDER_VARIABLE
from tests.evidence_factory import configuration

BATCHES = 6
READING = {"image_dataset": "pictures", "image_size": 16, "classes": 3, "batch_per_device": 3, "devices_per_node": 2}


def batches(source: str, workers: int, rank: int = 0) -> list[tuple[Any, Any]]:
    workers_of_source = {} if source == "synthetic_host" else {"data_workers": workers}
    requested = configuration(data_loader=source, **workers_of_source, **READING)
    with closing(data_loaders.load(source).open(requested, Consumer(rank, 2, "tensorflow"))) as opened:
        loaded = [opened.next() for _ in range(BATCHES)]
    return [(np.asarray(images), np.asarray(labels)) for images, labels in loaded]


def compared(source: str, rank: int) -> dict[str, Any]:
    """Return how the batches of two workers differ from those without workers."""
    steps, labels_are_same = [], []
    scale = np.array(DEVIATION).reshape(3, 1, 1) * LARGEST_VALUE
    for ours, expected in zip(batches(source, 2, rank), batches(source, 0, rank), strict=True):
        assert ours[0].dtype == expected[0].dtype == np.float32
        assert ours[0].shape == expected[0].shape
        steps.append(np.abs(ours[0] - expected[0]) * scale)
        labels_are_same.append(ours[1].dtype == np.int64 and ours[1].tolist() == expected[1].tolist())
    return {"labels": all(labels_are_same), "mean": float(np.mean(steps)), "largest": float(np.max(steps))}


def made_by_the_library() -> dict[str, Any]:
    """Return whether the values of TensorFlow follow from the rank, and their spread."""
    (first, labels), (second, _), *_ = batches("synthetic_host", 0)
    again, of_second_rank = batches("synthetic_host", 0), batches("synthetic_host", 0, rank=1)
    return {
        "new": not np.array_equal(first, second) and not np.array_equal(first, of_second_rank[0][0]),
        "repeated": np.array_equal(second, again[1][0]),
        "deviation": float(first.std()),
        "labels": labels.dtype == np.int64 and bool((labels >= 0).all() and (labels < READING["classes"]).all()),
    }


def failure() -> str:
    try:
        batches("files", 2)
    except ImageDatasetError as error:
        return str(error)
    return "none"


if __name__ == "__main__":
    results = {}
    *folders, broken = sys.argv[1:]
    for folder in folders:
        os.environ[FOLDER_VARIABLE] = folder
        results[folder] = {
            "first": compared("files", rank=0),
            "second": compared("files", rank=1),
            "in_python": compared("python_dataset", rank=0),
        }
    os.environ[FOLDER_VARIABLE] = broken
    print(json.dumps({**results, "failure": failure(), "host": made_by_the_library()}))
