"""Tensor parallelism on two and four ranks: they train the model that one process trains, and hold a part of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlperf_study.records.run_agreement import contradictory_parameters, contradictory_times, different_losses
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import models
from tests.command_line import LIMIT_SECONDS
from tests.training.frameworks.launching import tell
from tests.training.frameworks.one_process import MASKED, STEPS, TOKENS, TOLERANCE, divided_parameters, whole

pytestmark = [
    pytest.mark.timeout(LIMIT_SECONDS),
    pytest.mark.needs("torch"),
]

BROKEN = Path(__file__).with_name("broken_ranks.py")
BATCH = 4
#: Models whose blocks compute their activations again where they are divided.
RECOMPUTED = ("llama_tiny",)
#: Model, whether sequences are divided too, and the ranks; the tensor dimension has two.
CASES = [
    *(("gpt_tiny", False, 2), ("gpt_tiny", True, 2), ("llama_tiny", True, 2), ("bert_tiny", True, 2)),
    ("gpt_tiny", True, 4),
]


def divided(model: str, divides_sequences: bool, ranks: int) -> Configuration:
    names = {"framework": "torch_tensor", "strategy": "tensor", "tensor_parallel": 2}
    names |= {"sequence_parallel": divides_sequences, "batch_per_device": BATCH * 2 // ranks}
    names |= {"activation_checkpointing": "full" if model in RECOMPUTED else "none"}
    return replace(whole(model, BATCH), **names, devices_per_node=ranks)


@pytest.mark.parametrize("case", CASES)
def test_every_rank_has_the_losses_of_one_process_with_the_whole_batch(logs_of, case):
    [expected] = logs_of(whole(case[0], BATCH))
    requested = divided(*case)
    logs = logs_of(requested)
    for name in ("warmup", "training"):
        losses = np.array([log.windows[name].losses for log in logs])
        of_replicas = losses[:: requested.tensor_parallel]
        assert of_replicas.mean(axis=0) == pytest.approx(expected.windows[name].losses, rel=TOLERANCE)
        for rank, of_rank in enumerate(losses):
            assert of_rank == pytest.approx(of_replicas[requested.layout.replica(rank)], rel=1e-7)
        assert losses.shape[1] >= (STEPS if name == "warmup" else 1)
    assert not [*different_losses(logs, requested), *contradictory_times(logs, None)]


@pytest.mark.parametrize("case", [("gpt_tiny", True, 4), ("gpt_tiny", False, 2)])
def test_only_copies_end_with_equal_parameters_and_no_step_is_without_its_exchange(logs_of, case):
    requested = divided(*case)
    logs = logs_of(requested)
    assert not [*contradictory_parameters(logs, requested.layout)]
    checksums = [log.end["parameter_checksum"] for log in logs]
    assert len(set(checksums)) == 2
    assert checksums == checksums[:2] * requested.layout.data
    assert {log.end["initial_checksum"] for log in logs} == {
        logs_of(whole("gpt_tiny", BATCH))[0].end["initial_checksum"]
    }
    for log in logs:
        assert "activations" in log.end["computation_obstacle"]
        assert not {"computation_before", "computation_after"} & set(log.windows)


@pytest.mark.parametrize("case", CASES)
def test_a_rank_holds_half_of_what_is_divided_and_counts_are_of_the_whole_model(logs_of, case):
    [expected] = logs_of(whole(case[0], BATCH))
    model: Any = models.load(case[0])
    parameters = model.parameters - divided_parameters(model.sizes, case[0]) / 2
    for log in logs_of(divided(*case)):
        held = log.facts["held_bytes"]
        assert held["weights"] == held["gradients"] == 4 * parameters
        # The counters of AdamW's steps have 4 bytes each.
        assert held["optimizer"] == pytest.approx(8 * parameters, rel=1e-3)
        for name in ("parameters", "flops_per_sample"):
            assert log.facts[name] == expected.facts[name]


@pytest.mark.parametrize("model", ["gpt_tiny", "bert_tiny"])
def test_the_collectives_of_a_step_follow_from_the_sizes(logs_of, model):
    """An all-reduce of the features after each pair of matrices and the embedding, and of gradients before them."""
    sizes: Any = models.load(model)
    layers, hidden = sizes.sizes.layers, sizes.sizes.hidden
    features = 4 * BATCH * TOKENS * hidden
    of_head = features if model == "gpt_tiny" else 4 * BATCH * MASKED * hidden
    predictions = BATCH * (TOKENS if model == "gpt_tiny" else MASKED)
    [line] = logs_of(divided(model, False, 2))[0].facts["collective_operations"]
    assert (line["kind"], line["group"], line["ranks"], line["calls"]) == ("all_reduce", "tensor", 2, 4 * layers + 5)
    # Of a divided loss: the largest logit and the sum of exponentials of each prediction, and its own logit.
    assert line["bytes"] == (4 * layers + 1) * features + of_head + 3 * 4 * predictions


def test_collectives_of_several_groups_are_told_apart_and_measured_alone(logs_of):
    log = logs_of(divided("gpt_tiny", True, 4))[0]
    sizes = {(line["kind"], line["group"]): line["bytes"] for line in log.facts["collective_operations"]}
    assert set(sizes) == {(kind, "tensor") for kind in ("all_reduce", "all_gather", "reduce_scatter")} | {
        ("all_reduce", "data")
    }
    assert sizes["all_reduce", "data"] == log.facts["held_bytes"]["gradients"]
    windows = {name: window.bytes for name, window in log.windows.items() if name.startswith("communication")}
    assert windows["communication"] == sum(sizes.values())
    assert windows["communication_all_gather"] == sizes["all_gather", "tensor"]
    assert windows["communication_over_data"] == sizes["all_reduce", "data"]
    assert windows["communication_over_tensor"] == windows["communication"] - windows["communication_over_data"]


@pytest.mark.parametrize(("model", "defect"), [("gpt_tiny", "untied"), ("bert_tiny", "repeated"), ("gpt_tiny", "none")])
def test_a_model_that_is_divided_wrongly_has_other_losses(logs_of, tmp_path, model, defect):
    """Neither defect raises an error, and the first loss is right."""
    [expected] = logs_of(whole(model, BATCH))
    results = tell(divided(model, True, 2), tmp_path, steps=STEPS + 1, script=BROKEN, DEFECT=defect)
    losses = np.array([of_rank["losses"] for of_rank in results])
    assert losses[0, 0] == pytest.approx(losses[1, 0], rel=1e-7)
    # The first step is in no window.
    is_one_model = np.allclose(losses[:, 1:], expected.windows["warmup"].losses, rtol=TOLERANCE, atol=0)
    assert is_one_model is (defect == "none")
