import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dlperf_study.arrays import any_of, concatenated, running_median


def test_any_of_some_masks_and_of_none() -> None:
    masks = [np.array([True, False, False]), np.array([False, False, True])]
    assert any_of(masks, 3).tolist() == [True, False, True]
    assert any_of([], 2).tolist() == [False, False]


def test_columns_end_to_end_and_none_of_them() -> None:
    assert concatenated([np.array([3]), np.array([1, 2])]).tolist() == [3, 1, 2]
    assert (concatenated([]).tolist(), concatenated([]).dtype) == ([], np.dtype(np.int64))


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=40), st.integers(1, 20))
def test_the_median_is_that_of_the_values_around(values: list[float], width: int) -> None:
    width = min(width, len(values))
    median = running_median(np.array(values), width)
    for index, value in enumerate(median):
        first = min(max(index - width // 2, 0), len(values) - width)
        assert value == np.median(values[first : first + width])
