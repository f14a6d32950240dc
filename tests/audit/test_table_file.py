import pytest

from dlperf_study.audit.reading.numbers import is_no_number, without_commas
from dlperf_study.audit.table_file import finite
from dlperf_study.errors import TableError


@pytest.mark.parametrize(
    ("text", "number"), [("1,024.5", 1024.5), ("-1,234,567", -1234567.0), ("1024", 1024.0), ("1e3", 1000.0)]
)
def test_commas_between_thousands_are_read_over(text, number):
    assert finite(text) == number


@pytest.mark.parametrize("text", ["1,02", "10 : 3", "12,34,567", "fast"])
def test_other_commas_are_left_alone(text):
    assert without_commas(text) == text


def test_one_comma_without_a_point_is_not_guessed():
    with pytest.raises(TableError, match=r"'1,024', which may be 1024 or 1\.024: write it without the comma"):
        finite("1,024")


@pytest.mark.parametrize(("text", "said"), [("inf", "not finite"), ("1,02", "not a number")])
def test_what_is_no_number_says_how_to_write_none(text, said):
    with pytest.raises(TableError, match=f"{said}; where there .* write -"):
        finite(text)


def test_words_for_no_number():
    assert all(map(is_no_number, ("-", "n/a", "NaN", "None")))
    assert not any(map(is_no_number, ("0", "inf", "fast")))
