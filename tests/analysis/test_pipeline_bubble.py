"""The bubble of a pipeline, from steps whose bubble is known."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlperf_study.metrics.pipeline_bubble import bubble_columns, bubble_seconds, bubbles, even_share
from tests.evidence_factory import configuration

COUNTS = (4, 8, 16)
STAGES = configuration(devices_per_node=4, pipeline_parallel=4, pipeline_schedule="1f1b", framework="torch_pipeline")


def step(count: int, stages: int = 4, chunks: int = 1) -> float:
    """Return the seconds of a step, of which one micro-batch takes a device 0.12 s."""
    return 0.12 * (count + (stages - 1) / chunks)


@pytest.mark.parametrize(("stages", "chunks"), [(2, 1), (4, 1), (2, 2), (8, 4)])
def test_of_even_stages_it_is_the_formula(stages, chunks):
    measured = bubbles({count: np.full(3, step(count, stages, chunks)) for count in COUNTS})
    for count, bubble in measured.items():
        assert bubble.share == pytest.approx(even_share(stages, count, chunks))
        assert bubble.columns()["bubble_share_low"] == pytest.approx(bubble.share)


@given(st.floats(0.001, 100.0), st.floats(0.0, 10.0))
def test_it_is_what_does_not_grow_with_the_micro_batches(slope, constant):
    measured = bubbles({count: np.full(2, constant + slope * count) for count in COUNTS})
    for count, bubble in measured.items():
        assert bubble.share == pytest.approx(constant / (constant + slope * count), abs=1e-6)


def test_two_numbers_of_micro_batches_are_no_line_and_falling_steps_have_no_bubble():
    assert bubbles({4: np.ones(3), 8: np.full(3, 2.0)}) == {}
    assert bubbles({4: np.full(3, 3.0), 8: np.full(3, 2.0), 16: np.ones(3)}) == {}


@pytest.mark.parametrize("runs", [1, 3])
def test_intervals_hold_the_bubble_as_often_as_they_claim(runs):
    """Errors are in proportion to the step, as on a busy machine."""
    generator, trials, noise = np.random.default_rng(1), 2000, 0.03
    inside = np.zeros(len(COUNTS))
    for _ in range(trials):
        seconds = {count: step(count) * np.exp(noise * generator.standard_normal(runs)) for count in COUNTS}
        for position, bubble in enumerate(bubbles(seconds).values()):
            bounds = bubble.columns()
            expected = even_share(4, COUNTS[position])
            inside[position] += bounds["bubble_share_low"] <= expected <= bounds["bubble_share_high"]
    assert inside / trials == pytest.approx(np.full(3, 0.95), abs=0.02)


def test_the_interval_of_a_share_is_within_nothing_and_the_whole():
    """Three runs that differ so much tell nothing: the line could fall, and its bubble be many times the step."""
    steps = {4: np.array([0.5, 1.0, 3.0]), 8: np.array([2.0, 1.0, 0.5]), 16: np.array([1.0, 3.0, 4.0])}
    columns = [bubble.columns() for bubble in bubbles(steps).values()]
    assert len(columns) == 3
    for bounds in columns:
        assert 0 <= bounds["bubble_share_low"] <= bounds["bubble_share"] <= bounds["bubble_share_high"] <= 1
    assert any(bounds["bubble_share_low"] == 0 for bounds in columns)


def columns_of(configurations: list[Any], runs: int = 3) -> dict[str, dict[str, float]]:
    entries = [SimpleNamespace(configuration=requested) for requested in configurations]
    return bubble_columns(entries, completed_runs(configurations, runs), None)


@pytest.mark.parametrize(("rounds", "has_interval"), [(None, True), ([1, 2, 3], True), ([1, 2, np.nan], False)])
def test_without_common_rounds_there_is_no_interval(rounds, has_interval):
    """The slope compares configurations: what a machine did between blocks of their runs would be in it."""
    configurations = [replace(STAGES, micro_batches=count, batch_per_device=8 * count) for count in COUNTS]
    runs = completed_runs(configurations, 3)
    of_runs = None if rounds is None else pd.Series(np.repeat(rounds, len(configurations)), runs.index)
    entries = [SimpleNamespace(configuration=requested) for requested in configurations]
    columns = bubble_columns(entries, runs, of_runs)
    assert [("bubble_share_low" in bounds) for bounds in columns.values()] == [has_interval] * len(COUNTS)


def completed_runs(configurations: list[Any], runs: int) -> pd.DataFrame:
    names = ("identity", "pipeline_parallel")
    rows = [
        {**{name: getattr(requested, name) for name in names}, "step_seconds": step(requested.micro_batches)}
        for _ in range(runs)
        for requested in configurations
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("counts", [COUNTS, COUNTS[:2]])
def test_the_seconds_of_a_run_need_three_numbers_of_micro_batches_in_its_round(counts):
    lines = [replace(STAGES, micro_batches=count, batch_per_device=2 * count) for count in counts]
    entries, runs = [SimpleNamespace(configuration=requested) for requested in lines], completed_runs(lines, runs=2)
    seconds = bubble_seconds(entries, runs, pd.Series(np.repeat([1, 2], len(lines))))
    if counts == COUNTS:
        assert seconds.to_numpy() == pytest.approx(0.12 * 3)
        assert bubble_seconds(entries, runs, pd.Series([1, *[2] * 5])).isna().tolist() == [True, *[False] * 5]
    else:
        assert seconds.isna().all()


def test_only_micro_batches_of_one_size_are_on_one_line():
    of_size_2 = [replace(STAGES, micro_batches=count, batch_per_device=2 * count) for count in COUNTS]
    of_batch_16 = [replace(STAGES, micro_batches=count, batch_per_device=16) for count in COUNTS]
    columns = columns_of([*of_size_2, *of_batch_16])
    # A batch of 16 in 8 micro-batches of 2 is on the line, too.
    assert set(columns) == {requested.identity for requested in of_size_2}
    for requested in of_size_2:
        share = columns[requested.identity]
        assert share["bubble_share"] == pytest.approx(even_share(4, requested.micro_batches))


def test_configurations_that_differ_in_anything_else_are_on_other_lines():
    lines = [replace(STAGES, micro_batches=count, batch_per_device=2 * count, seed=count) for count in COUNTS]
    assert columns_of(lines) == {}
    without = [replace(requested, seed=1, pipeline_parallel=1) for requested in lines]
    assert columns_of(without) == {}
