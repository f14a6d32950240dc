"""How long steps wait for their batches, on sources and trainers that need no library."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import data_loaders
from dlperf_study.training.data_loaders._base import Consumer, DataLoader
from dlperf_study.training.frameworks._base import Trainer
from dlperf_study.training.libraries._base import EventStopwatch, HostStopwatch
from dlperf_study.training.worker.feed import Feed
from dlperf_study.training.worker.windows import measure, settle_in
from tests.evidence_factory import configuration

WAIT_SECONDS, WORK_SECONDS, STEPS = 0.004, 0.002, 5
#: Of a step on a device that is busy for longer than any host sleeps.
DEVICE_SECONDS = 60.0


class SlowBatches:
    """Numbers instead of batches, each after a while."""

    def __init__(self, configuration: Configuration, consumer: Consumer) -> None:
        self.made, self.is_closed = 0, False

    def next(self) -> tuple[int, int]:
        time.sleep(WAIT_SECONDS)
        self.made += 1
        return self.made, -self.made

    def close(self) -> None:
        self.is_closed = True


class EchoTrainer:
    """A trainer whose loss is the batch that it was given."""

    rank, world_size, tensor_library = 0, 1, "none"

    def __init__(self, stopwatch: Callable[[], Any] = HostStopwatch) -> None:
        self.stopwatch = stopwatch

    def transfer_batch(self, images: Any, labels: Any) -> Any:
        return images

    def loss_scaling(self) -> None:
        """Scale no losses."""

    def train_step(self, batch: Any) -> Any:
        time.sleep(WORK_SECONDS)
        return batch

    computation_step = train_step

    def barrier(self) -> None:
        pass

    def loss_value(self, loss: Any) -> Any:
        return loss


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> DataLoader:
    """A data loader of slow batches, under the name that a configuration has."""
    slow = DataLoader(name="slow", display_name="", open=SlowBatches)
    monkeypatch.setattr(data_loaders, "load", lambda name: slow)
    return slow


def feed(trainer: EchoTrainer) -> Feed:
    return Feed(configuration(image_size=8, batch_per_device=2), cast(Trainer, trainer))


def test_every_step_has_a_batch_of_its_own_and_the_time_that_it_waited_for_it(source):
    trainer = EchoTrainer()
    batches = feed(trainer)
    settle_in(batches.train, batches)
    window = measure(cast(Trainer, trainer), "training", batches.train, STEPS, batches)
    assert window.losses == [3, 4, 5, 6, 7]
    assert len(window.step_seconds) == len(window.input_seconds) == STEPS
    for step_seconds, input_seconds in zip(window.step_seconds, window.input_seconds, strict=True):
        assert input_seconds >= WAIT_SECONDS
        assert step_seconds - input_seconds >= WORK_SECONDS
    batches.close()
    assert batches._batches.is_closed


def test_with_a_fixed_batch_no_step_waits_and_nothing_is_marked_between_steps():
    marks = []

    class CountingStopwatch(HostStopwatch):
        def mark(self) -> None:
            marks.append(super().mark())

    trainer = EchoTrainer(CountingStopwatch)
    trainer.loss_value = lambda loss: 0.0
    batches = feed(trainer)
    window = measure(cast(Trainer, trainer), "training", batches.train, STEPS, batches)
    assert window.input_seconds == [0.0] * STEPS
    assert len(marks) == STEPS + 1


class BusyDevice:
    """A device that works behind its host: an event is over when the work that was queued before it is."""

    def __init__(self) -> None:
        self.free_at = 0.0

    def event(self) -> Any:
        device = self

        class Event:
            def record(self) -> None:
                self.seconds = device.free_at = max(device.free_at, time.perf_counter())

            def synchronize(self) -> None:
                pass

            def elapsed_time(self, end: Any) -> float:
                return (end.seconds - self.seconds) * 1e3

        return Event()

    def work(self, seconds: float) -> None:
        self.free_at = max(self.free_at, time.perf_counter()) + seconds


def test_a_wait_that_the_device_does_not_notice_costs_no_time(source):
    """While the host waits for a batch, a GPU may still be busy with the step before."""
    device = BusyDevice()
    trainer = EchoTrainer(lambda: EventStopwatch(device.event))
    trainer.train_step = lambda batch: device.work(DEVICE_SECONDS)
    batches = feed(trainer)
    window = measure(cast(Trainer, trainer), "training", batches.train, STEPS, batches)
    first, *later = window.input_seconds
    assert first >= WAIT_SECONDS
    assert max(later) == 0
    assert window.step_seconds[1:] == pytest.approx([DEVICE_SECONDS] * (STEPS - 1))


def test_an_exchange_waits_for_no_batch():
    window = measure(cast(Trainer, EchoTrainer()), "communication", lambda: None, STEPS)
    assert window.input_seconds is None


def test_a_source_that_fails_ends_the_window(source, monkeypatch):
    def fail(self: SlowBatches) -> Any:
        raise RunError("the producer ended")

    monkeypatch.setattr(SlowBatches, "next", fail)
    trainer = EchoTrainer()
    batches = feed(trainer)
    with pytest.raises(RunError, match="the producer ended"):
        measure(cast(Trainer, trainer), "training", batches.train, STEPS, batches)


def test_a_source_is_opened_for_the_rank_and_the_library_of_its_tensors(monkeypatch):
    consumers = []

    def open_for(asked: Configuration, consumer: Consumer) -> SlowBatches:
        consumers.append(consumer)
        return SlowBatches(asked, consumer)

    slow = replace(DataLoader(name="slow", display_name="", open=open_for))
    monkeypatch.setattr(data_loaders, "load", lambda name: slow)
    feed(EchoTrainer())
    assert consumers == [Consumer(0, 1, "none", 0)]
