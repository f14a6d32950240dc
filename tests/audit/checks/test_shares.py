import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number

TASK = number("task_process_seconds", "143.789", 2)
EXCHANGE = number("report_gradient_seconds", "33.6484", 2)


@pytest.mark.parametrize(
    ("metric", "printed"), [("computation_to_communication", "10 : 3"), ("communication_share", "23.4%")]
)
def test_a_share_that_follows_from_the_times(metric, printed):
    assert examined("shares", [TASK, EXCHANGE, number(metric, printed, 2)])[0] is None


@pytest.mark.parametrize(
    ("metric", "printed"), [("computation_to_communication", "10 : 4"), ("communication_share", "30%")]
)
def test_a_share_that_does_not(metric, printed):
    [diagnostic] = found("shares", [TASK, EXCHANGE, number(metric, printed, 2)])
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation.endswith(f"printed {printed}")


def beside(speedup, share="66.7%"):
    return [number("communication_share", share, 8), number("speedup", speedup, 8)]


def test_a_speedup_that_communication_allows():
    assert examined("shares", beside("2.66")) == [None]


def test_a_speedup_that_communication_forbids():
    [diagnostic] = found("shares", beside("4.00"))
    assert diagnostic.severity is Severity.WARNING
    assert "8 devices can be at most 2.66 times as fast as one; printed 4.00" in diagnostic.computation


def test_a_speedup_far_below_is_worth_a_note():
    [diagnostic] = found("shares", beside("1.83"))
    assert diagnostic.severity is Severity.NOTE
    assert diagnostic.computation.endswith("so 31% more is lost")


@pytest.mark.parametrize(
    ("share", "devices", "examinations"),
    [("50%", 1, 0), ("50%", 2, 1), ("100%", 2, 1), ("120%", 2, 0), ("120%", 1, 0)],
)
def test_a_speedup_is_compared_with_shares_of_several_devices_up_to_all_of_the_time(share, devices, examinations):
    rows = [number("communication_share", share, devices), number("speedup", "1.0", devices)]
    assert len(examined("shares", rows)) == examinations


def test_an_exchange_that_takes_no_time_is_compared_with_no_share():
    none = number("report_gradient_seconds", "0", 2)
    assert examined("shares", [TASK, none, number("computation_to_communication", "10 : 3", 2)]) == []


def test_the_terms_of_a_ratio_are_in_its_order():
    [diagnostic] = found("shares", [TASK, EXCHANGE, number("computation_to_communication", "10 : 4", 2)])
    assert "(143.789 − 33.6484) : 33.6484 = 10 : 3.06" in diagnostic.computation


def test_where_communication_takes_all_of_the_time_no_more_can_be_lost():
    negative = number("speedup", "5", 2) | {"value": -5.0, "printed": "-5"}
    [diagnostic] = found("shares", [number("communication_share", "1.00", 2), negative])
    assert diagnostic.computation.endswith("2 devices can be at most 0 times as fast as one; printed -5")
