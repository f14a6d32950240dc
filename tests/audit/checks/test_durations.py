from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number


def test_a_step_of_seconds_is_one():
    assert examined("durations", [number("step_seconds", "22.17"), number("step_seconds", "0.32", 2)]) == [None, None]


def test_a_step_of_minutes_looks_like_milliseconds():
    [diagnostic] = found("durations", [number("step_seconds", "320")])
    assert diagnostic.severity is Severity.WARNING
    assert diagnostic.computation == "step_seconds is 320, which is 5.33 minutes. It looks like milliseconds"


def test_a_step_may_take_a_hundred_seconds():
    assert examined("durations", [number("step_seconds", "100")]) == [None]
    assert len(found("durations", [number("step_seconds", "101")])) == 1
