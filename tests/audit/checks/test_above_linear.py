import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate, runs


def test_linear_and_below_is_fine():
    assert examined("above_linear", [rate("100"), rate("200", 2), rate("390", 4)]) == [None, None]


def test_rounding_is_no_reason_for_warning():
    assert found("above_linear", [rate("1"), rate("3", 2)]) == []


def test_far_above_linear_is_diagnosed():
    lists = runs(["2545.1", "2545.3", "2546.0"], 8) + runs(["5953.0", "5953.84", "5955.0"], 16)
    [diagnostic] = found("above_linear", [rate("2545.3", 8), rate("5953.84", 16), *lists])
    assert diagnostic.severity is Severity.WARNING
    assert diagnostic.computation.startswith("from 8 to 16 devices the rate goes from 2545.3 to 5953.84: 2.339 times")
    assert "17.0% above linear" in diagnostic.computation
    assert diagnostic.explanations


def test_more_than_twice_linear_is_wrong_and_has_no_innocent_cause():
    [diagnostic] = found("above_linear", [rate("200.1", 8), rate("3400", 16)])
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation.endswith("749.6% above linear")
    assert "cache" not in "".join(diagnostic.explanations)


@pytest.mark.parametrize("printed", ["3598.0", "5000.0"])
def test_without_runs_it_is_worth_a_note(printed):
    [diagnostic] = found("above_linear", [rate("887.17"), rate(printed, 4)])
    assert diagnostic.severity is Severity.NOTE
    assert diagnostic.computation.endswith("; without runs of both, chance may explain it")


def test_what_the_spread_of_runs_explains_is_worth_a_note():
    lists = runs(["850", "887.17", "910"]) + runs(["3500", "3598.0", "3700"], 4)
    [diagnostic] = found("above_linear", [rate("887.17"), rate("3598.0", 4), *lists])
    assert diagnostic.severity is Severity.NOTE
    assert diagnostic.computation.endswith("; the spread of their runs may explain it")


def test_an_interval_of_the_table_is_as_good_as_runs():
    narrow = [rate("887.17", low=887.0, high=887.3), rate("3598.0", 4, low=3597.0, high=3599.0)]
    [diagnostic] = found("above_linear", narrow)
    assert diagnostic.severity is Severity.WARNING


def test_runs_that_agree_make_the_same_step_uncertain():
    lists = runs(["887.1", "887.2", "887.3"]) + runs(["3597.9", "3598.0", "3598.1"], 4)
    [diagnostic] = found("above_linear", [rate("887.17"), rate("3598.0", 4), *lists])
    assert diagnostic.severity is Severity.WARNING
    assert "the spread of their runs does not explain it" in diagnostic.computation


def test_other_series_are_not_mixed():
    assert examined("above_linear", [rate("100"), rate("900", 2, table="other")]) == []


def test_a_mean_with_a_median_is_not_examined_again():
    both = [
        rate(text, devices, estimator=estimator, cell=f"{estimator}/{devices}")
        for estimator in ("median", "mean")
        for text, devices in (("100", 1), ("300", 2))
    ]
    assert len(found("above_linear", both)) == 1


@pytest.mark.parametrize(("printed", "severity"), [("390.0", Severity.NOTE), ("410.0", Severity.ERROR)])
def test_twice_linear_is_the_most_that_may_be_explained(printed, severity):
    [diagnostic] = found("above_linear", [rate("100.0"), rate(printed, 2)])
    assert diagnostic.severity is severity
