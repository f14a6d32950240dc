"""A planted slowdown: as long as requested, on the rank requested, and in no other study."""

import time
from dataclasses import replace
from itertools import chain, count, islice
from typing import Any, cast

import pytest

from dlperf_study.records.writers import RankLogWriter
from dlperf_study.study.communication import Drain
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.frameworks._base import Trainer
from dlperf_study.training.worker.injected import SlowedTrainer, injected_wait, plant_slowdown
from tests.evidence_factory import configuration

STEPS, STEP_SECONDS, SHARE = 20, 0.004, 0.25


class SleepingTrainer:
    """Sleeps for a step, and counts how often it waits for its device."""

    rank, world_size, communication_kind = 1, 2, "all_reduce"

    def __init__(self) -> None:
        self.settled = 0

    def train_step(self, batch: Any) -> float:
        time.sleep(STEP_SECONDS)
        return 1.5

    computation_step = train_step

    def settle(self) -> float:
        self.settled += 1
        return 0.0


class TickingTrainer(SleepingTrainer):
    """Looks at the clock for a step, which a test has replaced."""

    def train_step(self, batch: Any) -> float:
        for _ in range(38):
            time.perf_counter_ns()
        return 1.5


def slowed(**changes: Any) -> Trainer:
    injected: Configuration = replace(configuration(study="selftest_x", injected_slowdown=SHARE), **changes)
    return plant_slowdown(cast(Trainer, SleepingTrainer()), injected)


@pytest.mark.parametrize("step", ["train_step", "computation_step"])
def test_a_step_takes_exactly_its_share_longer(step):
    trainer = slowed()
    start = time.perf_counter()
    losses = [getattr(trainer, step)(None) for _ in range(STEPS)]
    seconds = time.perf_counter() - start
    waits = injected_wait(trainer)
    assert losses == [1.5] * STEPS
    assert waits["steps"] == trainer.settled == STEPS
    assert waits["step_seconds"] >= STEPS * STEP_SECONDS
    # A busy process may be interrupted in the last turn of its wait; never does it wait less than requested.
    assert waits["waited_seconds"] / waits["step_seconds"] >= SHARE
    assert waits["step_seconds"] + waits["waited_seconds"] <= seconds


def test_what_a_wait_takes_too_long_is_left_out_of_those_that_follow(monkeypatch):
    ticks = count(step=100_000)
    # Once, in the first wait, another process has the core for the time of two waits.
    held_up = chain(islice(ticks, 45), (tick + 2_000_000 for tick in ticks))
    monkeypatch.setattr("time.perf_counter_ns", lambda: next(held_up))
    trainer = cast(Any, SlowedTrainer(cast(Trainer, TickingTrainer()), SHARE))
    shares = []
    for _ in range(STEPS):
        trainer.train_step(None)
        waits = injected_wait(trainer)
        shares.append(waits["waited_seconds"] / waits["step_seconds"])
    assert shares[0] > 2 * SHARE
    assert shares[-1] == pytest.approx(SHARE, abs=0.01)
    assert min(shares) >= SHARE


@pytest.mark.parametrize(("slowed_rank", "is_slowed"), [(-1, True), (0, False), (1, True)])
def test_one_rank_or_all_are_slowed(slowed_rank, is_slowed):
    trainer = slowed(slowed_rank=slowed_rank)
    trainer.train_step(None)
    assert (injected_wait(trainer)["waited_seconds"] > 0) == is_slowed


def test_no_other_study_is_slowed_and_everything_else_is_the_trainers_own():
    trainer = slowed()
    assert isinstance(trainer, SlowedTrainer)
    assert (trainer.rank, trainer.world_size, trainer.communication_kind) == (1, 2, "all_reduce")
    trainer = cast(Trainer, SleepingTrainer())
    assert plant_slowdown(trainer, configuration()) is trainer
    assert injected_wait(trainer) is None


def test_the_log_has_the_waits_of_the_selftest_only(tmp_path):
    for injected, keys in ((None, set()), ({"steps": 1}, {"injected"})):
        log = RankLogWriter(tmp_path / "rank.jsonl")
        log.end("a", "b", Drain(), {}, injected=injected)
        assert set(log._lines[-1]) & {"injected"} == keys
