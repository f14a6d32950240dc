from statistics import fmean, median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlperf_study.logs.records import index_steps

PAIRS = st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 5), st.floats(0, 9)), max_size=30)


@given(PAIRS)
def test_places_are_the_pairs_of_epoch_and_step_in_order(pairs: list[tuple[int, int, float]]) -> None:
    epochs, steps = (np.array([pair[index] for pair in pairs], dtype=np.int64) for index in (0, 1))
    places, known = index_steps(epochs, steps), sorted({pair[:2] for pair in pairs})
    assert list(zip(places.epoch.tolist(), places.step.tolist(), strict=True)) == known
    assert [known[group] for group in places.group] == [pair[:2] for pair in pairs]
    assert places.counts.tolist() == [sum(pair[:2] == place for pair in pairs) for place in known]
    values = np.array([pair[2] for pair in pairs])
    ordered, starts = places.ordered(values)
    wanted = [sorted(pair[2] for pair in pairs if pair[:2] == place) for place in known]
    assert [part.tolist() for part in np.split(ordered, starts[1:])] == (wanted or [[]])
    smallest, largest = places.extremes(values)
    assert (smallest.tolist(), largest.tolist()) == ([min(part) for part in wanted], [max(part) for part in wanted])
    assert places.medians(values).tolist() == pytest.approx(list(map(median, wanted)))
    assert places.means(values).tolist() == pytest.approx(list(map(fmean, wanted)))
