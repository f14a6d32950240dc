from pathlib import Path

import numpy as np
import pytest

from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.parsed_log import cumulative_steps
from dlperf_study.metrics.steady_state import Answer
from dlperf_study.metrics.throughput_levels import Behaviour
from dlperf_study.metrics.throughput_series import SteadyPart, fixed_window, steady_part
from tests.metrics.test_steady_state import autoregressive

PLSC = Path(__file__).parent.parent / "logs" / "samples" / "plsc_2_2_complete_real.log.gz"


def noisy(count: int, spread: float = 0.01) -> np.ndarray:
    return 1000.0 * (1 + spread * np.random.default_rng(7).standard_normal(count))


def steps(count: int, spacing: int = 10) -> np.ndarray:
    return np.arange(spacing, spacing * (count + 1), spacing)


def said(steady: SteadyPart) -> str:
    return "\n".join(steady.window.reasons)


def test_a_steady_series_is_kept_whole():
    steady = steady_part(steps(120), noisy(120))
    assert steady.window.kept.all()
    assert (steady.startup, steady.stalls, steady.window.reasons) == (0, (), ())
    assert (steady.steadiness.is_steady, steady.behaviour, len(steady.levels)) == (True, Behaviour.FLAT, 1)


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.25, 2.0])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.65])
def test_a_log_of_two_levels_has_both_throughputs_and_no_start_up(factor, share):
    """Forty logs of each kind, with stalls: none of them loses a level as its start-up."""
    for seed in range(40):
        throughputs = 1000.0 * (1 + 0.01 * np.random.default_rng(seed).standard_normal(200))
        shift = round(200 * share)
        throughputs[shift:] *= factor
        throughputs[25::25] /= 5
        steady = steady_part(steps(200), throughputs)
        assert (steady.startup, steady.has_no_single_throughput) == (0, True)
        assert steady.behaviour is (Behaviour.SLOW_DOWN if factor < 1 else Behaviour.WARM_UP)
        first, second = steady.levels
        assert (first.throughput, second.throughput) == (
            pytest.approx(1000, rel=0.01),
            pytest.approx(1000 * factor, rel=0.01),
        )
        assert (first.first_step, second.last_step) == (10, 2000)
        assert abs(first.last_step - 10 * shift) <= 30 >= second.first_step - first.last_step


def test_a_start_up_or_a_short_fast_beginning_is_no_level():
    throughputs = noisy(200)
    throughputs[:10] *= 1.3
    steady = steady_part(steps(200), throughputs)
    assert (steady.startup, steady.behaviour, steady.has_no_single_throughput) == (0, Behaviour.SLOW_DOWN, False)
    throughputs = noisy(200, 0.002) * (1 - 0.2 * np.exp(-np.arange(200) / 15))
    steady = steady_part(steps(200), throughputs)
    assert 20 < steady.startup < 100
    assert (steady.steadiness.is_steady, steady.has_no_single_throughput) == (True, False)


@pytest.mark.parametrize("fall", [1.2, 1.5, 2.0])
def test_a_drift_is_no_level(fall):
    for direction in (1, -1):
        steady = steady_part(steps(200), noisy(200) * np.linspace(1, fall, 200)[::direction])
        assert not steady.has_no_single_throughput
        assert steady.steadiness.answer is Answer.NOT_STEADY


def test_the_four_words():
    decaying = 1 - 0.3 * np.exp(-np.arange(200) / 10)
    later = np.where(np.arange(200) < 170, 1.0, 0.8)
    shapes = (np.ones(200), decaying, np.where(np.arange(200) < 30, 1.2, 1.0), later)
    assert [steady_part(steps(200), noisy(200) * shape).behaviour for shape in shapes] == list(Behaviour)


@pytest.mark.parametrize("count", [60, 120, 500, 5000])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_noise_has_no_levels(count, correlation):
    words = []
    for seed in range(60):
        noise = autoregressive(np.random.default_rng(seed), count, 0.03, correlation)
        words.append(steady_part(steps(count), 1000 * noise).behaviour)
    assert words.count(Behaviour.FLAT) + words.count(None) >= 57
    assert words.count(Behaviour.FLAT) >= (57 if count >= 500 else 20)


def test_a_start_up_is_cut_off(snapshot):
    throughputs = noisy(120)
    throughputs[:4] = (80, 500, 800, 900)
    steady = steady_part(steps(120), throughputs)
    assert steady.startup == 4
    assert said(steady) == snapshot
    assert steady.window.wall_throughput == pytest.approx(1000, rel=0.005)


@pytest.mark.parametrize("lines", [4, 6, 20, 60])
def test_compiling_at_iteration_0_is_start_up_and_later_evaluations_are_stalls(lines):
    """Lines of 0.5 s; the first compiles for 60 s, and one in ten evaluates for 20 s, the first too."""
    seconds = np.full(lines, 0.5)
    seconds[::10] += 20
    seconds[0] += 60
    part = steady_part(10 * np.arange(lines), 64 / seconds)
    assert part.startup == 1
    assert [family.lines[0] for family in part.stalls] == [10] * (lines > 10)
    assert part.window.wall_throughput == pytest.approx(128)


@pytest.mark.parametrize("period", [7, 10, 23])
def test_periodic_stalls_are_found_with_their_period(period):
    throughputs = noisy(120)
    throughputs[period::period] /= 4
    steady = steady_part(steps(120), throughputs)
    (family,) = steady.stalls
    assert list(family.lines) == list(range(period, 120, period))
    assert family.period_steps == pytest.approx(10 * period)
    assert not steady.window.kept[family.lines].any()


@pytest.mark.parametrize(("factor", "left_out"), [(1.5, 0), (2.5, 0), (4.0, 4)])
def test_slow_lines_at_no_regular_distance_are_stalls_above_three_times_the_median(factor, left_out):
    throughputs = noisy(120)
    throughputs[[20, 31, 77, 80]] /= factor
    steady = steady_part(steps(120), throughputs)
    assert [(family.period_steps, family.lines.size) for family in steady.stalls] == [(None, 4)] * bool(left_out)
    assert np.count_nonzero(~steady.window.kept) == left_out
    assert ("which count" in said(steady)) is not bool(left_out)
    with_all = 120 / (1 / throughputs).sum()
    assert steady.throughput_of_all == pytest.approx(with_all)
    assert steady.window.wall_throughput == pytest.approx(1000 if left_out else with_all, rel=0.003)


def test_slow_lines_that_count_are_no_levels_and_leave_the_rest_steady():
    for seed in range(40):
        generator = np.random.default_rng(seed)
        throughputs = 1000 * (1 + 0.01 * generator.standard_normal(300))
        throughputs[10 + generator.choice(290, 29, replace=False)] /= 1.5
        steady = steady_part(steps(300), throughputs)
        assert (steady.behaviour, steady.steadiness.is_steady) == (Behaviour.FLAT, True)
        assert steady.window.kept.all()


def test_lines_after_stalls_that_are_slow_together_are_left_out(snapshot):
    throughputs = noisy(200)
    throughputs[10::10] /= 4
    assert "after a stall" not in said(steady_part(steps(200), throughputs))
    throughputs[11::10] *= 0.96
    assert said(steady_part(steps(200), throughputs)) == snapshot


def test_lines_that_are_too_fast_are_left_out():
    throughputs = noisy(60)
    throughputs[30] *= 5
    steady = steady_part(steps(60), throughputs)
    assert "too fast: 1 line" in said(steady)
    assert not steady.window.kept[30]


def test_a_series_that_drifts_is_not_steady(snapshot):
    steady = steady_part(steps(120), np.linspace(1000, 2000, 120))
    assert steady.steadiness.answer is Answer.NOT_STEADY
    assert said(steady) == snapshot


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_few_lines_tell_nothing(count):
    steady = steady_part(steps(count), noisy(count))
    assert steady.steadiness.answer is Answer.INCONCLUSIVE
    assert steady.window.kept.all()


def test_the_validation_of_a_real_log_is_found_without_being_told():
    """It says ``validation_interval_step: 2000`` and ``steps_per_epoch: 5058``; nothing here reads that."""
    rows = read_log(PLSC).series("throughput")
    steady = steady_part(rows.step, rows.values["throughput"])
    validation, epochs = steady.stalls
    assert validation.period_steps == pytest.approx(2000)
    assert list(rows.step[validation.lines]) == list(range(2100, 126400, 2000))
    assert epochs.period_steps == pytest.approx(5058, abs=5)
    assert (steady.startup, steady.steadiness.is_steady) == (1, True)


def test_the_wall_throughput_is_samples_over_seconds_and_never_above_the_mean_of_throughputs():
    throughputs = np.array([500.0, 1000.0] * 10)
    window = fixed_window(np.arange(10, 210, 10), throughputs, 0, 1000)
    assert window.wall_throughput == pytest.approx(2 / (1 / 500 + 1 / 1000))
    assert window.mean_step_throughput == pytest.approx(750)


def test_lines_count_as_the_steps_they_stand_for_also_after_missing_lines():
    window = fixed_window(np.array([10, 20, 30, 35]), np.array([100.0, 100.0, 100.0, 300.0]), 0, 100)
    assert window.wall_throughput == pytest.approx((10 + 10 + 10 + 5) / (0.1 + 0.1 + 0.1 + 5 / 300))
    window = fixed_window(np.array([10, 20, 30, 500, 510]), np.array([100.0, 100.0, 100.0, 50.0, 100.0]), 0, 1000)
    assert window.wall_throughput == pytest.approx(50 / (4 * 10 / 100 + 10 / 50))
    assert list(cumulative_steps(np.array([10, 20, 30, 10, 20, 30]))) == [10, 20, 30, 40, 50, 60]


def test_the_windows_of_dlperf_are_a_hundred_steps():
    throughputs = np.linspace(900, 1100, 200)
    window = fixed_window(np.arange(200), throughputs, 20, 120)
    assert list(np.flatnonzero(window.kept)) == list(range(20, 120))
    assert window.mean_step_throughput == pytest.approx(throughputs[20:120].mean())
    assert (window.reasons, window.is_full) == (("steps 20 to 119",), True)


def test_a_window_that_is_not_full_says_so():
    window = fixed_window(np.arange(100), np.full(100, 1000.0), 20, 120)
    assert (window.reasons, window.is_full) == (("steps 20 to 119; the log ends at step 99, before it is full",), False)
    assert np.isnan(fixed_window(np.arange(10), np.full(10, 1000.0), 20, 120).mean_step_throughput)


@pytest.mark.parametrize("unnumbered", [[], [-1]])
def test_a_log_without_step_numbers_ends_at_no_step(unnumbered, snapshot):
    window = fixed_window(np.array(unnumbered, dtype=int), np.ones(len(unnumbered)), 20, 120)
    assert window.reasons == snapshot


def test_a_window_is_full_with_the_last_line_that_it_can_have():
    """Lines are ten steps apart: after that of step 110 the next is outside the window."""
    steps, throughputs = np.arange(10, 120, 10), np.full(11, 1000.0)
    assert fixed_window(steps, throughputs, 20, 120).is_full
    assert not fixed_window(steps[:-1], throughputs[:-1], 20, 120).is_full
