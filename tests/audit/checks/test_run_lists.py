import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate, runs

LIST = ["397.44", "397.64", "398.05", "398.98", "397.78"]


def test_the_median_of_the_list_is_right():
    assert examined("run_lists", [rate("397.78"), *runs(LIST)]) == [None, None]


def test_a_median_of_an_even_list_may_be_rounded_or_cut_off():
    for printed in ("1.01", "1.02"):
        assert found("run_lists", [rate(printed), *runs(["1.01", "1.02"])]) == []


def test_the_mean_is_right_where_the_source_says_mean():
    assert found("run_lists", [rate("397.98", estimator="mean"), *runs(LIST)]) == []


@pytest.mark.parametrize(
    ("printed", "means"),
    [
        ("397.98", "their mean"),
        ("397.64", "run 2"),
        ("397.71", "the median without run 4 (398.98); the median without run 3 (398.05)"),
        ("398.98", "run 4"),
    ],
)
def test_a_different_number_is_wrong_and_the_matching_alternative_is_named(printed, means):
    [diagnostic] = found("run_lists", [rate(printed), *runs(LIST)])
    assert diagnostic.severity is Severity.ERROR
    computed = f"the median of {', '.join(LIST)} is 397.78, printed {printed}"
    assert diagnostic.computation == f"{computed}. That is {means}"


def test_a_number_from_nowhere_is_wrong():
    [diagnostic] = found("run_lists", [rate("400.00"), *runs(LIST)])
    assert diagnostic.computation.endswith("printed 400.00")


def test_a_run_may_be_listed_once():
    twice = [row | {"repetition": 1} for row in runs(LIST)]
    [diagnostic] = found("run_lists", [rate("397.78"), *twice])
    assert diagnostic.severity is Severity.WARNING
    assert diagnostic.computation == "run 1 is in the list more than once"


def test_as_many_runs_as_stated():
    [diagnostic] = found("run_lists", [rate("397.78", runs=7), *runs(LIST)])
    assert diagnostic.computation == "7 runs stated, and 5 listed"


def test_a_list_counts_for_all_summaries_of_its_configuration():
    again = rate("400.00", table="again")
    assert len(found("run_lists", [rate("397.78"), again, *runs(LIST)])) == 1


def test_a_run_may_not_be_listed_twice_either():
    listed = runs(["1.0", "2.0", "3.0"])
    listed[2]["repetition"] = 2
    [diagnostic] = found("run_lists", [rate("2.0"), *listed])
    assert diagnostic.computation == "run 2 is in the list more than once"


def test_of_three_runs_one_may_be_left_out_and_of_two_none():
    [diagnostic] = found("run_lists", [rate("4.5"), *runs(["1.0", "2.0", "8.0"])])
    assert diagnostic.computation.endswith("That is the median without run 2 (2.0)")
    [diagnostic] = found("run_lists", [rate("1.00"), *runs(["1.0", "2.0"])])
    assert diagnostic.computation.endswith("printed 1.00. That is run 1")
