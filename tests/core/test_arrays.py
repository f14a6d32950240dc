import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dlperf_study.core.arrays import concatenated, constant, elements, is_constant, running_median, unite_masks


def test_columns_and_masks_are_joined_and_chosen_without_needless_copies():
    masks = [np.array([True, False, False]), np.array([False, False, True])]
    assert unite_masks(masks, 3).tolist() == [True, False, True]
    assert unite_masks([], 2).tolist() == [False, False]
    assert concatenated([np.array([3]), np.array([1, 2])]).tolist() == [3, 1, 2]
    assert (concatenated([]).tolist(), concatenated([]).dtype) == ([], np.dtype(np.int64))
    column, every = np.arange(3), np.ones(3, dtype=bool)
    assert elements(column, every) is column
    assert elements(column, column != 1).tolist() == [0, 2]
    assert elements(column, np.array([2, 0])).tolist() == [2, 0]


def test_a_constant_column_stays_one():
    column = constant(np.nan, 3)
    for chosen in (column, elements(column, np.array([True, False, True])), elements(column, np.array([2, 2]))):
        assert is_constant(chosen)
        assert np.isnan(chosen).all()
    assert constant(-1, 0).size == 0
    assert not is_constant(np.zeros(3))


def test_the_median_of_many_windows_is_computed_in_pieces():
    values = np.random.default_rng(0).uniform(size=40_000)
    median = running_median(values, 15)
    for index in (0, 7, 16_390, 32_775, 39_992):
        assert median[index] == np.median(values[index - 7 : index + 8] if index else values[:15])


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=40), st.integers(1, 20))
def test_the_median_is_that_of_the_values_around(values, width):
    width = min(width, len(values))
    median = running_median(np.array(values), width)
    for index, value in enumerate(median):
        first = min(max(index - width // 2, 0), len(values) - width)
        assert value == np.median(values[first : first + width])
