import pytest

from dlperf_study.audit.reading.table_errors import MOST_ERRORS, TableErrors, error_prefix
from dlperf_study.errors import TableError


def even(number):
    if number % 2:
        raise TableError(f"{number} is odd")
    return number


def test_what_can_be_parsed_is_and_every_error_is_reported_once():
    errors = TableErrors()
    assert list(errors.parse_each([1, 2, 3, 4, 1], even)) == [2, 4]
    with pytest.raises(TableError, match=r"^1 is odd; 3 is odd$"):
        errors.raise_all()


def test_without_errors_nothing_is_raised():
    errors = TableErrors()
    assert list(errors.parse_each([2], even)) == [2]
    errors.raise_all()


def test_of_many_errors_the_first_are_reported():
    errors = TableErrors()
    list(errors.parse_each(range(2 * MOST_ERRORS + 6), even))
    with pytest.raises(TableError, match=r"19 is odd; and 3 more$"):
        errors.raise_all()


def test_an_error_has_a_prefix():
    with pytest.raises(TableError, match=r"^line 2: 1 is odd$"), error_prefix("line 2: "):
        even(1)
