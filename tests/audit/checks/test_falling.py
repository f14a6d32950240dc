from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate, runs


def test_a_rising_curve_is_fine():
    assert examined("falling", [rate("100"), rate("101", 2)]) == [None]


def test_equal_numbers_are_no_fall():
    assert found("falling", [rate("680", 4), rate("680", 8)]) == []


def test_a_fall_that_errors_may_explain_is_worth_a_note():
    [diagnostic] = found("falling", [rate("680", 4), rate("648", 8)])
    assert diagnostic.severity is Severity.NOTE
    assert "a fall of 4.7%" in diagnostic.computation
    assert "may explain the fall, not that nothing was gained" in diagnostic.computation


def test_a_fall_that_errors_do_not_explain_is_diagnosed():
    [diagnostic] = found("falling", [rate("6862.17", 8), rate("6018.46", 16)])
    assert diagnostic.severity is Severity.WARNING
    assert "assumed where no runs are listed, do not explain it" in diagnostic.computation


def test_a_fall_within_the_intervals_of_runs_is_worth_a_note():
    lists = runs(["600", "680", "700"], 4) + runs(["590", "648", "690"], 8)
    [diagnostic] = found("falling", [rate("680", 4), rate("648", 8), *lists])
    assert diagnostic.severity is Severity.NOTE


def test_a_fall_beyond_the_intervals_of_runs_is_diagnosed():
    lists = runs(["679", "680", "681"], 4) + runs(["647", "648", "649"], 8)
    [diagnostic] = found("falling", [rate("680", 4), rate("648", 8), *lists])
    assert diagnostic.severity is Severity.WARNING
    assert "the intervals of their runs do not explain it" in diagnostic.computation
