import numpy as np
import pytest

from dlperf_study.metrics.rate_series import fixed_window
from dlperf_study.readers.parsed_log import cumulative_steps


def test_the_wall_rate_is_samples_over_seconds_and_never_above_the_mean_of_rates():
    rates = np.array([500.0, 1000.0] * 10)
    window = fixed_window(np.arange(10, 210, 10), rates, 0, 1000)
    assert window.wall_rate == pytest.approx(2 / (1 / 500 + 1 / 1000))
    assert window.mean_of_rates == pytest.approx(750)


def test_lines_count_as_the_steps_they_stand_for_also_after_missing_lines():
    window = fixed_window(np.array([10, 20, 30, 35]), np.array([100.0, 100.0, 100.0, 300.0]), 0, 100)
    assert window.wall_rate == pytest.approx((10 + 10 + 10 + 5) / (0.1 + 0.1 + 0.1 + 5 / 300))
    window = fixed_window(np.array([10, 20, 30, 500, 510]), np.array([100.0, 100.0, 100.0, 50.0, 100.0]), 0, 1000)
    assert window.wall_rate == pytest.approx(50 / (4 * 10 / 100 + 10 / 50))
    assert list(cumulative_steps(np.array([10, 20, 30, 10, 20, 30]))) == [10, 20, 30, 40, 50, 60]


def test_the_windows_of_dlperf_are_a_hundred_steps():
    rates = np.linspace(900, 1100, 200)
    window = fixed_window(np.arange(200), rates, 20, 120)
    assert list(np.flatnonzero(window.kept)) == list(range(20, 120))
    assert window.mean_of_rates == pytest.approx(rates[20:120].mean())
    assert (window.reasons, window.is_full) == (("steps 20 to 119",), True)


def test_a_window_that_is_not_full_says_so():
    window = fixed_window(np.arange(100), np.full(100, 1000.0), 20, 120)
    assert (window.reasons, window.is_full) == (("steps 20 to 119; the log ends at step 99, before it is full",), False)
    assert np.isnan(fixed_window(np.arange(10), np.full(10, 1000.0), 20, 120).mean_of_rates)


@pytest.mark.parametrize("unnumbered", [[], [-1]])
def test_a_log_without_step_numbers_ends_at_no_step(unnumbered, snapshot):
    window = fixed_window(np.array(unnumbered, dtype=int), np.ones(len(unnumbered)), 20, 120)
    assert window.reasons == snapshot


def test_a_window_is_full_with_the_last_line_that_it_can_have():
    """Lines are ten steps apart: after that of step 110 the next is outside the window."""
    steps, rates = np.arange(10, 120, 10), np.full(11, 1000.0)
    assert fixed_window(steps, rates, 20, 120).is_full
    assert not fixed_window(steps[:-1], rates[:-1], 20, 120).is_full
