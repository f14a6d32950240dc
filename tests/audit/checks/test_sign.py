import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number, rate


def test_rates_ratios_and_times_are_above_0():
    assert examined("sign", [rate("100"), number("speedup", "1"), number("step_seconds", "0.1")]) == [None] * 3


@pytest.mark.parametrize("value", [-200.0, 0.0])
def test_a_rate_that_is_not_is_wrong(value):
    [diagnostic] = found("sign", [rate("100") | {"value": value, "printed": f"{value:g}"}])
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == f"throughput is {value:g}, and must be above 0"


def test_no_communication_at_all_is_right():
    assert examined("sign", [number("communication_share", "0")]) == []
