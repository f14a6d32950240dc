import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dlperf_study.arrays import running_median


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=40), st.integers(1, 20))
def test_the_median_is_that_of_the_values_around(values: list[float], width: int) -> None:
    width = min(width, len(values))
    median = running_median(np.array(values), width)
    for index, found in enumerate(median):
        first = min(max(index - width // 2, 0), len(values) - width)
        assert found == np.median(values[first : first + width])
