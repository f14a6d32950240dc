"""A run counts only if its ranks computed in its precision, and scaled their losses as it says."""

from pathlib import Path
from typing import Any

import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.records.run import Run, read_run
from dlperf_study.study.job import RunStatus
from tests.evidence_factory import Recipe, configuration, rank_lines, write_lines, write_run

HALF = {"devices_per_node": 2, "precision": "amp_fp16", "loss_scaling": "dynamic"}
TRAINING = 3


def run_with(folder: Path, changes: dict[str, Any], values: dict[int, dict[str, Any]], **facts: Any) -> Run:
    """Return a run of two ranks of that precision; ``values`` are changes of lines of rank 1, by their index.

    ``facts`` are changes of the first line of both.
    """
    requested = configuration(**HALF | changes)
    paths = write_run(StudyPaths(folder), requested, 1)
    for rank in (0, 1):
        lines = rank_lines(requested, rank, 1, Recipe())
        lines[0] |= {"computed_in": "float16", **facts}
        lines[1]["skipped_steps"] = 2
        lines[TRAINING]["skipped_steps"] = 1
        lines[-1]["loss_scale"] = 1024.0
        for index, changed in values.items() if rank else ():
            lines[index] = lines[index] | changed
        write_lines(paths.rank_log(rank), lines)
    return read_run(paths)


def test_a_run_in_half_precision_says_so(tmp_path):
    run = run_with(tmp_path, {}, {})
    assert run.completed, run.reason
    assert [log.windows["training"].skipped_steps for log in run.ranks] == [1, 1]
    assert run.ranks[0].end["loss_scale"] == 1024


def test_a_log_from_before_the_precision_was_observed_is_read(tmp_path):
    requested = configuration()
    paths = write_run(StudyPaths(tmp_path), requested, 1)
    first, *lines = rank_lines(requested, 0, 1, Recipe())
    added = ("computed_in", "first_steps", "first_steps_seconds", "tuning")
    write_lines(paths.rank_log(0), [{name: value for name, value in first.items() if name not in added}, *lines])
    assert read_run(paths).completed


@pytest.mark.parametrize(
    ("changes", "values", "reason"),
    [
        ({}, {0: {"computed_in": "float32"}}, "which computes in float16, but rank 1 computed in float32"),
        ({}, {0: {"computed_in": None}}, "computed_in is null"),
        ({}, {-1: {"loss_scale": None}}, "loss_scale is null"),
        ({}, {-1: {"loss_scale": 0.0}}, "loss_scale is 0.0; it must be more than 0"),
        ({}, {-1: {"loss_scale": 512.0}}, "the ranks ended with different loss scales (1024.0, 512.0)"),
        ({}, {TRAINING: {"skipped_steps": 4}}, "skipped different numbers of steps of window training (1, 4)"),
        ({}, {TRAINING: {"skipped_steps": 21}}, "window training skipped 21 steps, but trained 20"),
        ({}, {0: {"tuning": {"memory_format": "nhwc"}}}, "rank 1: memory_format is nchw, but the library has nhwc"),
        ({}, {0: {"tuning": {"fused_optimizer": "fused"}}}, "rank 1 is tuned as {'fused_optimizer': 'fused'}, but"),
        ({"fused_optimizer": "fused"}, {0: {"tuning": {}}}, "fused, but the library has none that could be observed"),
        ({}, {0: {"tuning": {"cudnn_autotune": "on"}}}, "cudnn_autotune is 'on'; the choices are"),
        ({"loss_scaling": "none"}, {}, "loss_scaling is none, but rank 0 ended with 1024.0"),
        ({"precision": "amp_bf16_o2"}, {}, "amp_bf16_o2, which computes in bfloat16, but rank 0 computed in float16"),
    ],
)
def test_a_run_of_another_precision_is_not_counted(tmp_path, changes, values, reason):
    run = run_with(tmp_path, changes, values)
    assert run.status is RunStatus.FAILED
    assert reason in run.reason


@pytest.mark.parametrize(("gradient_bytes", "fits"), [(1_999_999, False), (2_000_000, True), (2_100_000, True)])
def test_parameters_of_16_bits_have_gradients_of_16_bits_but_for_batch_norm(tmp_path, gradient_bytes, fits, snapshot):
    """Of a million parameters; and only with the level O2."""
    requested = {"communication_only_steps": 0, "precision": "amp_fp16_o2"}
    assert run_with(tmp_path / "o2", requested, {}, gradient_bytes=gradient_bytes).completed == fits
    o1 = run_with(tmp_path / "o1", requested | {"precision": "amp_fp16"}, {}, gradient_bytes=gradient_bytes)
    assert o1.reason == snapshot
