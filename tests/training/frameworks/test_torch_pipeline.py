"""Pipelines on two and four ranks: they train the model that one process trains, and hold a part of its layers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dlperf_study.metrics.pipeline_bubble import Line, even_share
from dlperf_study.records.run_agreement import (
    contradictory_parameters,
    contradictory_times,
    different_beginnings,
    different_losses,
)
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import models
from tests.command_line import LIMIT_SECONDS
from tests.training.frameworks.launching import tell
from tests.training.frameworks.one_process import STEPS, TOKENS, TOLERANCE, divided_parameters, whole

pytestmark = [
    pytest.mark.timeout(LIMIT_SECONDS),
    pytest.mark.needs("torch"),
]

SLEEPING = Path(__file__).with_name("sleeping_stages.py")
BROKEN = Path(__file__).with_name("broken_ranks.py")
BATCH, PARTS = 8, 4
INTERLEAVED = "interleaved_1f1b"
#: Of which blocks compute their activations again where they are divided.
RECOMPUTED = (("bert_tiny", INTERLEAVED), ("llama_tiny", "gpipe"))
#: Model, schedule, stages, ranks, and how many of these divide each matrix, and sequences between matrices.
CASES = [
    *(("gpt_tiny", "gpipe", 2, 2, 1), ("gpt_tiny", "1f1b", 2, 2, 1)),
    *(("bert_tiny", INTERLEAVED, 2, 2, 1), ("llama_tiny", "gpipe", 2, 2, 1)),
    *(("gpt_tiny", "1f1b", 2, 4, 1), ("gpt_tiny", "gpipe", 4, 4, 1), ("gpt_tiny", INTERLEAVED, 2, 4, 2)),
]


def divided(model: str, schedule: str, stages: int, ranks: int, tensor: int = 1, **changes: Any) -> Configuration:
    names = {"framework": "torch_pipeline", "strategy": "pipeline", "pipeline_schedule": schedule}
    degrees = {"pipeline_parallel": stages, "virtual_stages": 2 if schedule == INTERLEAVED else 1}
    degrees |= {"tensor_parallel": tensor, "sequence_parallel": tensor > 1}
    names |= {"activation_checkpointing": "full" if (model, schedule) in RECOMPUTED else "none"}
    requested = replace(whole(model, BATCH), **names, **degrees, micro_batches=PARTS, devices_per_node=ranks)
    return replace(requested, batch_per_device=BATCH // requested.layout.replicas, **changes)


@pytest.mark.parametrize("case", CASES)
def test_ranks_with_the_last_layers_have_the_losses_of_one_process_with_the_whole_batch(logs_of, case):
    [expected] = logs_of(whole(case[0], BATCH))
    requested = divided(*case)
    logs = logs_of(requested)
    for name in ("warmup", "training"):
        losses = [log.windows[name].losses for log in logs if requested.layout.holds_loss(log.rank)]
        assert len(losses) == requested.layout.replicas * requested.tensor_parallel
        assert np.mean(losses, axis=0) == pytest.approx(expected.windows[name].losses, rel=TOLERANCE)
        others = [log.windows[name].losses.size for log in logs if not requested.layout.holds_loss(log.rank)]
        assert set(others) == {0}


@pytest.mark.parametrize("case", CASES)
def test_evidence_has_no_contradiction_and_no_step_without_its_exchange(logs_of, case):
    requested = divided(*case)
    logs = logs_of(requested)
    layout = requested.layout
    assert not [*contradictory_parameters(logs, layout), *different_beginnings(logs)]
    assert not [*different_losses(logs, requested), *contradictory_times(logs, None)]
    assert len({tuple(log.windows) for log in logs}) == 1
    assert len({log.end["parameter_checksum"] for log in logs}) == layout.devices_per_replica, "of copies one"
    assert {log.end["initial_checksum"] for log in logs} == {logs_of(whole(case[0], BATCH))[0].end["initial_checksum"]}
    for log in logs:
        assert "activations" in log.end["computation_obstacle"]
        assert not {"computation_before", "computation_after"} & set(log.windows)


@pytest.mark.parametrize("case", CASES)
def test_ranks_hold_the_model_once_and_twice_the_tied_matrix_and_what_is_not_divided(logs_of, case):
    requested, model = divided(*case), models.load(case[0])
    logs = logs_of(requested)
    held = [log.facts["held_bytes"] for log in logs]
    tied = model.sizes.vocabulary * model.sizes.hidden if model.sizes.tied else 0
    undivided = model.parameters - divided_parameters(model.sizes, case[0])
    copied = tied + undivided * (requested.tensor_parallel - 1)
    for kind in ("weights", "gradients"):
        total = sum(of_rank[kind] for of_rank in held)
        assert total == 4 * (model.parameters + copied) * requested.layout.replicas
    assert {log.facts["parameters"] for log in logs} == {model.parameters}


@pytest.mark.parametrize("case", CASES)
def test_what_is_sent_follows_from_the_sizes(logs_of, case):
    """Each micro-batch goes forward over each border of two stages, its gradient back; of divided sequences parts."""
    requested, model = divided(*case), models.load(case[0])
    features = 4 * requested.batch_per_device * TOKENS // requested.tensor_parallel * model.sizes.hidden
    stages = requested.pipeline_parallel * requested.virtual_stages
    communicated = 0
    for log in logs_of(requested):
        sizes = {(line["kind"], line["group"]): line["bytes"] for line in log.facts["collective_operations"]}
        sent = sizes.pop(("send_receive", "pipeline"))
        first = requested.layout.coordinates(log.rank).pipeline
        own = range(first, stages, requested.pipeline_parallel)
        assert sent == features * sum((stage < stages - 1) + (stage > 0) for stage in own)
        communicated += sum(size for (_, group), size in sizes.items() if group != "tensor")
        assert any(group == "tensor" for _, group in sizes) is (requested.tensor_parallel > 1)
        assert (("all_reduce", "data") in sizes) is (requested.layout.data > 1)
    of_gradients = sum(log.facts["held_bytes"]["gradients"] for log in logs_of(requested))
    tied = 4 * model.sizes.vocabulary * model.sizes.hidden * model.sizes.tied
    assert communicated == 2 * tied * requested.layout.replicas + of_gradients * (requested.layout.data > 1)


def test_ends_that_do_not_add_their_gradients_train_another_model(logs_of, tmp_path):
    [expected] = logs_of(whole("gpt_tiny", BATCH))
    results = tell(divided(*CASES[1]), tmp_path, steps=STEPS + 1, script=BROKEN, DEFECT="separate_ends")
    warmup = expected.windows["warmup"].losses
    assert not np.allclose(results[1]["losses"][1:], warmup, rtol=TOLERANCE, atol=0)


@pytest.mark.parametrize(("schedule", "stages"), [("gpipe", 2), (INTERLEAVED, 2), ("1f1b", 4)])
def test_the_measured_bubble_of_sleeping_stages_is_that_of_even_ones(tmp_path, schedule, stages):
    requested = divided("gpt_tiny", schedule, stages, stages)
    results = tell(requested, tmp_path, script=SLEEPING)
    # Of several steps the shortest: a busy machine wakes sleepers late.
    seconds = {int(count): min(results[0][count]) for count in results[0]}
    line = Line(pd.Series({count: count for count in seconds}), pd.DataFrame([seconds]))
    for count in seconds:
        expected = even_share(stages, count, requested.virtual_stages)
        assert line.shares(count) == pytest.approx(expected, abs=0.05)
