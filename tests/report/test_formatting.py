import math

import pandas as pd
import pytest

from dlperf_study.dataset import cells
from dlperf_study.report import formatting


@pytest.mark.parametrize(
    ("value", "low", "high", "written"),
    [
        (412.37, 405.12, 420.93, ("412", "[405, 421]")),
        (4.2341, 4.2312, 4.2402, ("4.2341", "[4.2312, 4.2402]")),
        (0.8706, 0.80, 0.95, ("0.871", "[0.80, 0.95]")),
        (12345.0, 11000.0, 14000.0, ("12\u202f300", "[11\u202f000, 14\u202f000]")),
        (0.0, -0.31, 0.32, ("0.00", "[\u22120.31, 0.32]")),
        (0.0001, -0.004, 3.2, ("0.0", "[\u22120.004, 3.2]")),
        (0.0001, 0.0, 3.2, ("0.0", "[0, 3.2]")),
        (86.4, 29.1, 252.3, ("86.4", "[29, 250]")),
        (1.31, 0.036, 8.7, ("1.31", "[0.036, 8.7]")),
        (36.87, 0.09, 15000.0, ("36.9", "[0.090, 15\u202f000]")),
        (10.036215, 10.036214, 10.036216, ("10.036", "[10.036, 10.036]")),
    ],
)
def test_digits_follow_the_width_of_the_interval(value, low, high, written):
    assert formatting.format_bounded(value, low, high) == written


@pytest.mark.parametrize(
    ("value", "low", "high", "decision", "written"),
    [
        (29.4, 4.9, 120.1, 0, ("29.4", "[4.9, 120]")),
        (29.4, -4.9, 120.1, 0, ("30", "[\u22125, 120]")),
        (0.94, 0.79, 0.9951, 1, ("0.940", "[0.79, 0.995]")),
        (1.4, 1.04, 2.0627, 1, ("1.40", "[1.04, 2.1]")),
        (1.4, 1.0003, 2.0227, 1, ("1.40", "[1.0, 2.0]")),
        (1.3, 1.0, 1.6, 1, ("1.30", "[1.00, 1.60]")),
    ],
)
def test_an_end_that_rounding_puts_on_the_decision_has_one_decimal_more(value, low, high, decision, written):
    assert formatting.format_bounded(value, low, high, decision) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ((0.0206, 0.0177, 0.0234), "20.6 ms [17.7, 23.4]"),
        ((0.0206, None, None), "20.6 ms, alone"),
        ((0.0206, math.nan, math.nan), "20.6 ms, alone"),
    ],
)
def test_a_sentence_has_the_value_in_its_unit_and_the_interval_if_there_is_one(value, written):
    assert formatting.value_text(value, " ms", size=1e-3, no_interval=", alone") == written


def test_a_value_of_a_row_has_an_interval_where_its_column_has_one():
    row = pd.Series({"throughput": 2.0, "throughput_low": 1.0, "throughput_high": 3.0, "final_loss": 0.5})
    assert cells.bounded_value(row, "throughput") == (2.0, 1.0, 3.0)
    assert cells.bounded_value(row, "final_loss") == (0.5, None, None)
    with pytest.raises(AttributeError):
        cells.bounded_value(row, "speedup")


@pytest.mark.parametrize(
    ("value", "written"), [(0.0, "0"), (-2.26, "\u22122.26"), (0.012345, "0.0123"), (1234567.0, "1\u202f230\u202f000")]
)
def test_a_bare_value_has_three_digits(value, written):
    assert formatting.plain(value) == written


@pytest.mark.parametrize(("value", "written"), [(22780.126, "22\u202f780.13"), (366.0, "366.00"), (0.51234, "0.512")])
def test_the_throughput_of_a_run_has_the_decimals_of_published_tables(value, written):
    assert formatting.throughput(value) == written


def test_counts_keep_their_digits():
    assert formatting.integer(23_528_522) == "23\u202f528\u202f522"


@pytest.mark.parametrize("value", [None, math.nan, pd.NA, "", math.inf])
def test_what_holds_no_value_is_missing(value):
    assert cells.is_missing(value)


@pytest.mark.parametrize("value", [0, 0.0, "0", False])
def test_zero_is_a_value(value):
    assert not cells.is_missing(value)
