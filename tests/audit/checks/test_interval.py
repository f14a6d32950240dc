import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate


@pytest.mark.parametrize(("low", "high"), [(394, 396), (395.04, 395.2), (395, 395)])
def test_a_number_lies_in_its_interval_to_its_last_digit(low, high):
    assert examined("interval", [rate("395.0", low=low, high=high)]) == [None]


@pytest.mark.parametrize(("low", "high"), [(105, 110), (50, 99)])
def test_a_number_outside_is_wrong(low, high):
    [diagnostic] = found("interval", [rate("100.0", low=low, high=high)])
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == f"100.0 is outside its own interval [{low}, {high}]"


def test_an_interval_does_not_end_before_it_begins():
    [diagnostic] = found("interval", [rate("200.0", low=210, high=190)])
    assert diagnostic.computation == "the interval of 200.0 is [210, 190]: its lower bound is above its upper bound"


def test_a_number_without_an_interval_is_not_examined():
    assert examined("interval", [rate("200.0", low=190), rate("200.0", 2)]) == []
