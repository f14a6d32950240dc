import pytest

from dlperf_study.audit.table_file import MOST, Mistakes, naming
from dlperf_study.errors import TableError


def even(number):
    if number % 2:
        raise TableError(f"{number} is odd")
    return number


def test_what_can_be_read_is_and_every_mistake_is_told_once():
    mistakes = Mistakes()
    assert list(mistakes.sort_out([1, 2, 3, 4, 1], even)) == [2, 4]
    with pytest.raises(TableError, match=r"^1 is odd; 3 is odd$"):
        mistakes.refuse()


def test_without_mistakes_nothing_is_refused():
    mistakes = Mistakes()
    assert list(mistakes.sort_out([2], even)) == [2]
    mistakes.refuse()


def test_of_many_mistakes_the_first_are_told():
    mistakes = Mistakes()
    list(mistakes.sort_out(range(2 * MOST + 6), even))
    with pytest.raises(TableError, match=r"19 is odd; and 3 more$"):
        mistakes.refuse()


def test_a_mistake_is_named():
    with pytest.raises(TableError, match=r"^line 2: 1 is odd$"), naming("line 2: "):
        even(1)
