"""The pieces of arithmetic between steps: when they run, what of them is recorded, and that no step contains one."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlperf_study.evidence.rank_log import read_rank_log
from dlperf_study.programs.worker import pace
from dlperf_study.programs.worker.pace import SHARE, Pace
from tests.worker.test_worker import ASKED, STEP_SECONDS, CountingTrainer, measured

LONGER = replace(ASKED, measured_steps=24)


class LongSteps(CountingTrainer):
    """Its steps are so long that a piece after each of them takes less than the share."""

    def train_step(self, batch: Any) -> float:
        time.sleep(0.25)
        return super().train_step(batch)


class OtherDevice(CountingTrainer):
    """Trains on a GPU."""

    def description(self) -> dict[str, Any]:
        return super().description() | {"device": "gpu"}


def pieces(folder: Path, trainer: CountingTrainer, **changes: Any) -> list[float]:
    window = read_rank_log(measured(trainer, folder, replace(ASKED, **changes))).windows["training"]
    return window.piece_seconds.tolist()


def test_blocks_of_steps_add_up_to_all():
    assert list(Pace(3).blocks(7)) == [3, 3, 1]
    assert list(Pace(3).blocks(6)) == [3, 3]


def test_many_short_steps_are_followed_by_one_piece_and_each_long_one_by_one(tmp_path, monkeypatch):
    assert len(pieces(tmp_path / "short", CountingTrainer())) == 1
    # On a machine that others use too, one of the usual length may take more than the share of a long step.
    monkeypatch.setattr(pace, "ITERATIONS", 1)
    monkeypatch.setattr(pace, "UNTIMED_ITERATIONS", 1)
    assert len(pieces(tmp_path / "long", LongSteps())) == ASKED.measured_steps


def test_pieces_take_the_share_of_the_time(tmp_path, monkeypatch):
    """Of a piece that takes a tenth of a step, with its sleep or without, there is one in every four steps."""
    monkeypatch.setattr(pace, "ITERATIONS", 1)
    monkeypatch.setattr(pace, "UNTIMED_ITERATIONS", 1)
    for arithmetic, sleep in ((STEP_SECONDS / 20, 0.0), (0.0, STEP_SECONDS / 10)):
        monkeypatch.setattr(pace, "SLEEP_SECONDS", sleep)
        monkeypatch.setattr(pace, "arithmetic", lambda _, seconds=arithmetic: time.sleep(seconds))
        count = len(pieces(tmp_path / str(sleep), CountingTrainer(), measured_steps=60))
        assert 0.25 * SHARE <= count * 0.1 / 60 <= 2 * SHARE


def test_no_step_contains_a_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(pace, "arithmetic", lambda _: time.sleep(10 * STEP_SECONDS))
    monkeypatch.setattr(pace, "SHARE", 200.0)
    window = read_rank_log(measured(CountingTrainer(), tmp_path, LONGER)).windows["training"]
    assert window.piece_seconds.size == LONGER.measured_steps
    assert window.piece_seconds.min() >= 10 * STEP_SECONDS
    assert sorted(window.step_seconds)[len(window.step_seconds) // 2] < 5 * STEP_SECONDS


@pytest.mark.parametrize(
    ("trainer", "changes"),
    [
        (OtherDevice(), {}),
        (CountingTrainer("push_pull"), {}),
        (CountingTrainer(), {"data_source": "python_queue"}),
    ],
)
def test_nothing_may_work_on_while_a_piece_runs(tmp_path, trainer, changes):
    """A GPU, late updates and batches that are made ahead would be further when the next step begins."""
    assert pieces(tmp_path, trainer, **changes) == []
