import math

import pytest

from dlperf_study.errors import PublishedError
from dlperf_study.published.source_lines import resolution_of, value_of


@pytest.mark.parametrize(
    ("printed", "unit", "value", "resolution"),
    [
        ("263.29", "", 263.29, 0.01),
        ("1", "", 1, 1),
        ("26.50", "", 26.5, 0.01),
        ("78.64", "%", 0.7864, 0.0001),
        ("406.16", "ms", 0.40616, 0.00001),
        ("10: 3", "", 10 / 3, 10 / 9),
        ("10 : 1", "", 10, 10),
    ],
)
def test_a_printed_number_has_a_value_and_a_last_digit(printed, unit, value, resolution):
    assert value_of(printed, unit) == pytest.approx(value)
    assert resolution_of(printed, unit) == pytest.approx(resolution)


def test_a_dash_is_no_number_and_not_zero():
    assert math.isnan(value_of("-"))
    assert math.isnan(resolution_of("-"))


@pytest.mark.parametrize("printed", ["", "about 3", "1,024", "3.", "-5", "10:", "10 : 0", "1e3", "nan"])
def test_anything_else_is_refused(printed):
    with pytest.raises(PublishedError, match="neither a number nor a ratio"):
        value_of(printed)
