"""The bubble of a pipeline, from steps whose bubble is known."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlperf_study.metrics.pipeline_bubble import Bubble, Line, bubble_seconds, bubbles, even_share
from dlperf_study.metrics.statistics import Estimate
from tests.evidence_factory import configuration

COUNTS = (4, 8, 16)
STAGES = configuration(devices_per_node=4, pipeline_parallel=4, pipeline_schedule="1f1b", framework="torch_pipeline")
LINE = [replace(STAGES, micro_batches=count, batch_per_device=2 * count) for count in COUNTS]
ROUNDS = (1.0, 2.0, 3.0)


def step(count: int, stages: int = 4, chunks: int = 1) -> float:
    """Return the seconds of a step, of which one micro-batch takes a device 0.12 s."""
    return 0.12 * (count + (stages - 1) / chunks)


def line_of(seconds: Callable[[int], float], rounds: int = 3) -> Line:
    """Return a line of which each round has the same steps; a configuration is named by its micro-batches."""
    steps = pd.DataFrame([{count: seconds(count) for count in COUNTS}] * rounds)
    return Line(pd.Series({count: count for count in COUNTS}), steps)


@pytest.mark.parametrize(("stages", "chunks"), [(2, 1), (4, 1), (2, 2), (8, 4)])
def test_of_even_stages_it_is_the_formula(stages, chunks):
    line = line_of(lambda count: step(count, stages, chunks))
    for count in COUNTS:
        assert line.shares(count) == pytest.approx([even_share(stages, count, chunks)] * 3)


@given(st.floats(0.001, 100.0), st.floats(0.0, 10.0))
def test_it_is_what_does_not_grow_with_the_micro_batches(slope, constant):
    line = line_of(lambda count: constant + slope * count)
    for count in COUNTS:
        assert line.shares(count) == pytest.approx([constant / (constant + slope * count)] * 3, abs=1e-6)


def test_steps_that_do_not_grow_have_no_bubble():
    assert line_of(lambda count: 5.0 - count / 10).shares(4).size == 0


def runs_of(configurations: Sequence[Any], factors: np.ndarray) -> pd.DataFrame:
    """Return the completed runs; ``factors`` [rounds, configurations]: how many times as long each step takes."""
    rows = []
    for of_round in factors:
        for requested, factor in zip(configurations, of_round, strict=True):
            known = {"configuration_id": requested.configuration_id, "pipeline_parallel": requested.pipeline_parallel}
            rows.append({**known, "step_seconds": step(requested.micro_batches) * factor})
    return pd.DataFrame(rows)


def bubbles_of(
    configurations: Sequence[Any], factors: np.ndarray | None = None, rounds: Sequence[float] | None = ROUNDS
) -> dict[str, Bubble]:
    """Return the bubbles of runs, one round after the other."""
    factors = np.ones((3, len(configurations))) if factors is None else factors
    runs = runs_of(configurations, factors)
    of_runs = None if rounds is None else pd.Series(np.repeat(rounds, len(configurations)), runs.index)
    return bubbles([SimpleNamespace(configuration=requested) for requested in configurations], runs, of_runs)


def test_intervals_hold_the_bubble_as_often_as_they_claim():
    """Errors are in proportion to the step, as on a busy machine, and whole rounds are slower than others."""
    generator, trials = np.random.default_rng(1), 1000
    inside = np.zeros(len(COUNTS))
    expected = [even_share(4, count) for count in COUNTS]
    for _ in range(trials):
        of_rounds = 0.05 * generator.standard_normal((4, 1))
        steps = [[step(count) for count in COUNTS]] * np.exp(of_rounds + 0.01 * generator.standard_normal((4, 3)))
        line = Line(pd.Series(COUNTS), pd.DataFrame(steps))
        for position, truth in enumerate(expected):
            columns = Bubble(Estimate.from_values(line.shares(position)), "").columns
            inside[position] += columns["bubble_share_low"] <= truth <= columns["bubble_share_high"]
    assert inside / trials == pytest.approx(np.full(3, 0.95), abs=0.025)


def test_what_slows_a_whole_round_does_not_widen_the_interval():
    noise = np.exp(0.01 * np.random.default_rng(1).standard_normal((3, 3)))
    quiet, slowed = (bubbles_of(LINE, noise * pace) for pace in (1.0, np.array([[1.0], [1.3], [0.8]])))
    for configuration_id, bubble in quiet.items():
        assert bubble.columns.keys() == {"bubble_share", "bubble_share_low", "bubble_share_high"}
        assert slowed[configuration_id].columns == pytest.approx(bubble.columns, rel=0.05)


def test_the_interval_of_a_share_is_within_nothing_and_the_whole():
    """Three rounds that differ so much tell nothing: the bubble could be many times the step, or none."""
    for mean in (0.1, 0.9, -0.2):
        columns = Bubble(Estimate(mean, 0.5, 2), "").columns
        assert 0 <= columns["bubble_share_low"] <= columns["bubble_share"] <= columns["bubble_share_high"] <= 1


@pytest.mark.parametrize(
    ("rounds", "common"), [((1, 2, np.nan), "2 rounds have"), ((np.nan,) * 3, "0 rounds have"), (None, "0 rounds have")]
)
def test_fewer_than_three_common_rounds_have_a_value_and_a_reason(rounds, common):
    """The slope compares configurations: what a machine did between blocks of their runs would be in it."""
    noise = np.exp(0.01 * np.random.default_rng(1).standard_normal((3, 3)))
    bubbles = bubbles_of(LINE, noise, rounds)
    for requested in LINE:
        bubble = bubbles[requested.configuration_id]
        assert bubble.columns.keys() == {"bubble_share"}
        assert bubble.columns["bubble_share"] == pytest.approx(even_share(4, requested.micro_batches), abs=0.05)
        reason = f"no CI: {common} a run of each number of micro-batches, and a CI needs 3"
        assert bubble.no_interval == reason


def test_shares_that_are_the_same_in_all_rounds_have_no_interval():
    reasons = {bubble.no_interval for bubble in bubbles_of(LINE).values()}
    assert reasons == {"no CI: it is the same in all rounds"}


@pytest.mark.parametrize("configurations", [LINE, LINE[:2]])
def test_the_seconds_of_a_run_need_three_numbers_of_micro_batches_in_its_round(configurations):
    entries = [SimpleNamespace(configuration=requested) for requested in configurations]
    runs = runs_of(configurations, np.ones((2, len(configurations))))
    seconds = bubble_seconds(entries, runs, pd.Series(np.repeat([1, 2], len(configurations))))
    if configurations == LINE:
        assert seconds.to_numpy() == pytest.approx(0.12 * 3)
        assert bubble_seconds(entries, runs, pd.Series([1, *[2] * 5])).isna().tolist() == [True, *[False] * 5]
        assert bubble_seconds(entries, runs, None).isna().all()
    else:
        assert seconds.isna().all()


def test_only_micro_batches_of_one_size_are_on_one_line():
    of_batch_16 = [replace(STAGES, micro_batches=count, batch_per_device=16) for count in COUNTS if count != 8]
    # A batch of 16 in 8 micro-batches of 2 is on the line, too.
    bubbles = bubbles_of([*LINE, *of_batch_16])
    assert set(bubbles) == {requested.configuration_id for requested in LINE}
    for requested in LINE:
        assert bubbles[requested.configuration_id].share.mean == pytest.approx(even_share(4, requested.micro_batches))


def test_configurations_that_differ_in_anything_else_are_on_other_lines():
    seeds = [replace(requested, seed=requested.micro_batches) for requested in LINE]
    assert bubbles_of(seeds) == {}
    assert bubbles_of([replace(requested, seed=1, pipeline_parallel=1) for requested in seeds]) == {}
