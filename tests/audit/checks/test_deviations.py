import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number, rate, runs

RUNS = [rate("100.4"), *runs(["100.1", "101.3", "99.8"])]


def deviation(printed):
    return number("standard_deviation", printed, runs_of="table/throughput/1")


@pytest.mark.parametrize("printed", ["0.8", "0.79", "0.65", "0.6"])
def test_of_a_sample_or_of_all_there_are(printed):
    assert examined("deviations", [*RUNS, deviation(printed)]) == [None]


def test_another_deviation():
    [diagnostic] = found("deviations", [*RUNS, deviation("1.2")])
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == "the standard deviation of 100.1, 101.3, 99.8 is 0.7937, printed 1.2"


def test_a_deviation_without_two_runs_is_not_examined():
    assert examined("deviations", [deviation("1.2")]) == []
    assert examined("deviations", [rate("100.4"), *runs(["100.1"]), deviation("1.2")]) == []
