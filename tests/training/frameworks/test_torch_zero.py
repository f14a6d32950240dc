"""Stages of ZeRO on two ranks: they train what data parallelism trains, and hold less."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.records.rank_log import RankLog
from dlperf_study.records.run_agreement import contradictory_times
from dlperf_study.training.libraries._torch_steps import TrainingStep
from tests.command_line import LIMIT_SECONDS
from tests.training.frameworks.conftest import Logs
from tests.training.frameworks.launching import configuration, tell
from tests.training.frameworks.one_process import whole

pytestmark = [pytest.mark.timeout(LIMIT_SECONDS), pytest.mark.needs("torch")]

#: Parameters of MobileNetV2 with ten classes, in bytes.
BYTES = 4 * 2_236_682
PATCHWORK = Path(__file__).with_name("patchwork_ranks.py")
STAGES = (0, 1, 2, 3)


STRATEGY = {"framework": "torch_zero", "strategy": "zero"}


def divided(stage: int, **changes: Any) -> Any:
    names = STRATEGY if stage else {"framework": "torch_ddp"}
    return configuration(**names, zero_stage=stage, devices_per_node=2, **changes)


@pytest.fixture(scope="module")
def logs(logs_of: Logs) -> dict[int, list[RankLog]]:
    """The logs of two ranks of each stage. Without steps of computation, which take random numbers of dropout."""
    steps = {"optimizer": "momentum", "warmup_steps": 4, "communication_only_steps": 2}
    return {stage: logs_of(divided(stage, compute_only_steps=2 * (stage == 1), **steps)) for stage in STAGES}


@pytest.mark.parametrize("stage", STAGES[1:])
@pytest.mark.parametrize("rank", [0, 1])
def test_each_stage_trains_the_same_model_on_every_rank_after_several_steps(logs, stage, rank):
    expected, log = logs[0][rank], logs[stage][rank]
    assert log.windows["warmup"].losses == pytest.approx(expected.windows["warmup"].losses, rel=1e-5)
    assert log.end["initial_checksum"] == expected.end["initial_checksum"]
    if stage > 1:
        assert log.windows["training"].losses == pytest.approx(expected.windows["training"].losses, rel=1e-5)


def test_copies_stay_equal_and_parts_differ(logs):
    for stage, (one, two) in logs.items():
        assert (one.end["parameter_checksum"] == two.end["parameter_checksum"]) is (stage < 2)
        assert one.facts["parameters"] == BYTES / 4, "of the whole model"


def test_each_stage_holds_less(logs):
    shares = {stage: [log.facts["held_bytes"] for log in of_ranks] for stage, of_ranks in logs.items()}
    totals = {}
    for stage, held in shares.items():
        totals[stage] = [
            sum(of_rank[kind] for of_rank in held) / BYTES for kind in ("weights", "gradients", "optimizer")
        ]
    assert totals[0] == [2, 2, 2]
    assert totals[1] == pytest.approx([2, 2, 1])
    assert totals[2] == totals[3] == pytest.approx([1, 1, 1])


def test_the_collectives_of_a_step_are_observed_and_measured_by_kind(logs):
    sizes = {}
    for stage, of_ranks in logs.items():
        assert list(contradictory_times(of_ranks, None)) == []
        log = of_ranks[0]
        assert {entry["group"] for entry in log.facts.get("collective_operations", [])} <= {
            "shard" if stage > 1 else "data"
        }
        sizes[stage] = {entry["kind"]: entry["bytes"] / BYTES for entry in log.facts.get("collective_operations", [])}
        windows = {name: window.bytes for name, window in log.windows.items() if name.startswith("communication")}
        if stage:
            assert windows.pop("communication") == sum(windows.values())
            assert set(windows) == {f"communication_{kind}" for kind in sizes[stage]}
    [gradients] = [entry for entry in logs[1][0].facts["collective_operations"] if entry["kind"] == "all_reduce"]
    # Of a later step: the first MiB of gradients that are ready, and the others. The first step sends all at once.
    assert gradients["calls"] == 2
    assert sizes[0] == {}
    assert sizes[1] == {"all_reduce": 1, "broadcast": 1}
    assert sizes[2] == pytest.approx({"all_gather": 1, "reduce_scatter": 1}, rel=0.01)
    assert sizes[3] == pytest.approx({"all_gather": 2, "reduce_scatter": 1}, rel=0.01)


def test_only_divided_parameters_keep_a_step_from_being_measured_without_its_exchange(logs):
    for stage, of_ranks in logs.items():
        for log in of_ranks:
            assert bool(log.end.get("computation_obstacle")) is (stage >= 2)
            assert ("computation_after" in log.windows) is (stage == 1)


@pytest.mark.parametrize(("stage", "is_one_model"), [(0, True), (3, False)])
def test_ranks_that_divide_different_models_say_so(tmp_path, stage, is_one_model):
    """Nobody sends the parameters of one rank to all before they are divided: without a check the runs look alike."""
    one, two = tell(divided(stage), tmp_path, script=PATCHWORK)
    assert (one["initial"] == two["initial"]) is is_one_model


def test_parts_of_a_batch_exchange_their_gradients_once(logs_of):
    """Batch norm has the statistics of a part, so that parts train what parts train, whatever is divided."""
    logs = []
    for stage in (0, 2, 3):
        steps = {"compute_only_steps": 0, "communication_only_steps": 0, "measured_steps": 1}
        planned = divided(stage, micro_batches=2, batch_per_device=8, warmup_steps=3, **steps)
        logs.append(logs_of(planned)[1])
    losses = [log.windows["warmup"].losses for log in logs]
    for of_stage, gathered in ((1, 1), (2, 4)):
        assert losses[of_stage] == pytest.approx(losses[0], rel=1e-5)
        sizes = {entry["kind"]: entry["bytes"] / BYTES for entry in logs[of_stage].facts["collective_operations"]}
        assert sizes == pytest.approx({"all_gather": gathered, "reduce_scatter": 1}, rel=0.01)


@pytest.fixture(scope="module")
def logs_of_gpt(logs_of: Logs) -> dict[int | None, list[RankLog]]:
    """The logs of a tiny GPT on each rank, by stage; None: of one process with the whole batch.

    Stages 0 and 3 compute the activations of their blocks again.
    """
    logs: dict[int | None, list[RankLog]] = {None: logs_of(whole("gpt_tiny", 4))}
    for stage in STAGES:
        activation_checkpointing = "full" if stage in (0, 3) else "none"
        planned = replace(
            whole("gpt_tiny", 2),
            zero_stage=stage,
            devices_per_node=2,
            activation_checkpointing=activation_checkpointing,
        )
        logs[stage] = logs_of(replace(planned, **STRATEGY) if stage else planned)
    return logs


@pytest.mark.parametrize("stage", STAGES)
def test_a_transformer_is_the_same_model_by_every_stage_and_on_one_process(logs_of_gpt, stage):
    losses = {key: [log.windows["warmup"].losses for log in logs] for key, logs in logs_of_gpt.items()}
    (whole,) = losses[None]
    assert np.mean(losses[stage], axis=0) == pytest.approx(whole, rel=1e-5)
    for of_rank, of_copies in zip(losses[stage], losses[0], strict=True):
        assert of_rank == pytest.approx(of_copies, rel=1e-5)


def test_recomputation_gathers_parameters_no_more_often_and_its_work_is_in_the_log(logs_of_gpt):
    """They are gathered around what is computed again: twice in a step, in the forward and the backward pass."""
    facts = logs_of_gpt[3][0].facts
    [gathered] = [entry["bytes"] for entry in facts["collective_operations"] if entry["kind"] == "all_gather"]
    assert gathered == pytest.approx(2 * 4 * facts["parameters"], rel=0.01)
    again = {stage: logs[0].facts.get("hardware_flops_per_sample") for stage, logs in logs_of_gpt.items()}
    assert [again[stage] for stage in (None, 1, 2)] == [None] * 3
    assert again[0] == again[3] > facts["flops_per_sample"]


def test_a_parameter_without_a_gradient_ends_the_run(refused):
    parameters = [SimpleNamespace(grad=grad) for grad in (1.0, None)]
    step = SimpleNamespace(optimizer=SimpleNamespace(param_groups=[{"params": parameters}]))
    with refused(RunError):
        TrainingStep._observe_update(cast(Any, step), None)
