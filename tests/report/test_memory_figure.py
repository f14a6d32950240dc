"""What the peak of a rank consists of, as bars that end at the peak."""

from dataclasses import replace
from functools import cache

import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import figures
from dlperf_study.report.figures.style import COLUMN, PAGE
from dlperf_study.report.series import configuration_labels
from tests.evidence_factory import Planned, configuration
from tests.report.conftest import study

GB = 10**9


@cache
def measured() -> Dataset:
    """Return two measured configurations, of which nobody says what their ranks hold."""
    return study(Planned(configuration(devices_per_node=1)), Planned(configuration(devices_per_node=2)))


def with_memory(**columns: list[int | None]) -> Dataset:
    """Return the same configurations with these columns."""
    dtypes = measured().configurations.dtypes
    rows = measured().configurations.copy()
    for name, values in columns.items():
        rows[name] = values
    return replace(measured(), configurations=rows.astype({name: dtypes[name] for name in columns}))


HELD = {
    "held_weights_bytes": [2 * GB, 1 * GB],
    "held_gradients_bytes": [2 * GB, 1 * GB],
    "held_optimizer_bytes": [4 * GB, 2 * GB],
    "peak_process_bytes": [10 * GB, 5 * GB],
}


@pytest.mark.parametrize("width", [PAGE, COLUMN])
def test_parts_add_up_to_the_peak(width):
    [figure] = figures.memory(with_memory(**HELD, largest_micro_batch=[3, 2], too_large_batch=[4, None]))
    [axes] = figure.drawn(width).axes
    widths = [[bar.get_width() for bar in part] for part in axes.containers]
    assert widths == [pytest.approx(part) for part in ([2, 1], [2, 1], [4, 2], [2, 1])]
    assert [bar.get_x() + bar.get_width() for bar in axes.containers[-1]] == pytest.approx([10, 5])
    assert [text.get_text() for text in axes.texts][-2:] == ["3", "≥ 2"]


def test_tensors_are_drawn_where_each_library_counts_them():
    [figure] = figures.memory(with_memory(**HELD, peak_allocated_bytes=[9 * GB, 5 * GB]))
    [of_processes] = figures.memory(with_memory(**HELD, peak_allocated_bytes=[9 * GB, None]))
    for drawing, ends in ((figure.drawing, [9, 5]), (of_processes.drawing, [10, 5])):
        rest = drawing.axes[0].containers[-1]
        assert [bar.get_x() + bar.get_width() for bar in rest] == pytest.approx(ends)
    assert figure.caption != of_processes.caption


def test_without_what_ranks_hold_there_is_no_figure():
    [figure] = figures.memory(measured())
    assert figure.is_empty
    only_one = {name: [values[0], None] for name, values in HELD.items()}
    dataset = with_memory(**only_one, peak_allocated_bytes=[9 * GB, 5 * GB])
    [figure] = figures.memory(dataset)
    assert figure.drawing is not None
    assert len(figure.drawing.axes[0].containers[0]) == 1
    drawn, left_out = configuration_labels(dataset).values()
    reason = figure.page_caption.partition("No bar")[2]
    assert left_out in reason
    assert drawn not in reason
