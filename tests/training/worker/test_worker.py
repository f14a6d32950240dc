"""The timed windows and the rank log, on a trainer that needs no library."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dlperf_study.core.errors import RecordError, RunError
from dlperf_study.core.paths import RunPaths
from dlperf_study.records.lines import FORMAT
from dlperf_study.records.rank_log import read_rank_log
from dlperf_study.study.communication import Drain
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Job
from dlperf_study.study.precision import LossScaling
from dlperf_study.training.frameworks._base import Framework
from dlperf_study.training.libraries._base import HostStopwatch
from dlperf_study.training.worker.__main__ import train
from dlperf_study.training.worker.windows import SETTLING_STEPS, communication_sizes, communication_windows

ASKED = Configuration(
    study="example",
    cluster="local",
    framework="counting",
    strategy="none",
    model="none",
    image_size=8,
    batch_per_device=2,
    devices_per_node=2,
    warmup_steps=2,
    max_warmup_seconds=0.0,
    measured_steps=3,
    compute_only_steps=4,
    communication_only_steps=5,
)
STEP_SECONDS = 0.005
GRADIENT_BYTES = 65536
#: The bytes of each transfer: from 4 KiB to all gradients, each twice the one before.
SIZES = [4096, 8192, 16384, 32768, 65536]


class CountingTrainer:
    """Sleeps instead of training, and keeps a diary of what was asked of it."""

    rank, world_size, tensor_library = 1, 2, "none"

    def __init__(self, communication_kind: str = "all_reduce", fails_at: int | None = None) -> None:
        self.communication_kind = communication_kind
        self.diary: list[str] = []
        self._fails_at = fails_at
        self._local = False

    def description(self) -> dict[str, Any]:
        known: dict[str, Any] = {"library": "none", "library_version": "0", "device": "cpu", "flops_source": ""}
        known |= {"parameters": 16384, "gradient_bytes": GRADIENT_BYTES, "communication_threads": 1}
        return known | {"flops_per_sample": None}

    def transfer_batch(self, images: Any, labels: Any) -> tuple[Any, Any]:
        return images, labels

    def first_step(self, batch: Any) -> str:
        self._step("first")
        return "float32"

    def tuning(self) -> dict[str, str]:
        return {"fused_optimizer": "for_loop"}

    def loss_scaling(self) -> LossScaling | None:
        return None

    def train_step(self, batch: Any) -> float:
        assert not self._local
        return self._step("train")

    def computation_step(self, batch: Any) -> float:
        assert self._local
        return self._step("compute")

    def communicate(self, size: int) -> Callable[[], None]:
        return lambda: void(self._step(f"communication {size}"))

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        self._local = True
        self.diary.append("leave")
        yield
        self._local = False
        self.diary.append("return")

    def barrier(self) -> None:
        self.diary.append("barrier")

    def agreed_maximum(self, value: float) -> float:
        return value

    def stopwatch(self) -> HostStopwatch:
        return HostStopwatch()

    def loss_value(self, loss: float) -> float:
        self.diary.append("read loss")
        return loss

    def settle(self) -> Drain:
        self.diary.append("settle")
        return Drain(0.25, 0.1)

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


def void(_: float) -> None:
    """Return nothing: a transfer has no loss."""


def measured(trainer: CountingTrainer, folder: Path, asked: Configuration = ASKED, repetition: int = 1) -> Path:
    framework = Framework(
        "counting", "counting", "none", (), (), lambda *_: None, lambda *_: Job(()), lambda _: trainer
    )
    run = RunPaths(folder / str(repetition))
    run.folder.mkdir(parents=True)
    train(framework, asked, run)
    return run.rank_log(1)


def test_the_log_is_what_the_reader_reads(tmp_path):
    log = read_rank_log(measured(CountingTrainer(), tmp_path))
    steps = {name: window.steps for name, window in log.windows.items()}
    computation = {"computation_before": 2, "training": 3, "computation_after": 2}
    communication = {**{f"communication_{size}": 5 for size in SIZES[:-1]}, "communication": 5}
    assert steps == {"warmup": 2} | computation | communication
    training = log.windows["training"]
    assert training.step_seconds.min() >= STEP_SECONDS
    assert training.seconds == pytest.approx(training.step_seconds.sum())
    assert [window.bytes for name, window in log.windows.items() if name in communication] == SIZES
    assert log.windows["communication"].losses.size == 0
    place = {name: log.facts[name] for name in ("rank", "world_size", "node", "local_rank", "communication", "format")}
    assert place == {
        "rank": 1,
        "world_size": 2,
        "node": 0,
        "local_rank": 1,
        "communication": "all_reduce",
        "format": FORMAT,
    }


def test_the_parameters_are_compared_after_training_and_before_the_rest(tmp_path):
    trainer = CountingTrainer()
    end = read_rank_log(measured(trainer, tmp_path)).end
    trained = 2 + SETTLING_STEPS + 3
    assert (end["initial_checksum"], end["parameter_checksum"]) == ("0", str(trained))
    assert (end["drain_seconds"], end["drain_resolution_seconds"]) == (0.25, 0.1)


def test_the_order_of_what_is_measured(tmp_path):
    """Computation before and after training; each window after steps of its own mode, with nothing pending."""
    trainer = CountingTrainer()
    measured(trainer, tmp_path)
    expected = ["checksum", "barrier", "first", "barrier", *window("train", 2)]
    expected += ["settle", "leave", *["compute"] * SETTLING_STEPS, *window("compute", 2), "return"]
    training = window("train", 3)
    expected += [*["train"] * SETTLING_STEPS, "settle", *training, "settle", "checksum"]
    expected += ["settle", "leave", *["compute"] * SETTLING_STEPS, *window("compute", 2), "return"]
    for size in SIZES:
        expected += [*[f"communication {size}"] * SETTLING_STEPS, "barrier", *[f"communication {size}"] * 5]
    assert trainer.diary == [*expected, "close"]


def window(step: str, steps: int) -> list[str]:
    return ["barrier", *[step] * steps, *["read loss"] * steps]


def test_computation_is_measured_for_as_many_steps_as_training_or_not_at_all(tmp_path):
    for compute_only_steps, expected in ((-1, [1, 2]), (0, [])):
        requested = replace(ASKED, compute_only_steps=compute_only_steps)
        windows = read_rank_log(measured(CountingTrainer(), tmp_path / str(compute_only_steps), requested)).windows
        assert [window.steps for name, window in windows.items() if name.startswith("computation")] == expected


def test_servers_take_all_gradients_at_once():
    windows = communication_windows(CountingTrainer("push_pull"), {"gradient_bytes": GRADIENT_BYTES}, steps=2)
    assert [(window.name, window.bytes) for window in windows] == [("communication", GRADIENT_BYTES)]


@pytest.mark.parametrize("gradient_bytes", [4, 4096, 5000, 2_236_682 * 2, 94_000_000, 553_430_176])
def test_sizes_grow_by_a_factor_up_to_all_gradients(gradient_bytes):
    sizes = communication_sizes(gradient_bytes)
    assert sizes == sorted(set(sizes))
    assert (sizes[0], sizes[-1]) == (min(4096, gradient_bytes), gradient_bytes)
    assert not any(size % 4 for size in sizes[:-1])
    factors = [large / small for small, large in pairwise(sizes)]
    assert factors == pytest.approx(factors[:1] * len(factors), rel=1e-3)


def test_without_an_exchange_there_is_nothing_to_break_down(tmp_path):
    log = read_rank_log(measured(CountingTrainer("none"), tmp_path))
    assert list(log.windows) == ["warmup", "training"]


def test_a_network_that_computes_in_another_format_than_asked_for_is_not_measured(tmp_path, refused):
    with refused(RunError):
        measured(CountingTrainer(), tmp_path, replace(ASKED, precision="amp_bf16"))


def test_the_log_says_in_what_was_computed_and_which_steps_loss_scaling_skipped(tmp_path):
    class Overflowing(CountingTrainer):
        """Skips every second step."""

        def loss_scaling(self) -> LossScaling:
            return LossScaling(1024.0, (self.diary.count("train") + self.diary.count("compute")) // 2)

    log = read_rank_log(measured(Overflowing(), tmp_path))
    assert log.facts["computed_in"] == "float32"
    assert log.facts["tuning"] == {"fused_optimizer": "for_loop"}
    assert (log.facts["first_steps"], log.facts["first_steps_seconds"] >= STEP_SECONDS) == (1, True)
    skipped_steps = {name: window.skipped_steps for name, window in log.windows.items()}
    computation = {"computation_before": 1, "training": 1, "computation_after": 1}
    assert skipped_steps == {"warmup": 1} | computation | dict.fromkeys(
        skipped_steps.keys() - computation.keys() - {"warmup"}
    )
    assert log.end["loss_scale"] == 1024


def test_runs_before_the_breakdown_train_alone_and_are_of_the_same_configuration(tmp_path):
    asked, trainer = replace(ASKED, breakdown_from=2), CountingTrainer()
    logs = [read_rank_log(measured(trainer, tmp_path, asked, repetition)) for repetition in (1, 2, 3)]
    windows = [list(log.windows) for log in logs]
    assert windows[0] == ["warmup", "training"]
    assert windows[1] == windows[2] == list(read_rank_log(measured(CountingTrainer(), tmp_path / "1")).windows)
    assert [log.facts["run"] for log in logs] == [f"{ASKED.configuration_id}/{repetition}" for repetition in (1, 2, 3)]


def test_a_failure_keeps_what_was_measured_and_is_no_whole_log(tmp_path):
    with pytest.raises(FloatingPointError):
        measured(CountingTrainer(fails_at=6), tmp_path)
    log = RunPaths(tmp_path / "1").rank_log(1)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line.get("name") for line in lines] == [None, "warmup", "computation_before"]
    with pytest.raises(RecordError, match="no end line"):
        read_rank_log(log)


def test_a_process_dies_with_its_parent():
    child = "import time; from dlperf_study.core.signals import die_with_parent as d; d(); print('up', flush=True)"
    parent = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {child + '; time.sleep(60)'!r}])"
    command = [sys.executable, "-c", parent + "; print(p.pid, flush=True); p.wait()"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        printed = {process.stdout.readline().strip(), process.stdout.readline().strip()}
        assert "up" in printed
        process.kill()
        # The child holds the other end of the pipe: the end of the text is the end of the child.
        assert process.stdout.read() == ""
