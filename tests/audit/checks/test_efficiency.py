import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate, ratio


def rows(efficiency):
    return [rate("100"), rate("700", 8), ratio("speedup", "7.0", 8), ratio("efficiency", efficiency, 8)]


@pytest.mark.parametrize("printed", ["0.875", "87.5%", "0.88", "87%"])
def test_an_efficiency_that_agrees_with_its_speedup(printed):
    assert examined("efficiency", rows(printed)) == [None]


@pytest.mark.parametrize("printed", ["0.7", "90%", "0.85"])
def test_two_different_things(printed):
    [diagnostic] = found("efficiency", rows(printed))
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == f"7.0 × 1 / 8 = 0.875, printed {printed}"


def test_other_baselines_are_not_compared():
    other = {"baseline": "other/throughput/1"}
    single = rate("50", table="other")
    assert examined("efficiency", [single, *rows("0.875")[:3], ratio("efficiency", "0.5", 8) | other]) == []


def test_an_efficiency_that_can_not_be_compared_hides_no_other():
    other = {"baseline": "other/throughput/1"}
    incomparable = [rate("50", table="other"), *rows("0.875")[:3], ratio("efficiency", "0.5", 8) | other]
    further = [rate("1500", 16), ratio("speedup", "15.0", 16), ratio("efficiency", "0.5", 16)]
    [diagnostic] = found("efficiency", [*incomparable, *further])
    assert diagnostic.computation == "15.0 × 1 / 16 = 0.9375, printed 0.5"
