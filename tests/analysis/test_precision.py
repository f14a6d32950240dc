"""The widest interval of a configuration, and how many runs would narrow it."""

import math

import numpy as np
import pytest

from dlperf_study.dataset.wanted_precision import Precision, precisions, too_wide, widest
from dlperf_study.metrics.statistics import Estimate, Sample, is_precise
from dlperf_study.study.plan import Plan, build_plan
from tests.study.examples import anything_goes, cluster, study

ROUNDS = np.arange(1.0, 11.0)
NOISE = np.tile([0.02, -0.01, 0.03, -0.04, 0.0], 2)


def plan(precision: float | None = 0.02) -> Plan:
    """A baseline and two others."""
    example = study(factors={"devices_per_node": [1, 2, 4]}, precision=precision)
    return build_plan(example, cluster(), anything_goes)


def sample(*factors: float) -> Sample:
    return Sample(np.exp(np.array(factors)) * 100, ROUNDS[: len(factors)])


def precision_of(*logarithms: float) -> Precision:
    return Precision("throughput", Estimate.of(logarithms), np.array(logarithms))


def test_the_half_width_is_that_of_the_t_interval():
    # Standard error 0.01 / sqrt(3), t(2) = 4.303.
    assert precision_of(1.0, 1.01, 1.02).half_width == pytest.approx(math.expm1(0.01 / math.sqrt(3) * 4.3027), 1e-4)
    assert precision_of(1.0, 1.01).half_width is None


@pytest.mark.parametrize(("deviation", "runs"), [(0.01, 7), (0.018, 15), (0.03, 38)])
def test_further_runs_for_one_per_cent(deviation, runs):
    """Twice those of t(n - 1) s / sqrt(n) = log(1.01); by tables of Student's distribution, and of chi squared."""
    for quartile, chi_squared in enumerate((2.7726, 0.5754)):
        # A sample with this deviation of its three runs, of which this quartile of the true one is ``deviation``.
        sampled = deviation / math.sqrt(2 / chi_squared)
        further = Precision("throughput", Estimate(0.0, sampled / math.sqrt(3), 2), np.zeros(3)).further_runs(0.01)
        assert further is not None
        assert further[quartile] == pytest.approx(2 * runs - 3, abs=2)


def test_three_runs_that_differ_little_by_chance_need_three_more_at_least():
    narrow = Precision("throughput", Estimate(0.0, 1e-6, 2), np.zeros(3))
    assert narrow.further_runs(0.01) == (3, 3)
    assert Precision("throughput", Estimate(0.0), np.zeros(3)).further_runs(0.01) is None


def test_a_ratio_may_be_wider_than_both_throughputs_and_asks_for_its_baseline():
    one, two, four = plan().entries
    throughputs = {
        one.configuration.identity: sample(*(0.1 * NOISE)),
        two.configuration.identity: sample(*(-0.6 * NOISE)),
        four.configuration.identity: sample(*(0.11 * NOISE)),
    }
    assert [precision.column for precision in precisions(one, throughputs)] == ["throughput"]
    assert [precision.column for precision in precisions(two, throughputs)] == ["throughput", "speedup"]
    assert widest(two, throughputs).column == "speedup"  # type: ignore[union-attr]
    assert too_wide(plan(), throughputs) == {one.configuration.identity, two.configuration.identity}
    assert too_wide(plan(0.2), throughputs) == set()
    assert too_wide(plan(None), throughputs) == set()


def test_a_configuration_without_an_interval_is_too_wide_and_one_that_never_ran_is_not():
    one, two, _ = plan().entries
    narrow = sample(*(0.1 * NOISE[:8]))
    throughputs = {one.configuration.identity: narrow, two.configuration.identity: sample(0, 0)}
    assert too_wide(plan(), throughputs) == {one.configuration.identity, two.configuration.identity}
    assert too_wide(plan(), {one.configuration.identity: narrow}) == set()


def test_as_many_runs_as_were_precise_confirm_them():
    """The interval of four is narrow enough, that of three is not; how the next four differ does not matter."""
    one, *_ = plan().entries
    identity = one.configuration.identity
    spread = 0.9 * math.log1p(0.02) * math.sqrt(4) / 3.1824 / math.sqrt(2 / 3)
    first = np.array([-spread, 0.0, spread, 0.0])
    for count in range(3, 8):
        assert too_wide(plan(), {identity: sample(*[*first, 0.1, -0.1, 0.2, 0.0][:count])}) == {identity}
    eight = sample(*first, 0.1, -0.1, 0.2, 0.0)
    assert too_wide(plan(), {identity: eight}) == set()
    assert Precision("throughput", eight.logarithms.estimate, eight.logarithms.in_order).is_wider_than(0.02)


def test_the_error_of_runs_that_ended_measuring_is_that_of_their_later_half():
    goal, rounds = math.log1p(0.02), np.arange(8.0)
    measured = np.array([-0.001, 0.0, 0.001, 0.002, 0.0, 0.2, -0.3, 0.3])
    # The order is that of the rounds, not of the values.
    shuffled = np.array([3, 1, 0, 2, 7, 5, 6, 4])
    ended = Sample(np.exp(measured[shuffled]), rounds[shuffled], goal=goal).logarithms.estimate
    assert ended.mean == pytest.approx(measured.mean())
    assert ended.error == pytest.approx(measured[4:].std(ddof=1) / math.sqrt(8))
    assert ended.freedom == 3
    # The first half of these is not precise: something else ended measuring.
    limited = Sample(np.exp(measured[::-1]), rounds, goal=goal).logarithms.estimate
    assert (limited.error, limited.freedom) == (pytest.approx(measured.std(ddof=1) / math.sqrt(8)), 7)


@pytest.mark.parametrize("spread_in_goals", [0.5, 1.0, 2.0])
def test_intervals_that_ended_measuring_hold_the_truth_also_where_they_ended_first(spread_in_goals):
    """Without runs that confirm it, 77 to 92 % of the quarter that ended first would."""
    generator, goal, covered, covered_first = np.random.default_rng(5), math.log1p(0.02), [], []
    for _ in range(400):
        runs = generator.normal(0.0, spread_in_goals * goal, 20)
        count = next(count for count in range(6, 21) if count == 20 or is_precise(runs[:count], goal))
        interval = Sample(np.exp(runs[:count]), np.arange(float(count)), goal=goal).logarithms.estimate.interval()
        covered.append(interval.low <= 0 <= interval.high)
        if count <= 8:
            covered_first.append(covered[-1])
    for part in (covered, covered_first):
        assert abs(np.mean(part) - 0.95) <= 3.5 * math.sqrt(0.05 * 0.95 / max(len(part), 1)) + 0.005
