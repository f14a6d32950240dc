"""Paddle's stage 1 of ZeRO on two ranks: it trains what one process trains with the whole batch, and holds less."""

from dataclasses import replace

import numpy as np
import pytest

from dlperf_study.records.rank_log import RankLog
from dlperf_study.records.run_agreement import contradictory_times
from tests.command_line import LIMIT_SECONDS
from tests.training.frameworks.conftest import Logs
from tests.training.frameworks.launching import require_equal_ranks, tell
from tests.training.frameworks.one_process import TOLERANCE, whole

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

#: Bytes of the parameters of the tiny GPT: embeddings, positions, four blocks and the last norm.
BYTES = 4 * (512 * 64 + 1_024 * 64 + 4 * (12 * 64**2 + 13 * 64) + 2 * 64)
ZERO = {"framework": "paddle_zero", "strategy": "zero", "zero_stage": 1}


@pytest.fixture(scope="module")
def alone(logs_of: Logs) -> RankLog:
    """The log of one process with the whole batch."""
    [log] = logs_of(replace(whole("gpt_tiny", 4), framework="paddle_collective"))
    return log


@pytest.fixture(scope="module")
def divided(logs_of: Logs) -> list[RankLog]:
    """The logs of two ranks that divide the optimizer's state."""
    return logs_of(replace(whole("gpt_tiny", 2), devices_per_node=2, compute_only_steps=2, **ZERO))


def test_two_ranks_train_the_model_that_one_process_trains(alone, divided):
    losses = [log.windows["warmup"].losses for log in divided]
    assert len(set(losses[0])) == len(losses[0]) >= 4
    assert np.mean(losses, axis=0) == pytest.approx(alone.windows["warmup"].losses, rel=TOLERANCE)
    assert {log.end["initial_checksum"] for log in divided} == {alone.end["initial_checksum"]}
    assert len({log.end["parameter_checksum"] for log in divided}) == 1


def test_only_the_state_of_the_optimizer_is_divided(alone, divided):
    held = [log.facts["held_bytes"] for log in divided]
    assert [of_rank["weights"] for of_rank in held] == [of_rank["gradients"] for of_rank in held] == [BYTES, BYTES]
    whole_state = alone.facts["held_bytes"]["optimizer"]
    assert 2 * BYTES < whole_state == pytest.approx(2 * BYTES, rel=0.001)
    assert sum(of_rank["optimizer"] for of_rank in held) == whole_state
    assert max(of_rank["optimizer"] for of_rank in held) < 0.6 * whole_state
    assert {log.facts["parameters"] for log in divided} == {BYTES // 4}, "of the whole model"
    assert {log.facts["gradient_bytes"] for log in divided} == {BYTES}


def test_the_collectives_of_a_step_are_observed_and_measured_by_kind(divided):
    for log in divided:
        assert [
            (line["kind"], line["group"], line["ranks"], line["bytes"]) for line in log.facts["collective_operations"]
        ] == [
            ("reduce", "data", 2, BYTES),
            ("broadcast", "data", 2, BYTES),
        ]
        windows = {name: window.bytes for name, window in log.windows.items() if name.startswith("communication")}
        assert windows == {"communication_reduce": BYTES, "communication_broadcast": BYTES, "communication": 2 * BYTES}
    assert list(contradictory_times(divided, None)) == []


def test_steps_without_exchange_leave_no_trace_in_what_ranks_train(tmp_path):
    """Each rank updates its part by its own gradients, so that they drift apart; afterwards all is as it was."""
    requested = replace(whole("gpt_tiny", 2), devices_per_node=2, data_loader="synthetic_device", **ZERO)
    one, two = tell(requested, tmp_path, steps=2)
    require_equal_ranks(one, two)
