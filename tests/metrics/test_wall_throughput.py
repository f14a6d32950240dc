"""Constructed logs of 120 samples per line: printed rates, and the times at which the lines were printed."""

import re

import numpy as np
import pytest

from dlperf_study.core.arrays import Floats
from dlperf_study.metrics.ingested import WallThroughput, throughput_between, wall_throughput
from dlperf_study.metrics.throughput_series import steady_part

LINES, STEPS_PER_LINE, BATCH = 200, 10, 12
STEPS = np.arange(STEPS_PER_LINE, STEPS_PER_LINE * (LINES + 1), STEPS_PER_LINE)
#: Seconds of each line: 1.2, of the first three more.
SECONDS = 1.2 * (1 + 0.01 * np.random.default_rng(4).standard_normal(LINES)) * np.where(np.arange(LINES) < 3, 4, 1)
#: A validation of 30 s every 50 lines.
VALIDATION = np.where(np.arange(LINES) % 50 == 25, 30.0, 0.0)
PRINTED = BATCH * STEPS_PER_LINE / SECONDS
FROM_START_UP_ON = 120.0 * (LINES - 4) / (SECONDS[4:] + VALIDATION[4:]).sum()


def wall(times: Floats, printed: Floats = PRINTED) -> WallThroughput:
    return wall_throughput(STEPS, times, steady_part(STEPS, printed), BATCH)


def throughput(times: Floats, printed: Floats = PRINTED) -> float:
    by_clock = wall(times, printed)
    assert not by_clock.obstacle
    return by_clock.throughput


def test_validation_is_in_the_throughput_by_the_clock_whether_or_not_it_is_in_the_printed_ones():
    times = 1.6e9 + np.cumsum(SECONDS + VALIDATION)
    assert throughput(times) == pytest.approx(FROM_START_UP_ON, rel=0.002)
    assert throughput(times) < 0.75 * steady_part(STEPS, PRINTED).window.wall_throughput
    stalled = BATCH * STEPS_PER_LINE / (SECONDS + VALIDATION)
    assert throughput(1.6e9 + np.cumsum(SECONDS + VALIDATION), stalled) == pytest.approx(FROM_START_UP_ON, rel=0.002)


def test_missing_and_whole_seconds_and_midnight_are_no_matter():
    times = np.floor(86400 - 100 + np.cumsum(SECONDS + VALIDATION)) % 86400
    assert throughput(times) == pytest.approx(FROM_START_UP_ON, rel=0.01)
    times = 1.6e9 + np.cumsum(SECONDS + VALIDATION)
    times[::3] = np.nan
    assert throughput(times) == pytest.approx(FROM_START_UP_ON, rel=0.03)


@pytest.mark.parametrize(("timed", "obstacle"), [(0, "its lines have no times"), (8, "fewer than 9 of its lines")])
def test_without_times_there_is_no_throughput_by_the_clock(timed, obstacle):
    by_clock = wall(np.where(np.arange(LINES) >= LINES - timed, 1.6e9 + np.cumsum(SECONDS), np.nan))
    assert by_clock.obstacle.startswith(obstacle)
    assert (np.isnan(by_clock.throughput), by_clock.misfit) == (True, "")


def test_times_that_are_too_coarse_say_nothing_of_the_throughput():
    by_clock = wall(np.floor(np.cumsum(SECONDS) / 5))
    assert re.search(r"too coarse: 4\d(\.\d)? s between .* needs 100 s", by_clock.obstacle)
    assert (np.isnan(by_clock.throughput), by_clock.misfit) == (True, "")


def test_times_that_contradict_the_printed_throughputs_give_none_and_say_so(snapshot):
    by_clock = wall(np.cumsum(SECONDS), PRINTED / 8)
    assert np.isnan(by_clock.throughput)
    assert by_clock.misfit == snapshot
    assert "12.4945 samples/s are printed" in by_clock.misfit


def test_pauses_between_epochs_contradict_no_printed_throughput():
    epochs, pauses = np.arange(LINES) // 2, np.where(np.arange(LINES) % 2 == 0, 30.0, 0.0)
    times = np.cumsum(SECONDS + pauses)
    steady = steady_part(STEPS, PRINTED)
    assert wall_throughput(STEPS, times, steady, BATCH).misfit
    by_clock = wall_throughput(STEPS, times, steady, BATCH, epochs)
    assert not by_clock.misfit
    assert by_clock.throughput == pytest.approx(120.0 * (LINES - 4) / (SECONDS[4:] + pauses[4:]).sum(), rel=0.002)


def test_times_that_go_backwards_say_so():
    times = 1.6e9 + np.cumsum(SECONDS)
    times[100:] -= 50
    by_clock = wall(times)
    assert by_clock.misfit == "times go backwards"


def test_the_throughput_between_two_lines_is_that_of_the_99_steps_between_them():
    """DLPerf's rule by the clock: from the line of step 20 to that of step 119, a stall included."""
    steps = np.arange(150)
    times = 1.6e9 + np.cumsum(np.where(steps == 70, 5.0, 0.5))
    seconds = 98 * 0.5 + 5.0
    assert throughput_between(steps, times, 20, 119, BATCH) == pytest.approx(99 * BATCH / seconds)
    at_midnight = (times - times[60] + 86_390) % 86_400
    assert throughput_between(steps, at_midnight, 20, 119, BATCH) == pytest.approx(99 * BATCH / seconds)
    assert np.isnan(throughput_between(steps[:119], times[:119], 20, 119, BATCH))
    assert np.isnan(throughput_between(steps, np.where(steps == 20, np.nan, times), 20, 119, BATCH))
    assert np.isnan(throughput_between(steps, np.floor(times), 20, 119, BATCH))
