import pytest

from tests.audit.tables import examined, found, number, rate


def curve(*rates, nodes=None):
    points = zip(rates, (1, 2, 4, 8, 16, 32), strict=False)
    return [rate(text, devices) | ({"nodes": max(1, devices // 8)} if nodes else {}) for text, devices in points]


def test_a_curve_of_the_job():
    assert set(examined("scopes", curve("100", "195", "380", "700", "1300"))) == {None}


def test_poor_scaling_is_no_other_scope():
    assert found("scopes", curve("100", "130", "150", "160")) == []


def test_a_curve_of_one_device_is_flat():
    [diagnostic] = found("scopes", curve("100", "99", "97", "96"))
    assert "the rate hardly changes" in diagnostic.computation
    assert len(diagnostic.cells) == 4


@pytest.mark.parametrize(
    ("printed", "said"),
    [("95", "95 × 8 devices = 760"), ("6080", "6080 / 8 devices = 760")],
)
def test_a_point_off_by_its_devices(printed, said):
    [diagnostic, *_] = found("scopes", curve("100", "195", "385", printed))
    assert diagnostic.computation.startswith(f"{said}, which is where 385 on 4 devices leads (770 on 8)")


def test_a_point_off_by_its_nodes():
    [diagnostic] = found("scopes", curve("100", "195", "385", "760", "750", nodes=True))
    assert diagnostic.computation.startswith("750 × 2 nodes = 1500, which is where 760 on 8 devices leads (1520 on 16)")


def test_a_curve_that_goes_on_as_it_is_speaks_against_it():
    assert found("scopes", [rate("145"), rate("148", 2), rate("276", 4)]) == []


@pytest.mark.parametrize(
    "rates", [("100", "99", "60"), ("100", "60", "99"), ("100", "99", "104"), ("100", "104", "99")]
)
def test_a_curve_of_which_one_point_falls_or_rises_is_not_flat(rates):
    """Whichever point it is."""
    assert examined("scopes", curve(*rates))[0] is None


def test_a_curve_that_goes_on_above_a_point_says_that_its_scope_is_wrong():
    diagnostic, *_ = found("scopes", curve("100", "100", "390"))
    assert diagnostic.computation.startswith("100 × 2 devices = 200, which is where 100 on 1 device leads")


def test_two_more_points_make_a_flat_curve_and_one_does_not():
    assert "hardly changes" in found("scopes", curve("100", "99", "98"))[0].computation
    assert examined("scopes", curve("100", "99"))[0] is None


def test_a_flat_curve_hides_no_other():
    flat = [
        row | {"table": "flat", "series": "flat", "cell": f"flat/{row['cell']}"} for row in curve("100", "99", "98")
    ]
    assert len([each for each in found("scopes", [*flat, *curve("100", "195", "385", "95")]) if each]) >= 2


@pytest.mark.parametrize("rates", [("100", "103", "101"), ("100", "99", "85")])
def test_a_rate_within_3_per_cent_above_or_15_below_is_still_flat(rates):
    [diagnostic] = found("scopes", curve(*rates))
    assert "the rate hardly changes" in diagnostic.computation


def test_a_curve_that_goes_on_3_per_cent_below_a_corrected_point_speaks_for_it():
    [diagnostic] = found("scopes", curve("100", "100", "194"))
    assert diagnostic.computation.startswith("100 × 2 devices = 200")


def test_a_point_off_by_the_devices_of_its_node():
    [diagnostic] = found("scopes", curve("100", "195", "385", "760", "187", nodes=True))
    assert diagnostic.computation.startswith("187 × 8 devices of a node = 1496")


def test_a_point_of_nodes_with_one_device_each_is_off_by_its_nodes_and_devices():
    rates = [rate(text, devices, nodes=devices) for text, devices in (("100", 1), ("195", 2), ("97", 4))]
    [diagnostic] = found("scopes", rates)
    assert diagnostic.computation.startswith("97 × 4 devices = 388")


def test_devices_of_unknown_nodes_are_not_divided():
    assert found("scopes", curve("100", "195", "385", "380")) == []


def test_each_later_point_is_examined_once_and_the_curve_once():
    assert examined("scopes", curve("100", "195", "385", "760")) == [None] * 4


def test_what_is_no_curve_of_rates_is_left_out_and_hides_no_other():
    same_devices = [rate(text, 2, cell=text, table="a", series="a") for text in ("100", "101")]
    speedups = [number("speedup", text, devices, table="b", series="b") for text, devices in (("1", 1), ("1", 2))]
    assert examined("scopes", [*same_devices, *speedups]) == []
    assert len(examined("scopes", [*same_devices, *speedups, *curve("100", "195")])) == 2


def test_a_curve_may_begin_with_two_rates_of_as_many_devices():
    assert len(examined("scopes", [rate("100"), rate("101", cell="again"), rate("195", 2)])) == 3
