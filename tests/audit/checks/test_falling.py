import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate, runs


def test_a_rising_curve_is_fine():
    assert examined("falling", [rate("100"), rate("101", 2)]) == [None]


def test_equal_numbers_are_no_fall():
    assert found("falling", [rate("680", 4), rate("680", 8)]) == []


def test_a_fall_that_the_rounding_of_both_numbers_explains_is_none():
    assert found("falling", [rate("10", 4), rate("9.9", 8)]) == []


@pytest.mark.parametrize(("before", "after", "fall"), [("680", "648", "4.7%"), ("6862.17", "6018.46", "12.3%")])
def test_a_fall_without_runs_is_worth_a_note(before, after, fall):
    [diagnostic] = found("falling", [rate(before, 8), rate(after, 16)])
    assert diagnostic.severity is Severity.NOTE
    assert f"a fall of {fall}; without runs of both, chance may explain it" in diagnostic.computation
    assert diagnostic.computation.endswith(", but not that more devices gained nothing")


def test_a_rate_that_more_than_halves_does_so_by_no_chance():
    [diagnostic] = found("falling", [rate("9000", 2), rate("3", 4)])
    assert diagnostic.severity is Severity.WARNING
    assert diagnostic.computation.endswith(", a fall of more than 99.9%")


def test_a_fall_within_the_intervals_of_runs_is_worth_a_note():
    lists = runs(["600", "680", "700"], 4) + runs(["590", "648", "690"], 8)
    [diagnostic] = found("falling", [rate("680", 4), rate("648", 8), *lists])
    assert diagnostic.severity is Severity.NOTE


def test_a_fall_beyond_the_intervals_of_runs_is_diagnosed():
    lists = runs(["679", "680", "681"], 4) + runs(["647", "648", "649"], 8)
    [diagnostic] = found("falling", [rate("680", 4), rate("648", 8), *lists])
    assert diagnostic.severity is Severity.WARNING
    assert "the spread of their runs does not explain it" in diagnostic.computation


def test_many_steps_are_judged_together():
    pair = runs(["676", "680", "684"], 4) + runs(["664", "668", "672"], 8)
    alone = [rate("680", 4), rate("668", 8), *pair]
    many = [dict(row, table=f"t{n}", series=f"t{n}", cell=f"t{n}/{row['cell']}") for n in range(9) for row in alone]
    many = [row | ({"runs_of": f"{row['table']}/{row['runs_of']}"} if "runs_of" in row else {}) for row in many]
    severities = [{diagnostic.severity for diagnostic in found("falling", rows)} for rows in (alone, many)]
    assert severities == [{Severity.WARNING}, {Severity.NOTE}]


def test_numbers_whose_rounding_meets_do_not_fall():
    assert examined("falling", [rate("10", 4), rate("9", 8)]) == [None]
    assert len(found("falling", [rate("10.0", 4), rate("9.8", 8)])) == 1
