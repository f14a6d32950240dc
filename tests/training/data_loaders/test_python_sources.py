"""Batches from a Python generator and from a Python dataset: the same ones, and one message when their maker ends."""

import threading
import time
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.training import data_loaders
from dlperf_study.training.data_loaders import python_dataset
from dlperf_study.training.data_loaders._base import Batches, Consumer
from dlperf_study.training.data_loaders._host_batches import MadeUpSamples, QueuedBatches
from tests.evidence_factory import configuration

SMALL = {"image_size": 16, "classes": 10, "batch_per_device": 3}


def opened(name: str, rank: int = 0, **changes: Any) -> "closing[Batches]":
    requested = configuration(data_loader=name, **{**SMALL, **changes})
    return closing(data_loaders.load(name).open(requested, Consumer(rank, 2, "paddle")))


def first_batches(name: str, count: int = 4, **changes: Any) -> list[list[Any]]:
    with opened(name, **changes) as batches:
        return [[np.asarray(array).tolist() for array in batches.next()] for _ in range(count)]


def test_a_generator_and_a_dataset_deliver_the_same_batches():
    expected = first_batches("python_queue")
    assert first_batches("python_dataset", data_workers=0) == expected
    assert first_batches("python_dataset", data_workers=1) == expected
    assert first_batches("python_queue", rank=1) != expected
    assert first_batches("python_queue", seed=1) != expected


def test_made_up_images_have_mean_0_and_variance_1():
    samples = MadeUpSamples(configuration(**SMALL))
    images, labels = samples.batch(range(200))
    assert (images.mean(), images.std()) == pytest.approx((0, 1), abs=0.01)
    assert set(labels.tolist()) == set(range(10))
    assert np.array_equal(samples[7][0], images[7])


def test_the_values_of_the_library_are_new_in_every_step_and_follow_from_seed_and_rank():
    (first, _), (second, _) = first_batches("synthetic_host", 2)
    assert first != second
    assert first_batches("synthetic_host", 2)[1][0] == second
    assert first_batches("synthetic_host", 1, rank=1)[0][0] != first
    assert np.std(first) == pytest.approx(1, abs=0.05)


def failing(batches: int) -> Any:
    """Yield some batches, then fail."""
    yield from [(0, 0)] * batches
    raise ValueError("no such image")


def test_a_generator_that_fails_is_one_message_after_its_last_batch(refused):
    with closing(QueuedBatches("python_queue", failing(2), depth=4)) as batches:
        assert [batches.next() for _ in range(2)] == [(0, 0)] * 2
        with refused(RunError):
            batches.next()


def test_a_queue_holds_no_more_than_its_depth_and_its_thread_ends_when_it_is_closed():
    made = []

    def endless() -> Any:
        while True:
            made.append(1)
            yield (0, 0)

    before = set(threading.enumerate())
    batches = QueuedBatches("python_queue", endless(), depth=3)
    deadline = time.monotonic() + 10
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    # One more is made, and waits for room in the queue.
    assert len(made) == 4
    batches.close()
    assert set(threading.enumerate()) <= before


class BrokenSamples:
    """A dataset without samples."""

    def __getitem__(self, position: int) -> Any:
        raise ValueError(f"no sample {position}")

    def batch(self, positions: range) -> Any:
        return self[positions[0]]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dataset_that_fails_is_one_message(monkeypatch, workers):
    monkeypatch.setattr(python_dataset, "host_samples", lambda _: BrokenSamples())
    with opened("python_dataset", data_workers=workers) as batches, pytest.raises(RunError) as caught:
        batches.next()
    assert str(caught.value).startswith("the loader of data loader python_dataset ended: ")
