from fractions import Fraction

import pytest

from dlperf_study.audit.result_cell import PrintedNumber, quotient


@pytest.mark.parametrize(
    ("exact", "printed", "resolution", "roundings"),
    [
        ("2.5", 2.5, 0.01, ("half up", "half even", "truncated")),
        ("2.496", 2.5, 0.01, ("half up", "half even")),
        ("2.509", 2.5, 0.01, ("truncated",)),
        ("2.505", 2.51, 0.01, ("half up",)),
        ("2.505", 2.5, 0.01, ("half even", "truncated")),
        ("2.52", 2.5, 0.01, ()),
        ("0.77478", 0.7747, 0.0001, ("truncated",)),
        ("0.78641", 0.7864, 0.0001, ("half up", "half even", "truncated")),
    ],
)
def test_roundings(exact, printed, resolution, roundings):
    assert PrintedNumber.from_value(printed, resolution).roundings_from(Fraction(exact)) == roundings


def test_fewer_digits_and_doubles_stand_for_the_decimals_they_mean():
    percent = PrintedNumber.from_value(77.47 * 0.01, 0.01 * 0.01)
    assert percent.exact == Fraction("0.7747")
    assert percent.step == Fraction("0.0001")
    printed = PrintedNumber.from_value(10.2, 0.1)
    assert printed.roundings_from(Fraction("10.204"), Fraction("0.01")) == ("half up", "half even", "truncated")
    assert printed.roundings_from(Fraction("10.277"), Fraction("0.01")) == ()


def test_the_bounds_of_printed_numbers_and_of_their_quotients():
    assert PrintedNumber.from_value(41.0, 1.0).bounds() == (Fraction("40.5"), Fraction("41.5"))
    assert PrintedNumber.from_value(41.0, 1.0).bounds(truncated=True) == (Fraction("40.5"), 42)
    low, high = quotient(PrintedNumber.from_value(41.0, 1.0), PrintedNumber.from_value(26.7, 0.1))
    assert low == Fraction("40.5") / Fraction("26.75")
    assert high == Fraction("41.5") / Fraction("26.65")


def test_what_was_computed_has_nine_digits():
    computed = PrintedNumber.from_value(1 / 3, None)
    assert computed.computed
    assert computed.exact == Fraction("0.333333333")
    assert PrintedNumber.from_value(352.72, 1e-12).computed
    assert not PrintedNumber.from_value(352.72, 0.01).computed


@pytest.mark.parametrize(
    ("printed", "other", "exceeds"), [(10.3, 10.1, True), (10.2, 10.1, False), (10.1, 10.2, False)]
)
def test_a_number_exceeds_another_only_if_no_rounding_nor_cutting_off_explains_it(printed, other, exceeds):
    assert PrintedNumber.from_value(printed, 0.1).exceeds(PrintedNumber.from_value(other, 0.1)) is exceeds
