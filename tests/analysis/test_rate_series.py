from pathlib import Path

import numpy as np
import pytest

from dlperf_study.analysis.rate_series import SteadyPart, steady_part, two_levels
from dlperf_study.logs.log_reader import read_log

PLSC = Path(__file__).parent.parent / "logs" / "samples" / "plsc_2_2_complete_real.log.gz"


def noisy(count: int, spread: float = 0.01) -> np.ndarray:
    return 1000.0 * (1 + spread * np.random.default_rng(7).standard_normal(count))


def steps(count: int, spacing: int = 10) -> np.ndarray:
    return np.arange(spacing, spacing * (count + 1), spacing)


def said(steady: SteadyPart) -> str:
    return "\n".join(steady.window.reasons)


def test_a_steady_series_is_kept_whole() -> None:
    steady = steady_part(steps(120), noisy(120))
    assert steady.window.kept.all()
    assert (steady.startup, steady.stalls, steady.settled, steady.window.reasons) == (0, (), True, ())


def test_half_a_log_at_another_level_is_no_start_up() -> None:
    rates = noisy(200)
    rates[100:] /= 2
    steady = steady_part(steps(200), rates)
    first, second = two_levels(steady, rates) or (0.0, 0.0)
    assert (first, second) == (pytest.approx(1000, rel=0.01), pytest.approx(500, rel=0.01))


def test_a_start_up_is_no_level_of_its_own() -> None:
    rates = noisy(200, 0.002) * (1 - 0.2 * np.exp(-np.arange(200) / 15))
    assert two_levels(steady_part(steps(200), rates), rates) is None


def test_a_start_up_is_cut_off() -> None:
    rates = noisy(120)
    rates[:4] = (80, 500, 800, 900)
    steady = steady_part(steps(120), rates)
    assert steady.startup == 4
    assert "the first 4 lines, up to step 40" in said(steady)
    assert steady.window.wall_rate == pytest.approx(1000, rel=0.005)


def test_a_slow_start_up_is_cut_off_as_in_steady_state() -> None:
    rates = noisy(200, 0.002) * (1 - 0.2 * np.exp(-np.arange(200) / 15))
    steady = steady_part(steps(200), rates)
    assert 20 < steady.startup < 100
    assert steady.settled


@pytest.mark.parametrize("period", [7, 10, 23])
def test_periodic_stalls_are_found_with_their_period(period: int) -> None:
    rates = noisy(120)
    rates[period::period] /= 4
    steady = steady_part(steps(120), rates)
    (family,) = steady.stalls
    assert list(family.lines) == list(range(period, 120, period))
    assert family.period_steps == pytest.approx(10 * period)
    assert not steady.window.kept[family.lines].any()


def test_stalls_at_no_regular_distance_are_stalls_too() -> None:
    rates = noisy(120)
    rates[[20, 31, 77, 80]] /= 3
    (family,) = steady_part(steps(120), rates).stalls
    assert (family.period_steps, family.lines.size) == (None, 4)


def test_lines_after_stalls_that_are_slow_together_are_left_out() -> None:
    rates = noisy(200)
    rates[10::10] /= 4
    assert "after a stall" not in said(steady_part(steps(200), rates))
    rates[11::10] *= 0.96
    assert "after a stall: 19 lines" in said(steady_part(steps(200), rates))


def test_lines_that_are_too_fast_are_left_out() -> None:
    rates = noisy(60)
    rates[30] *= 5
    steady = steady_part(steps(60), rates)
    assert "too fast: 1 line" in said(steady)
    assert not steady.window.kept[30]


def test_a_series_that_drifts_is_not_steady() -> None:
    steady = steady_part(steps(120), np.linspace(1000, 2000, 120))
    assert steady.settled is False
    assert "drifts" in said(steady)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_few_lines_tell_nothing(count: int) -> None:
    steady = steady_part(steps(count), noisy(count))
    assert steady.settled is None
    assert steady.window.kept.all()


def test_the_validation_of_a_real_log_is_found_without_being_told() -> None:
    """It says ``validation_interval_step: 2000`` and ``steps_per_epoch: 5058``; nothing here reads that."""
    rows = read_log(PLSC).series("throughput")
    steady = steady_part(rows.step, rows.values["throughput"])
    validation, epochs = steady.stalls
    assert validation.period_steps == pytest.approx(2000)
    assert list(rows.step[validation.lines]) == list(range(2100, 126400, 2000))
    assert epochs.period_steps == pytest.approx(5058, abs=5)
    assert (steady.startup, steady.settled) == (1, True)
