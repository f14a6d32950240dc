"""The timed windows and the rank log, on a trainer that needs no library."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.rank_log import read_rank_log
from dlperf_study.frameworks._base import Framework, HostStopwatch
from dlperf_study.paths import RunPaths
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Job
from dlperf_study.worker.__main__ import train
from dlperf_study.worker.windows import SETTLING_STEPS, breakdown_windows, measure

ASKED = Configuration(
    study="example",
    cluster="local",
    framework="counting",
    strategy="none",
    model="none",
    devices_per_node=2,
    warmup_steps=2,
    measured_steps=3,
    computation_steps=4,
    exchange_steps=5,
)
STEP_SECONDS = 0.005


class CountingTrainer:
    """Sleeps instead of training, and keeps a diary of what was asked of it."""

    rank, world_size = 1, 2

    def __init__(self, exchange_kind: str = "all_reduce", fails_at: int | None = None) -> None:
        self.exchange_kind = exchange_kind
        self.diary: list[str] = []
        self._fails_at = fails_at
        self._local = False

    def description(self) -> dict[str, Any]:
        known = {"library": "none", "library_version": "0", "device": "cpu", "flops_source": ""}
        return known | {"parameters": 1, "gradient_bytes": 4, "flops_per_sample": None}

    def train_step(self) -> float:
        assert not self._local
        return self._step("train")

    def computation_step(self) -> float:
        assert self._local
        return self._step("compute")

    def exchange(self) -> None:
        self._step("exchange")

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        self._local = True
        yield
        self._local = False

    def barrier(self) -> None:
        self.diary.append("barrier")

    def stopwatch(self) -> HostStopwatch:
        return HostStopwatch()

    def loss_value(self, loss: float) -> float:
        self.diary.append("read loss")
        return loss

    def settle(self) -> float:
        self.diary.append("settle")
        return 0.25

    def parameter_checksum(self) -> str:
        self.diary.append("checksum")
        return str(self.diary.count("train"))

    def close(self) -> None:
        self.diary.append("close")

    def _step(self, what: str) -> float:
        self.diary.append(what)
        if self.diary.count("train") == self._fails_at:
            raise FloatingPointError("not a number")
        time.sleep(STEP_SECONDS)
        return float(len(self.diary))


def measured(trainer: CountingTrainer, folder: Path) -> Path:
    framework = Framework("counting", "none", (), (), lambda *_: None, lambda *_: Job(()), lambda _: trainer)
    run = RunPaths(folder)
    train(framework, ASKED, run)
    return run.rank_log(1)


def test_the_log_is_what_the_reader_reads(tmp_path: Path) -> None:
    log = read_rank_log(measured(CountingTrainer(), tmp_path))
    steps = {name: window.steps for name, window in log.windows.items()}
    assert steps == {"warmup": 2, "training": 3, "computation": 4, "exchange": 5}
    assert log.windows["training"].step_seconds.min() >= STEP_SECONDS
    assert log.windows["exchange"].bytes == 4
    assert log.windows["exchange"].losses.size == 0
    place = {name: log.facts[name] for name in ("rank", "world_size", "node", "local_rank", "exchange", "format")}
    assert place == {"rank": 1, "world_size": 2, "node": 0, "local_rank": 1, "exchange": "all_reduce", "format": 1}


def test_the_parameters_are_compared_before_ranks_drift_apart(tmp_path: Path) -> None:
    end = read_rank_log(measured(CountingTrainer(), tmp_path)).end
    assert (end["initial_checksum"], end["parameter_checksum"], end["drain_seconds"]) == ("0", "5", 0.25)


def test_the_order_of_what_is_measured(tmp_path: Path) -> None:
    trainer = CountingTrainer()
    measured(trainer, tmp_path)
    expected = ["checksum"]
    for steps in (2, 3):
        expected += ["barrier", *["train"] * steps, *["read loss"] * steps]
    expected += ["settle", "checksum", *["compute"] * SETTLING_STEPS]
    expected += ["barrier", *["compute"] * 4, *["read loss"] * 4, *["exchange"] * SETTLING_STEPS]
    expected += ["barrier", *["exchange"] * 5, "close"]
    assert trainer.diary == expected


def test_without_an_exchange_there_is_nothing_to_break_down(tmp_path: Path) -> None:
    log = read_rank_log(measured(CountingTrainer("none"), tmp_path))
    assert list(log.windows) == ["warmup", "training"]


def test_losses_are_read_after_the_window(tmp_path: Path) -> None:
    """Reading one waits for the device; inside a window it would be measured."""
    trainer = CountingTrainer()
    window = measure(trainer, "training", trainer.train_step, 3)
    assert trainer.diary == ["barrier", *["train"] * 3, *["read loss"] * 3]
    assert len(window.step_seconds) == len(window.losses) == 3
    assert window.seconds == pytest.approx(sum(window.step_seconds))


def test_a_window_of_no_steps_is_left_out() -> None:
    asked = replace(ASKED, computation_steps=0)
    windows = list(breakdown_windows(CountingTrainer(), asked, exchanged_bytes=4))
    assert [window.name for window in windows] == ["exchange"]


def test_a_failure_keeps_what_was_measured_and_is_no_whole_log(tmp_path: Path) -> None:
    with pytest.raises(FloatingPointError):
        measured(CountingTrainer(fails_at=4), tmp_path)
    log = RunPaths(tmp_path).rank_log(1)
    assert [json.loads(line)["kind"] for line in log.read_text().splitlines()] == ["rank", "window"]
    with pytest.raises(EvidenceError, match="no end line"):
        read_rank_log(log)


def test_a_process_dies_with_its_parent() -> None:
    child = "import time; from dlperf_study.lifeline import die_with_parent as d; d(); print('up', flush=True)"
    parent = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {child + '; time.sleep(60)'!r}])"
    command = [sys.executable, "-c", parent + "; print(p.pid, flush=True); p.wait()"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        printed = {process.stdout.readline().strip(), process.stdout.readline().strip()}
        assert "up" in printed
        process.kill()
        # The child holds the other end of the pipe: the end of the text is the end of the child.
        assert process.stdout.read() == ""
