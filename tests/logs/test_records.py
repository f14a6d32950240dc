from statistics import fmean, median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlperf_study.logs.parsed_log import index_steps

PAIRS = st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 5), st.floats(0, 9)), max_size=30)


@given(PAIRS)
def test_steps_are_the_pairs_of_epoch_and_step_in_order(pairs):
    epochs, steps = (np.array([pair[index] for pair in pairs], dtype=np.int64) for index in (0, 1))
    index, expected_pairs = index_steps(epochs, steps), sorted({pair[:2] for pair in pairs})
    assert list(zip(index.epoch.tolist(), index.step.tolist(), strict=True)) == expected_pairs
    assert [expected_pairs[group] for group in index.group] == [pair[:2] for pair in pairs]
    assert index.counts.tolist() == [
        sum(pair[:2] == expected_pair for pair in pairs) for expected_pair in expected_pairs
    ]
    values = np.array([pair[2] for pair in pairs])
    ordered, starts = index.ordered(values)
    expected = [sorted(pair[2] for pair in pairs if pair[:2] == expected_pair) for expected_pair in expected_pairs]
    assert [part.tolist() for part in np.split(ordered, starts[1:])] == (expected or [[]])
    smallest, largest = index.extremes(values)
    assert (smallest.tolist(), largest.tolist()) == ([min(part) for part in expected], [max(part) for part in expected])
    assert index.medians(values).tolist() == pytest.approx(list(map(median, expected)))
    assert index.means(values).tolist() == pytest.approx(list(map(fmean, expected)))
