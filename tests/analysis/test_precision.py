"""The widest interval of a configuration, and how many runs would narrow it."""

import math

import numpy as np
import pytest

from dlperf_study.analysis.precision import Precision, precisions, too_wide, widest
from dlperf_study.analysis.statistics import Estimate, Sample
from dlperf_study.plan.plan import Plan, build_plan
from tests.study.examples import anything_goes, cluster, study

ROUNDS = np.arange(1.0, 6.0)
NOISE = np.array([0.02, -0.01, 0.03, -0.04, 0.0])


def plan(precision: float | None = 0.02) -> Plan:
    """A baseline and two others."""
    example = study(factors={"devices_per_node": [1, 2, 4]}, precision=precision)
    return build_plan(example, cluster(), anything_goes)


def sample(*factors: float) -> Sample:
    return Sample(np.exp(np.array(factors)) * 100, ROUNDS[: len(factors)])


def test_the_half_width_is_that_of_the_t_interval() -> None:
    estimate = Estimate.of([1.0, 1.01, 1.02])
    # Standard error 0.01 / sqrt(3), t(2) = 4.303.
    assert Precision("throughput", estimate).half_width == pytest.approx(math.expm1(0.01 / math.sqrt(3) * 4.3027), 1e-4)
    assert Precision("throughput", Estimate.of([1.0, 1.01])).half_width is None


@pytest.mark.parametrize(("deviation", "runs"), [(0.0037, 3), (0.01, 7), (0.018, 15), (0.03, 38)])
def test_runs_needed_for_one_per_cent(deviation: float, runs: int) -> None:
    """t(n - 1) s / sqrt(n) = log(1.01); by a table of Student's distribution."""
    estimate = Estimate(0.0, deviation / math.sqrt(3), 2)
    assert Precision("throughput", estimate).runs_needed(0.01) == pytest.approx(runs, abs=1)


def test_a_ratio_may_be_wider_than_both_throughputs_and_asks_for_its_baseline() -> None:
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


def test_a_configuration_without_an_interval_is_too_wide_and_one_that_never_ran_is_not() -> None:
    one, two, _ = plan().entries
    narrow = sample(*(0.1 * NOISE[:4]))
    throughputs = {one.configuration.identity: narrow, two.configuration.identity: sample(0, 0)}
    assert too_wide(plan(), throughputs) == {one.configuration.identity, two.configuration.identity}
    assert too_wide(plan(), {one.configuration.identity: narrow}) == set()


def test_the_interval_of_three_runs_must_be_half_as_wide() -> None:
    """Three runs are near each other by chance more often than four."""
    one, *_ = plan().entries
    identity = one.configuration.identity
    spread = 0.9 * math.log1p(0.02) * math.sqrt(3) / 4.3027
    assert too_wide(plan(), {identity: sample(-spread, 0, spread)}) == {identity}
    assert too_wide(plan(), {identity: sample(-0.5 * spread, 0, 0.5 * spread)}) == set()
