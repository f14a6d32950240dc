"""Constructed steps: how often each answer is given, by simulation."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from dlperf_study.core.arrays import Floats
from dlperf_study.metrics.steady_state import (
    ENOUGH_STEPS,
    TOLERANCE,
    Answer,
    noise,
    settled_at,
    steadiness,
    steadiness_of_usual,
    steadiness_tolerance,
)

WINDOWS = 400
AT_MOST = 0.05 * WINDOWS

Steps = Callable[[np.random.Generator, int], Floats]


def autoregressive(generator: np.random.Generator, count: int, deviation: float, correlation: float = 0.0) -> Floats:
    """Return steps around 1 whose noise has this standard deviation and lag-1 correlation."""
    innovations = np.sqrt(1 - correlation**2) * generator.standard_normal(count)
    values = np.empty(count)
    values[0] = generator.standard_normal()
    for step in range(1, count):
        values[step] = correlation * values[step - 1] + innovations[step]
    return 1 + deviation * values


def answers(steps: Steps, count: int) -> Counter[Answer]:
    generator = np.random.default_rng([11, count])
    return Counter(steadiness(steps(generator, count)).answer for _ in range(WINDOWS))


def decaying(generator: np.random.Generator, count: int) -> Floats:
    return autoregressive(generator, count, 0.03) + 0.3 * np.exp(-4 * np.arange(count) / count)


def shifted_somewhere(generator: np.random.Generator, count: int) -> Floats:
    shift = generator.integers(count // 4, count - count // 4 + 1)
    return autoregressive(generator, count, 0.03) + 0.1 * (np.arange(count) >= shift)


def shifted_correlated(generator: np.random.Generator, count: int) -> Floats:
    return autoregressive(generator, count, 0.03, 0.5) + 0.1 * (np.arange(count) >= count // 2)


@pytest.mark.parametrize("count", [9, 20, 50, 200])
@pytest.mark.parametrize("steps", [decaying, shifted_somewhere, shifted_correlated])
def test_a_warm_up_or_a_shift_of_a_tenth_is_hardly_ever_called_steady(steps, count):
    assert answers(steps, count)[Answer.STEADY] <= AT_MOST


@pytest.mark.parametrize("count", [9, 20, 50, 200])
@pytest.mark.parametrize("deviation", [0.03, 0.1, 0.3])
def test_correlated_steps_without_a_trend_are_hardly_ever_called_not_steady(deviation, count):
    given = answers(lambda generator, count: autoregressive(generator, count, deviation, 0.5), count)
    assert given[Answer.NOT_STEADY] <= AT_MOST


def test_the_answers_are_not_always_that_nothing_can_be_told():
    assert answers(lambda generator, count: autoregressive(generator, count, 0.01), 20)[Answer.STEADY] > 0.95 * WINDOWS
    assert answers(lambda generator, count: autoregressive(generator, count, 0.03, 0.5), 200)[Answer.STEADY] > 350
    assert answers(shifted_somewhere, 100)[Answer.NOT_STEADY] > 0.9 * WINDOWS
    assert answers(decaying, 50)[Answer.NOT_STEADY] > 0.9 * WINDOWS


def test_the_further_steps_would_tell():
    generator = np.random.default_rng(5)
    are_steady = []
    for _ in range(200):
        result = steadiness(autoregressive(generator, 30, 0.06))
        if result.answer is Answer.INCONCLUSIVE:
            assert result.further_steps is not None
            are_steady.append(steadiness(autoregressive(generator, 30 + result.further_steps, 0.06)).is_steady)
    assert len(are_steady) > 150
    assert np.mean(are_steady) > 0.75


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_noise_is_estimated_also_where_the_level_changes(correlation):
    steps = autoregressive(np.random.default_rng(2), 4000, 0.02, correlation)
    steps[1500:] += 0.5
    assert noise(steps) == (pytest.approx(0.02, rel=0.1), pytest.approx(correlation, abs=0.05))


def test_a_slow_beginning_is_not_steady_and_is_cut_off_where_it_ends():
    steps = autoregressive(np.random.default_rng(1), 100, 0.02)
    steps[:40] *= 1.5
    result = steadiness(steps)
    assert (result.answer, result.further_steps) == (Answer.NOT_STEADY, None)
    assert result.difference > 0.3
    assert settled_at(steps) in range(30, 41)


def test_steps_with_a_slow_half_or_that_grow_to_the_end_are_not_steady():
    steps = autoregressive(np.random.default_rng(1), 200, 0.02)
    steps[100::5] *= 4
    assert not steadiness(steps).is_steady
    steps = autoregressive(np.random.default_rng(1), 100, 0.02) * np.linspace(1.0, 3.0, 100)
    assert steadiness(steps).answer is Answer.NOT_STEADY
    assert settled_at(steps) is None


@pytest.mark.parametrize("count", [0, 1, 8])
def test_few_steps_tell_nothing(count):
    for result in (steadiness(np.full(count, 0.1)), steadiness_of_usual(np.full(count, 0.1))):
        assert (result.answer, result.further_steps) == (Answer.INCONCLUSIVE, 50 - count)
    assert settled_at(np.full(count, 0.1)) is None


@pytest.mark.parametrize("count", [9, 50, 100_000])
def test_equal_steps_are_steady(count):
    assert steadiness(np.full(count, 0.1)).is_steady
    assert settled_at(np.full(count, 0.1)) == 0
    assert noise(np.full(count, 0.1)) == (0.0, 0.0)


@pytest.mark.parametrize(("precision", "tolerance"), [(None, 0.05), (0.02, 0.02), (0.2, 0.05)])
def test_a_finer_precision_asks_for_steadier_windows_and_a_coarser_one_for_no_others(precision, tolerance):
    assert steadiness_tolerance(precision) == tolerance


def largest_difference(values: Floats) -> float:
    """Return the largest difference of a half or a quarter at an end from the rest, a share of the mean."""
    quarter, half = values.size // 4, values.size // 2
    parts = [(values[:cut], values[cut:]) for cut in (half, quarter, values.size - quarter)]
    return float(max(abs(before.mean() - after.mean()) for before, after in parts) / values.mean())


@pytest.mark.parametrize("count", [9, 10, 11, 39, 200])
def test_the_difference_is_the_largest_of_three_between_means(count):
    for seed in range(8):
        steps = autoregressive(np.random.default_rng(seed), count, 0.03) + np.linspace(0, 0.01 * seed, count)
        assert steadiness_of_usual(steps).difference == pytest.approx(largest_difference(steps))


def test_exactly_the_tolerance_is_steady_and_anything_above_is_not():
    """Of steps whose level changes once, and which have no noise."""
    steps = np.repeat([1.0, 1.03], 20)
    difference = steadiness(steps).difference
    assert steadiness(steps, difference).is_steady
    assert steadiness(steps, np.nextafter(difference, 0)).answer is Answer.NOT_STEADY


@pytest.mark.parametrize(("count", "deviation"), [(12, 0.03), (30, 0.06), (30, 0.3), (700, 0.4), (2100, 0.9)])
def test_the_further_steps_make_the_error_as_small_as_it_must_be(count, deviation):
    """At 3 standard errors; at least as many again and as a window should have; in two digits, rounded up."""
    unsure = 0
    for seed in range(20):
        steps = np.abs(autoregressive(np.random.default_rng(seed), count, deviation)) + 0.1
        answer = steadiness_of_usual(steps)
        if answer.further_steps:
            unsure += 1
            noise_deviation, correlation = noise(steps)
            quarter = count // 4
            error = noise_deviation / steps.mean() * np.sqrt((1 + correlation) / (1 - correlation))
            error *= np.sqrt(1 / quarter + 1 / (count - quarter))
            needed = max(count * (3.0 * error / TOLERANCE) ** 2 - count, count, ENOUGH_STEPS - count)
            digits = f"{answer.further_steps:.1e}"
            assert float(digits) == answer.further_steps
            assert needed <= answer.further_steps <= max(1.1 * needed, needed + 1)
    assert unsure > 10


@pytest.mark.parametrize("count", [4095, 4097, 4099, 5003, 10_001])
def test_a_long_window_is_tested_by_the_means_of_its_pieces(count):
    steps = autoregressive(np.random.default_rng(4), count, 0.03)
    size = count // 2048
    pieces = steps[count % size :].reshape(-1, size).mean(axis=1)
    assert steadiness_of_usual(steps).difference == pytest.approx(largest_difference(pieces))


def test_a_window_settles_at_a_twentieth_of_its_steps_and_at_half_at_the_latest():
    for slow, settled in ((1, 0), (3, 5), (45, 45), (52, 50), (53, None)):
        steps = np.ones(100)
        steps[:slow] = 2.0
        assert settled_at(steps) == settled, slow


@pytest.mark.parametrize(
    ("count", "slow", "is_steady"),
    [(20, [15], True), (49, [15], True), (49, [15, 30], False), (50, [0, 30], True), (50, [0, 30, 40], False)],
)
def test_of_each_25_steps_one_may_be_slow(count, slow, is_steady):
    steps = np.ones(count)
    steps[slow] = 30.0
    assert steadiness(steps).is_steady is is_steady
    assert not steadiness_of_usual(steps).is_steady


def test_of_several_slow_steps_the_slowest_is_left_out():
    steps = autoregressive(np.random.default_rng(1), 30, 0.001)
    steps[[3, 20]] = 1.5, 9.0
    usual = steps.copy()
    usual[20] = np.median(steps[18:23])
    assert steadiness(steps).difference == pytest.approx(steadiness_of_usual(usual).difference)
