"""What TensorFlow does on GPUs only, as far as a CPU can tell."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlperf_study.core.paths import PROJECT
from dlperf_study.programs.frameworks._tensorflow import WITHOUT_KERAS_3, IdleStopwatch, obstacle_in, show_own_gpu

PROGRAM = Path(__file__).with_name("tensorflow_pieces.py")
VISIBLE = "CUDA_VISIBLE_DEVICES"
#: Printed by TensorFlow 2.20.0 with CUDA where there is no driver.
NO_DRIVER = """\
2026-11-22 23:27:15.072643: I external/local_xla/xla/tsl/cuda/cudart_stub.cc:31] Could not find cuda drivers on your \
machine, GPU will not be used.
To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow with other compiler flags.
2026-11-22 23:27:17.174032: E external/local_xla/xla/stream_executor/cuda/cuda_platform.cc:51] failed call to cuInit: \
INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)
"""


@pytest.fixture(scope="module")
def pieces() -> dict[str, Any]:
    """What the program prints."""
    environment = {**os.environ, **WITHOUT_KERAS_3, VISIBLE: "", "PYTHONPATH": str(PROJECT)}
    done = subprocess.run([sys.executable, str(PROGRAM)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.needs("tensorflow")
def test_channels_first_and_last_are_the_same_network(pieces):
    first, last = (pieces["steps"][memory_format] for memory_format in ("nchw", "nhwc"))
    for number, (expected, actual) in enumerate(zip(first, last, strict=True)):
        np.testing.assert_allclose(expected, actual, rtol=1e-3, atol=1e-5, err_msg=str(number))


@pytest.mark.needs("tensorflow")
def test_a_step_whose_scaled_gradients_overflow_updates_nothing_and_halves_the_scale(pieces):
    training = pieces["training"]
    assert training["computed_in"] == "float16"
    assert training["changed"] == [True, False]
    updated, skipped = training["states"]
    # Every step but the last one, which updated, halved the scale.
    assert updated == {"scale": 2.0 ** (16 - training["steps"] + 1), "skipped_steps": training["steps"] - 1}
    assert skipped == {"scale": updated["scale"] / 2, "skipped_steps": updated["skipped_steps"] + 1}
    assert training["restored"]


@pytest.mark.needs("tensorflow")
def test_on_a_cpu_the_allocator_counts_nothing(pieces):
    assert (pieces["on_gpu"], pieces["peaks"]) == (False, {})


def test_the_reason_why_there_is_no_gpu_is_that_of_the_log():
    assert obstacle_in(NO_DRIVER) == (
        "failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)"
    )
    assert obstacle_in("To enable the following instructions: AVX2 FMA\n") == ""


@pytest.mark.parametrize(
    ("gpus", "local_rank", "own"), [("4,5", 1, "5"), ("GPU-7f,GPU-81", 0, "GPU-7f"), ("0", 0, "0"), ("", 1, "")]
)
def test_a_rank_sees_one_gpu_of_its_node(gpus, local_rank, own):
    environment = {VISIBLE: gpus}
    show_own_gpu(environment, local_rank)
    assert environment[VISIBLE] == own


def test_a_mark_waits_for_the_gpu_before_it_reads_the_clock(monkeypatch):
    events: list[str] = []

    def clock() -> int:
        events.append("clock")
        return len(events) * 10**9

    monkeypatch.setattr("dlperf_study.programs.frameworks._tensorflow.synchronise", events.append)
    monkeypatch.setattr("dlperf_study.programs.frameworks._base.time.perf_counter_ns", clock)
    stopwatch = IdleStopwatch("/GPU:0")
    stopwatch.mark()
    stopwatch.mark()
    assert events == ["/GPU:0", "clock", "/GPU:0", "clock"]
    assert stopwatch.seconds() == [2.0]
