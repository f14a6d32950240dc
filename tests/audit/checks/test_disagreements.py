from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, rate


def twice(one, other, **changes):
    return [rate(one, 8, table="one", nodes=2), rate(other, 8, table="other", nodes=2) | changes]


def test_tables_that_agree():
    assert examined("disagreements", twice("352.72", "352.72")) == [None]


def test_fewer_digits_agree_too():
    assert found("disagreements", twice("352.72", "352")) == []
    assert found("disagreements", twice("352.72", "353")) == []


def test_a_small_difference_is_worth_a_note():
    [diagnostic] = found("disagreements", twice("352.72", "354.00"))
    assert diagnostic.severity is Severity.NOTE
    assert diagnostic.computation == "352.72 (one/throughput/8), 354.00 (other/throughput/8): up to 0.36% apart"


def test_a_large_one_is_diagnosed():
    [diagnostic] = found("disagreements", twice("352.72", "400.00"))
    assert diagnostic.severity is Severity.WARNING


def test_a_factor_of_nodes_or_devices_is_named():
    assert "the factor of its nodes" in found("disagreements", twice("352.72", "705.44"))[0].computation
    assert "the factor of its devices" in found("disagreements", twice("100", "800"))[0].computation


def test_another_condition_is_another_configuration():
    assert examined("disagreements", twice("352.72", "400.00", mode="replicated")) == []


def test_a_mean_is_not_held_against_a_median():
    assert examined("disagreements", twice("352.72", "353.1", estimator="mean")) == []


def test_a_configuration_that_is_printed_once_hides_no_other():
    assert len(found("disagreements", [rate("5", 4, table="one"), *twice("352.72", "354.00")])) == 1


def test_a_difference_on_one_device_is_no_factor_of_it():
    [diagnostic] = found("disagreements", [rate("100.0", table="one"), rate("100.9", table="other")])
    assert "factor" not in diagnostic.computation


def test_a_number_that_is_twice_in_one_table_is_worth_a_note():
    [diagnostic] = found("disagreements", [rate("352.72", 8), rate("352.72", 8, cell="again")])
    assert diagnostic.severity is Severity.NOTE
    assert diagnostic.computation == "352.72 is 2 times in one table, for the same configuration"
    [diagnostic] = found("disagreements", [rate("352.72", 8), rate("400.00", 8, cell="again")])
    assert diagnostic.severity is Severity.WARNING


def test_of_several_tables_the_smallest_and_the_largest_number_are_compared():
    rows = [rate(text, 8, table=table) for table, text in (("a", "352.72"), ("b", "400.00"), ("c", "352.80"))]
    [diagnostic] = found("disagreements", rows)
    assert diagnostic.severity is Severity.WARNING
    assert diagnostic.computation.endswith("up to 13.40% apart")


def test_exactly_three_per_cent_is_worth_a_note():
    assert found("disagreements", twice("100.0", "103.0"))[0].severity is Severity.NOTE


def test_of_a_number_that_is_repeated_with_other_digits_the_first_is_named():
    [diagnostic] = found("disagreements", [rate("352.72", 8), rate("352.7", 8, cell="again")])
    assert diagnostic.computation == "352.72 is 2 times in one table, for the same configuration"


def test_of_two_factors_that_fit_that_of_the_devices_is_named():
    rates = [rate(text, 101, table=table, nodes=100) for text, table in (("100.0", "a"), ("10050.0", "b"))]
    [diagnostic] = found("disagreements", rates)
    assert diagnostic.computation.endswith("the factor of its devices: their scopes may differ")
