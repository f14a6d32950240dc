import pytest

from tests.audit.tables import examined, found, rate


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
