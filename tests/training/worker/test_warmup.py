"""How long the warm-up goes on and how many steps are measured after it, on ranks with chosen step times."""

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from dlperf_study.records.lines import TimedWindow, WarmupEnd
from dlperf_study.study.configuration import MAX_STEPS, Configuration
from dlperf_study.training.frameworks._base import Trainer
from dlperf_study.training.worker.feed import Feed
from dlperf_study.training.worker.warmup import BLOCK_STEPS, difference_of_blocks, training_steps, warm_up

STEADY = (0.1,)
#: A start-up: the first step is slow, and each of the next ones is a little faster, until the twelfth.
STARTUP = (1.0, *(0.1 + 0.02 * k for k in range(11, -1, -1)))


def asked(**changes: Any) -> Configuration:
    values: dict[str, Any] = {
        "image_size": 1,
        "warmup_steps": 2,
        "max_warmup_seconds": 60.0,
        "measured_steps": 3,
        **changes,
    }
    return Configuration("example", "local", "timed", "none", "none", **values)


class ChosenStopwatch:
    """Reports chosen step times instead of measuring."""

    def __init__(self, next_seconds: Callable[[], float]) -> None:
        self._next_seconds, self._marks = next_seconds, 0

    def mark(self) -> None:
        self._marks += 1

    def seconds(self) -> list[float]:
        return [self._next_seconds() for _ in range(self._marks - 1)]


class TimedRank:
    """A rank whose steps take chosen times, the last one forever; ranks of one job agree with each other."""

    rank, world_size, tensor_library = 0, 1, "none"

    def __init__(self, seconds: Sequence[float], job: "Job") -> None:
        self._seconds, self._job, self.steps = list(seconds), job, 0

    def transfer_batch(self, images: Any, labels: Any) -> None:
        return None

    def loss_scaling(self) -> None:
        """Scale no losses."""

    def train_step(self, batch: Any) -> float:
        self.steps += 1
        return float(self.steps)

    def barrier(self) -> None:
        self._job.meeting.wait(10)

    def stopwatch(self) -> ChosenStopwatch:
        return ChosenStopwatch(lambda: self._seconds.pop(0) if len(self._seconds) > 1 else self._seconds[0])

    def loss_value(self, loss: float) -> float:
        return loss

    def agreed_maximum(self, value: float) -> float:
        return self._job.agreed_maximum(value)


class Job:
    """Ranks as threads: one that asks for a number that others don't ask for waits in vain, as a real one does."""

    def __init__(self, *seconds_of_ranks: Sequence[float]) -> None:
        self.meeting = threading.Barrier(len(seconds_of_ranks))
        self._values: list[float] = []
        self._ranks = [TimedRank(seconds, self) for seconds in seconds_of_ranks]

    def agreed_maximum(self, value: float) -> float:
        self.meeting.wait(10)
        self._values.append(value)
        self.meeting.wait(10)
        maximum = max(self._values)
        if self.meeting.wait(10) == 0:
            self._values.clear()
        self.meeting.wait(10)
        return maximum

    def measure(self, configuration: Configuration) -> list[tuple[TimedWindow, int]]:
        """Return the warm-up of each rank, and the number of steps of its training window."""
        results: dict[int, tuple[TimedWindow, int]] = {}

        def run(rank: int) -> None:
            trainer = cast(Trainer, self._ranks[rank])
            warmup = warm_up(trainer, Feed(configuration, trainer), configuration)
            results[rank] = warmup, training_steps(trainer, configuration, warmup)

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(self._ranks))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [results[rank] for rank in range(len(self._ranks))]


def warmup_of(seconds: Sequence[float], **changes: Any) -> TimedWindow:
    [(warmup, _)] = Job(seconds).measure(asked(**changes))
    return warmup


def test_a_warmup_ends_when_two_blocks_are_alike():
    warmup = warmup_of(STARTUP)
    assert warmup.ended_by is WarmupEnd.STEADY
    assert len(warmup.step_seconds) == 2 + 4 * BLOCK_STEPS
    assert warmup.step_seconds[: len(STARTUP)] == list(STARTUP)
    assert len(warmup.input_seconds) == len(warmup.step_seconds)
    assert warmup.losses == [float(k + 1) for k in range(len(warmup.step_seconds))]


def test_requested_steps_suffice_where_they_are_alike_or_have_no_time():
    warmup = warmup_of(STEADY, warmup_steps=2 * BLOCK_STEPS)
    assert (len(warmup.step_seconds), warmup.ended_by) == (2 * BLOCK_STEPS, WarmupEnd.STEADY)
    warmup = warmup_of(STARTUP, max_warmup_seconds=0.0)
    assert (len(warmup.step_seconds), warmup.ended_by) == (2, WarmupEnd.STEPS)
    assert len(warmup_of((*[0.1] * 7, 0.2)).step_seconds) > len(warmup_of(STEADY).step_seconds)


def test_a_warmup_has_at_least_the_requested_steps_and_none_beyond_its_time():
    shrinking = [0.5 * 0.9**k for k in range(100)]
    warmup = warmup_of(shrinking, max_warmup_seconds=4.0)
    assert warmup.ended_by is WarmupEnd.LIMIT
    assert warmup.seconds <= 4.0 < warmup.seconds + BLOCK_STEPS * warmup.step_seconds[-BLOCK_STEPS]
    slow = warmup_of((9.0,), max_warmup_seconds=4.0)
    assert (len(slow.step_seconds), slow.ended_by) == (2, WarmupEnd.LIMIT)


def test_ranks_warm_up_until_the_last_of_them_is_steady():
    (first, first_steps), (second, second_steps) = Job(STEADY, STARTUP).measure(asked(measured_seconds=5.0))
    assert len(first.step_seconds) == len(second.step_seconds) == len(warmup_of(STARTUP).step_seconds)
    assert (first.ended_by, first_steps) == (second.ended_by, second_steps)


def test_ranks_measure_as_many_steps_as_the_fastest_needs_and_a_study_may_request():
    ranks = Job((0.5,), (0.25,)).measure(asked(measured_seconds=5.0))
    assert [steps for _, steps in ranks] == [20, 20]
    [(_, measured)] = Job((1e-6,)).measure(asked(measured_seconds=86400.0))
    assert measured == MAX_STEPS


@pytest.mark.parametrize(("seconds", "steps"), [(0.0, 3), (0.2, 3), (0.35, 4), (2.0, 20), (86400.0, 864_000)])
def test_a_window_has_the_steps_or_the_time_whichever_is_longer(seconds, steps):
    [(_, measured)] = Job(STEADY).measure(asked(measured_seconds=seconds))
    assert measured == steps


def test_fewer_than_two_blocks_are_not_alike():
    assert difference_of_blocks([0.1] * (2 * BLOCK_STEPS - 1)) == math.inf
    assert difference_of_blocks([9.0, *[0.2] * BLOCK_STEPS, *[0.1] * BLOCK_STEPS]) == pytest.approx(1.0)
