"""A run whose ranks trained different models is failed with that reason, however fast it was."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.records.rank_agreement import _check_windows
from dlperf_study.records.rank_log import RankLog, Window
from dlperf_study.records.run_agreement import contradictory_parameters, different_beginnings, different_losses
from dlperf_study.study.layout import Layout
from tests.evidence_factory import configuration

BUILT, TRAINED = "built", "trained"


def logs_of(
    trained: list[str],
    losses: list[list[float]] | None = None,
    built: str | list[str] = BUILT,
    communication: str = "collectives",
) -> list[RankLog]:
    """Return logs of ranks that ended with these digests and had these losses in training."""
    losses, logs = losses or [[]] * len(trained), []
    for rank, (digest, of_rank) in enumerate(zip(trained, losses, strict=True)):
        windows = {name: window(name, of_rank) for name in ("warmup", "training")}
        end: Any = {"initial_checksum": built if built == BUILT else built[rank], "parameter_checksum": digest}
        facts: Any = {"communication": communication}
        logs.append(RankLog(rank, facts, windows, end))
    return logs


def window(name: str, losses: list[float]) -> Window:
    steps = np.ones(max(len(losses), 1))
    return Window(name, steps.size, steps.sum(), steps, np.array(losses), np.zeros_like(steps))


def test_one_rank_that_counts_its_samples_and_one_that_does_not_are_refused():
    logs = logs_of(["a", "a"])
    counted = replace(logs[0].windows["training"], samples=np.ones(1))
    logs[0].windows["training"] = counted
    with pytest.raises(RecordError, match="rank 0 counted the samples of window training, rank 1 did not"):
        _check_windows(logs, "run 1")
    logs[1].windows["training"] = counted
    _check_windows(logs, "run 1")


@pytest.mark.parametrize(
    ("layout", "trained", "complaints"),
    [
        (Layout(data=2), ["a", "a"], 0),
        (Layout(data=2), ["a", "b"], 1),
        (Layout(shard=2), ["a", "b"], 0),
        (Layout(tensor=2), ["a", "b"], 0),
        (Layout(data=2, tensor=2), ["a", "b", "a", "b"], 0),
        (Layout(data=2, tensor=2), ["a", "b", "a", "c"], 1),
        (Layout(pipeline=2, data=2), ["a", "a", "b", "b"], 0),
        (Layout(pipeline=2, data=2), ["a", "c", "b", "b"], 1),
        (Layout(data=2), [BUILT, BUILT], 1),
    ],
)
def test_copies_of_a_part_of_the_model_must_stay_equal_and_other_parts_need_not(layout, trained, complaints):
    assert len([*contradictory_parameters(logs_of(trained), layout)]) == complaints


def test_ranks_that_built_different_models_divide_a_patchwork():
    logs = logs_of(["a", "b"], built=["one", "two"])
    assert "different parameters" in next(different_beginnings(logs))
    assert not [*different_beginnings(logs_of(["a", "b"]))]
    replicas = logs_of(["a", "a"], built=["one", "two"], communication="all_reduce")
    assert "different parameters" in next(different_beginnings(replicas))
    of_server = logs_of(["a", "a"], built=["one", "two"], communication="push_pull")
    assert not [*different_beginnings(of_server)]


#: After five steps, of two ranks of tensor parallelism that took whole sequences for their shards.
DIFFERENT = [6.235704, 6.236620]


@pytest.mark.parametrize(
    ("precision", "values", "complaints"),
    [
        ("fp32", DIFFERENT, 1),
        ("fp32", [6.2359633, 6.2359638], 0),
        ("amp_bf16", [6.2359, 6.2364], 0),
        ("amp_bf16", [6.2, 6.3], 1),
        ("fp32", [float("nan"), float("nan")], 0),
    ],
)
def test_ranks_with_the_same_samples_have_one_loss(precision, values, complaints):
    requested = configuration(devices_per_node=2, tensor_parallel=2, precision=precision)
    logs = logs_of(["a", "b"], [[6.265672, value] for value in values])
    messages = [*different_losses(logs, requested)]
    assert len(messages) == complaints
    assert all("in step 1 of window warmup" in message for message in messages)


@pytest.mark.parametrize(
    ("pipeline", "losses"), [(1, [[1.0], [2.0]]), (2, [[], [2.0]])], ids=["samples of its own", "no last stage"]
)
def test_a_rank_may_have_a_loss_of_its_own_or_none(pipeline, losses):
    requested = configuration(devices_per_node=2, pipeline_parallel=pipeline)
    assert not [*different_losses(logs_of(["a", "a"], losses), requested)]
