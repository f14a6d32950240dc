import numpy as np

from dlperf_study.arrays import any_of, concatenated


def test_any_of_some_masks_and_of_none() -> None:
    masks = [np.array([True, False, False]), np.array([False, False, True])]
    assert any_of(masks, 3).tolist() == [True, False, True]
    assert any_of([], 2).tolist() == [False, False]


def test_columns_end_to_end_and_none_of_them() -> None:
    assert concatenated([np.array([3]), np.array([1, 2])]).tolist() == [3, 1, 2]
    assert (concatenated([]).tolist(), concatenated([]).dtype) == ([], np.dtype(np.int64))
