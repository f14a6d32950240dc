import numpy as np
import pytest

from dlperf_study.analysis.steady_state import is_steady, settled_at


def noisy(count, relative=0.02, seed=0):
    return 0.1 * (1 + relative * np.random.default_rng(seed).standard_normal(count))


@pytest.mark.parametrize("count", [9, 20, 100, 500])
@pytest.mark.parametrize("relative", [0.0, 0.01, 0.1])
def test_steps_without_a_trend_are_steady_from_the_first(count, relative):
    steady = [settled_at(noisy(count, relative, seed)) == 0 for seed in range(100)]
    assert np.mean(steady) > 0.9


@pytest.mark.parametrize("count", [30, 100, 500])
def test_a_drift_of_a_fifth_is_seen(count):
    drift = np.linspace(1.2, 1.0, count)
    assert not any(is_steady(noisy(count, seed=seed) * drift) for seed in range(50))


def test_a_slow_beginning_is_cut_off_where_it_ends():
    steps = noisy(100)
    steps[:40] *= 1.5
    assert settled_at(steps) in range(20, 41)
    assert is_steady(steps[40:])


def test_a_single_slow_step_decides_nothing():
    steps = noisy(60)
    steps[0] *= 30
    assert settled_at(steps) == 0


def test_steps_that_grow_to_the_end_never_settle():
    assert settled_at(noisy(100) * np.linspace(1.0, 3.0, 100)) is None


@pytest.mark.parametrize("count", [0, 1, 8])
def test_too_few_steps_say_nothing(count):
    assert settled_at(np.full(count, 0.1)) is None


def test_equal_steps_are_steady():
    assert settled_at(np.full(50, 0.1)) == 0
