from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlperf_study.logs.reading import places_of
from tests.logs.written import elapse, read_text

PAIRS = st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 5), st.floats(0, 9)), max_size=30)


@given(PAIRS)
def test_places_are_the_pairs_of_epoch_and_step_in_order(pairs: list[tuple[int, int, float]]) -> None:
    epochs, steps = (np.array([pair[index] for pair in pairs], dtype=np.int64) for index in (0, 1))
    places, known = places_of(epochs, steps), sorted({pair[:2] for pair in pairs})
    assert list(zip(places.epoch.tolist(), places.step.tolist(), strict=True)) == known
    assert [known[group] for group in places.group] == [pair[:2] for pair in pairs]
    assert places.counts.tolist() == [sum(pair[:2] == place for pair in pairs) for place in known]
    ordered, starts = places.ordered(np.array([pair[2] for pair in pairs]))
    wanted = [sorted(pair[2] for pair in pairs if pair[:2] == place) for place in known]
    assert [part.tolist() for part in np.split(ordered, starts[1:])] == (wanted or [[]])
    smallest, largest = places.extremes(np.array([pair[2] for pair in pairs]))
    assert (smallest.tolist(), largest.tolist()) == ([min(part) for part in wanted], [max(part) for part in wanted])


@pytest.mark.parametrize(
    ("printed", "meant"), [("True", True), ("1", True), ("on", True), ("no", False), ("None", False), ("O2", None)]
)
def test_programs_write_yes_and_no_in_many_ways(tmp_path: Path, printed: str, meant: bool | None) -> None:
    reading = read_text(tmp_path, f"use_fp16 : {printed}\n" + "".join(map(elapse, range(0, 100, 10))))
    assert (reading.facts["use_fp16"], reading.switch("use_fp16"), reading.switch("use_dali")) == (printed, meant, None)
