import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number, rate, ratio, runs

#: Rates and ratios of DLPerf's table of PaddlePaddle ResNet50 v1.5, fp32.
RIGHT = [rate("352.72"), ratio("speedup", "1", 1)]


def with_speedup(printed, throughput="1358.64", **facts):
    return [*RIGHT, rate(throughput, 4, **facts), ratio("speedup", printed, 4)]


@pytest.mark.parametrize("printed", ["3.85", "3.9", "4", "3.8", "3.851", "3.852"])
def test_a_ratio_that_follows_from_its_numbers_is_right(printed):
    assert examined("ratios", with_speedup(printed)) == [None, None]


@pytest.mark.parametrize("printed", ["3.86", "3.84", "3.7", "3.95"])
def test_a_ratio_that_does_not_is_wrong(printed):
    [diagnostic] = found("ratios", with_speedup(printed))
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == f"1358.64 / 352.72 = 3.8519, printed {printed}: it fits no rounding"
    assert [cell.key for cell in diagnostic.cells] == ["table/speedup/4", "table/throughput/4", "table/throughput/1"]


def test_an_efficiency_is_a_ratio_too():
    single = [rate("16.74"), number("efficiency", "100%", baseline="table/throughput/1")]
    assert found("ratios", [*single, rate("263.29", 20), ratio("efficiency", "78.64%", 20)]) == []
    [diagnostic] = found("ratios", [*single, rate("263.29", 20), ratio("efficiency", "78.54%", 20)])
    assert diagnostic.computation.startswith("263.29 / 16.74 × 1 / 20 = 0.78641, printed 78.54%")


def test_rounded_rates_explain_a_ratio():
    rows = [rate("145"), ratio("speedup", "1", 1), rate("276", 4), ratio("speedup", "1.91", 4)]
    assert found("ratios", rows) == []


def test_a_ratio_that_fits_only_cut_off_rates_is_diagnosed():
    rows = [rate("26.7"), ratio("speedup", "1", 1), rate("41", 2), ratio("speedup", "1.57", 2)]
    [diagnostic] = found("ratios", rows)
    assert diagnostic.severity is Severity.WARNING
    assert "1.5356, printed 1.57" in diagnostic.computation
    assert "cut off" in diagnostic.explanations[0]


def test_fewer_digits_than_the_neighbours_is_worth_a_note():
    rows = [rate("1034.64"), ratio("speedup", "1.00", 1), rate("10633.22", 32), ratio("speedup", "10.2", 32)]
    [diagnostic] = found("ratios", rows)
    assert diagnostic.severity is Severity.NOTE
    assert (
        "10.277, printed 10.2: with as many digits as its neighbours have it fits no rounding" in diagnostic.computation
    )
    assert diagnostic.computation.endswith("with its own it is truncated")


def test_what_would_fit_is_named():
    other = [rate("358.64", 4, table="other", cell="other/throughput/4", series="other")]
    single = [rate("300.00", table="other", cell="other/throughput/1", series="other")]
    [diagnostic] = found("ratios", [*with_speedup("4.53"), *other, *single])
    assert diagnostic.computation.endswith("It would fit 1358.64 / 300.00 (other/throughput/1)")


def test_means_of_the_runs_would_fit():
    listed = runs(["300", "352.72", "353"]) + runs(["1358.64", "1358", "1400"], 4)
    [diagnostic] = found("ratios", [*with_speedup("4.09"), *listed])
    assert diagnostic.computation.endswith("It would fit the means of the runs")


def test_the_mean_of_ratios_would_fit():
    listed = runs(["90", "110"]) + runs(["150", "250"], 2)
    [diagnostic] = found("ratios", [rate("100.0"), rate("200.0", 2), ratio("speedup", "1.97", 2), *listed])
    assert diagnostic.computation.endswith("It would fit the mean of the ratios of the runs")


def test_a_baseline_must_be_declared():
    [diagnostic] = found("ratios", [number("speedup", "3.85", 4), rate("352.72", 4)])
    assert diagnostic.severity is Severity.WARNING
    assert diagnostic.computation == "3.85 is a ratio, but the table does not say to which rate"


def test_a_declared_baseline_must_be_there():
    [diagnostic] = found("ratios", [rate("1358.64", 4), ratio("speedup", "3.85", 4)])
    assert diagnostic.severity is Severity.ERROR
    assert "table/throughput/1, which has no value here" in diagnostic.computation


def curve(metric, *printed):
    """Return rates of 100, 99.9 and 370 on 1, 2 and 4 devices, with a ratio each that names no baseline."""
    rates = [rate(text, 2**at) for at, text in enumerate(("100.0", "99.9", "370.0"))]
    return [*rates, *(number(metric, text, 2**at) for at, text in enumerate(printed) if text)]


def test_of_several_rows_of_one_that_with_fewest_devices_is_the_baseline():
    [diagnostic] = found("ratios", curve("speedup", "1.00", "1.00", "5.80"))
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == "370.0 / 100.0 = 3.7, printed 5.80: it fits no rounding"


def test_of_several_rows_of_one_none_is_the_baseline_if_fewer_devices_have_another_ratio():
    diagnostics = found("ratios", curve("speedup", "0.50", "1.00", "1.00"))
    assert {diagnostic.severity for diagnostic in diagnostics} == {Severity.WARNING}


def test_a_relative_throughput_of_one_at_several_sizes_names_no_baseline():
    diagnostics = found("ratios", curve("relative_throughput", "1.00", "1.00"))
    assert {diagnostic.severity for diagnostic in diagnostics} == {Severity.WARNING}


def test_an_efficiency_without_a_row_of_one_is_relative_to_a_single_device():
    [diagnostic] = found("ratios", curve("efficiency", "", "0.50", "0.95"))
    assert diagnostic.computation == "370.0 / 100.0 × 1 / 4 = 0.925, printed 0.95: it fits no rounding"


def test_an_efficiency_in_per_cent_without_its_sign_is_suspected():
    diagnostics = found("ratios", curve("efficiency", "", "50", "92.5"))
    assert [diagnostic.severity for diagnostic in diagnostics] == [Severity.ERROR] * 2
    assert diagnostics[1].computation.endswith(
        "It looks like per cent: an efficiency of 1 is linear, and 92.5% has its sign"
    )


def twice(second):
    """Return two rows of a single device, whose second rate is given, and one of four with a wrong speedup."""
    alone = [rate(text, cell=text + name, row=name) for text, name in (("100.0", "a"), (second, "b"))]
    ones = [number("speedup", "1.00", cell="1" + name, row=name) for name in ("a", "b")]
    return [*alone, *ones, rate("370.0", 4, row="c"), number("speedup", "3.80", 4, row="c")]


def test_two_equal_single_devices_are_one_baseline():
    [diagnostic] = found("ratios", twice("100.0"))
    assert diagnostic.computation == "370.0 / 100.0 = 3.7, printed 3.80: it fits no rounding"
    assert len(examined("ratios", twice("100.0"))) == 3


def test_two_single_devices_that_differ_are_none():
    diagnostics = found("ratios", twice("101.0"))
    assert {diagnostic.computation.partition(" is ")[2] for diagnostic in diagnostics} == {
        "a ratio, but the table does not say to which rate"
    }


def test_the_row_whose_ratio_is_one_is_a_baseline():
    rows = [rate("352.72"), number("speedup", "1.00"), rate("1358.64", 4), number("speedup", "3.95", 4)]
    [diagnostic] = found("ratios", rows)
    assert "1358.64 / 352.72" in diagnostic.computation


def test_what_would_fit_an_efficiency_is_per_device():
    single = rate("300.00", table="other", cell="other/throughput/1", series="other")
    rows = [rate("352.72"), rate("1358.64", 4), ratio("efficiency", "1.132", 4)]
    [diagnostic] = found("ratios", [*rows, single])
    assert diagnostic.computation.endswith("It would fit 1358.64 / 300.00 (other/throughput/1)")
    listed = runs(["90", "110"]) + runs(["150", "250"], 2)
    [diagnostic] = found("ratios", [rate("100.0"), rate("200.0", 2), ratio("efficiency", "0.985", 2), *listed])
    assert diagnostic.computation.endswith("It would fit the mean of the ratios of the runs")


def test_runs_without_a_rate_make_no_mean_of_ratios():
    listed = runs(["0", "110"]) + runs(["150", "250"], 2)
    [diagnostic] = found("ratios", [rate("100.0"), rate("200.0", 2), ratio("speedup", "1.5", 2), *listed])
    assert diagnostic.computation.endswith("it fits no rounding")


@pytest.mark.parametrize(
    ("low", "high", "fits"),
    [(2.5, 3.9, True), (2.0, 3.0, True), (3.0, 3.9, True), (2.0, 2.9, False), (3.1, 3.9, False)],
)
def test_a_ratio_of_the_rounds_that_both_have_need_only_be_in_its_interval(low, high, fits):
    rows = [rate("100.0", measured_rounds="1 2 3"), rate("300.0", 4, measured_rounds="2 3 4")]
    assert (found("ratios", [*rows, ratio("speedup", "3.80", 4, low=low, high=high)]) == []) == fits


@pytest.mark.parametrize(("printed", "is_suspected"), [("2", False), ("2.5", True)])
def test_an_efficiency_up_to_two_is_no_percentage(printed, is_suspected):
    [_, diagnostic] = found("ratios", curve("efficiency", "", "0.40", printed))
    assert ("It looks like per cent" in diagnostic.computation) == is_suspected


def test_the_rounding_of_fewer_digits_is_the_usual_one_if_it_fits():
    rows = [rate("1034.64"), ratio("speedup", "1.00", 1), rate("10633.22", 32), ratio("speedup", "10.3", 32)]
    assert found("ratios", rows)[0].computation.endswith("with its own it is half up")


@pytest.mark.parametrize("facts", [{}, {"low": 2.5, "high": 3.9}])
def test_a_ratio_of_the_same_rounds_or_without_an_interval_is_their_quotient(facts):
    rounds = ["1 2 3", "2 3 4"] if not facts else ["1 2 3"] * 2
    rows = [rate("100.0", measured_rounds=rounds[0]), rate("300.0", 4, measured_rounds=rounds[1])]
    assert found("ratios", [*rows, ratio("speedup", "3.80", 4, **facts)])[0].severity is Severity.ERROR


def test_rounded_rates_explain_an_efficiency():
    assert found("ratios", [rate("145"), rate("276", 4), ratio("efficiency", "0.478", 4)]) == []


def test_rates_of_the_same_table_that_would_fit_are_named_up_to_three():
    rows = [*with_speedup("3.97"), *(rate("1400.00", devices) for devices in (8, 16, 32, 64))]
    fitting = "; ".join(f"1400.00 (table/throughput/{devices}) / 352.72" for devices in (8, 16, 32))
    assert found("ratios", rows)[0].computation.endswith(f"It would fit {fitting}")


def alternative(text, world_size, **facts):
    """Return a rate of another table."""
    return rate(text, world_size, table="other", series="other", **facts)


def test_only_a_baseline_of_as_many_devices_and_a_rate_of_its_table_are_named():
    rows = [*with_speedup("3.79"), alternative("358.64", 4), alternative("1336.81", 8)]
    assert found("ratios", rows)[0].computation.endswith("it fits no rounding")


@pytest.mark.parametrize(
    ("printed", "fitting"), [("4.53", "fits no rounding"), ("4.38", "fit 1358.64 / 310.00 (other/throughput/1)")]
)
def test_a_rate_of_another_source_is_not_named_and_hides_no_other(printed, fitting):
    elsewhere = [alternative("300.00", 1, source="elsewhere", cell="elsewhere"), alternative("310.00", 1)]
    assert found("ratios", [*elsewhere, *with_speedup(printed)])[0].computation.endswith(fitting)


def test_rates_below_one_are_rates_too():
    rows = [rate("0.500"), rate("0.200", 2), rate("0.900", 8), ratio("speedup", "1.80", 2)]
    assert found("ratios", rows)[0].computation.endswith("It would fit 0.900 (table/throughput/8) / 0.500")
    rows = [rate("1.000"), rate("2.000", 2), ratio("speedup", "1.97", 2)]
    listed = runs(["0.90", "1.10"]) + runs(["1.50", "2.50"], 2)
    assert found("ratios", [*rows, *listed])[0].computation.endswith("the mean of the ratios of the runs")
    rows = [rate("0.500"), rate("0.900", 2), ratio("speedup", "1.15", 2)]
    listed = runs(["0.3", "0.5", "0.5"]) + runs(["0.4", "0.6"], 2)
    assert found("ratios", [*rows, *listed])[0].computation.endswith("It would fit the means of the runs")


@pytest.mark.parametrize(
    ("printed", "further"),
    [
        ("0.00", [rate("0", 8)]),
        ("0.00", [*runs(["90", "110", "100"]), *runs(["0", "0"], 2)]),
        ("2.50", [*runs(["0", "0"]), *runs(["90", "110"], 2)]),
        ("2.50", runs(["90", "110"], 2)),
        ("2.50", [alternative("0", 1)]),
        ("400", [alternative("1", 1) | {"value": 0.5, "resolution": 2.0}]),
    ],
)
def test_nothing_is_divided_by_a_rate_of_nothing_and_none_is_named(printed, further):
    rows = [rate("100.0"), rate("200.0", 2), ratio("speedup", printed, 2)]
    assert found("ratios", [*rows, *further])[0].computation.endswith("it fits no rounding")
