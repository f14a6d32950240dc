"""Lines over devices, drawn from a few numbers: their intervals, bounds and names."""

from io import BytesIO
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from dlperf_study.report.figures import line_charts
from dlperf_study.report.figures.line_charts import MOST_LABELS, EndLabel, LineBlock, draw_end_labels
from dlperf_study.report.figures.style import COLUMN, WIDTHS, publication_style
from dlperf_study.report.series import Series

NAN = np.nan


def test_the_bar_of_an_interval_is_where_it_is_also_if_the_value_is_outside():
    """A median may be printed that is outside the interval of the mean of its runs."""
    throughputs = {"world_size": [1, 2], "throughput": [100.0, 190.0], "is_baseline": [True, False]}
    bounds = {"throughput_low": [101.0, NAN], "throughput_high": [103.0, NAN]}
    axes = Figure().subplots()
    line_charts.interval_line(axes, Series("line", 0, pd.DataFrame(throughputs | bounds)), "throughput")
    [line] = [line for line in axes.get_lines() if line.get_label() == "line"]
    assert list(line.get_ydata()) == [100.0, 190.0]
    [bars] = axes.collections
    assert [list(segment[:, 1]) for segment in bars.get_segments()] == [[101.0, 103.0]]


def test_there_is_no_bound_where_the_exchange_was_not_measured():
    rows = pd.DataFrame(
        {
            "world_size": [1, 1, 2, 4],
            "parameter_servers": [0, 1, 0, 0],
            "throughput": [100.0, 90.0, 180.0, 300.0],
            "broken_down_step_seconds": [0.1, 0.12, 0.12, 0.18],
            "step_seconds": [0.1, 0.12, 0.12, 0.15],
            "compute_seconds": [0.1, 0.1, 0.1, 0.1],
            "communication_seconds": [NAN, NAN, NAN, 0.12],
        }
    )
    axes = Figure().subplots()
    line_charts.bound_line(axes, rows, "throughput", "black")
    [line] = axes.get_lines()
    assert list(line.get_xdata()) == [1, 4]
    np.testing.assert_allclose(line.get_ydata(), [100.0, 300.0 * 0.18 / 0.12], err_msg="of the runs with parts")


def lines_of(count: int) -> list[Series]:
    """Lines that end at the same height."""
    rows = pd.DataFrame(
        {"world_size": [1, 2], "is_baseline": [True, False], "throughput": [100.0, 200.0], "speedup": [1.0, 2.0]}
    )
    for name in ("throughput", "speedup"):
        rows = rows.assign(**{f"{name}_low": 0.95 * rows[name], f"{name}_high": 1.05 * rows[name]})
    return [Series(f"PaddlePaddle parameter server · line {number}", number, rows) for number in range(count)]


@pytest.mark.parametrize("width", WIDTHS)
def test_twenty_lines_have_names_and_intervals_that_do_not_overlap(width):
    lines, columns = lines_of(20), ("throughput", "speedup")
    names = {line.label: line.label for line in lines}
    with publication_style():
        details = dict.fromkeys(names, "1× = 100 samples/s")
        blocks = [LineBlock(part, columns, names, details, width) for part in line_charts.parted(lines)]
        drawing = Figure(figsize=(width.inches, line_charts.blocks_inches(blocks)), layout="constrained")
        rows = line_charts.panels_of_blocks(drawing, blocks)
        for block, panels in zip(blocks, rows, strict=True):
            block.draw(panels, lambda panel, *line: line_charts.interval_line(panel, *line[:2], shift_points=line[2]))
        for panel in drawing.axes:
            line_charts.device_axes(panel, [1, 2], logarithmic_y=True)
        for block, panels in zip(blocks, rows, strict=True):
            block.name_lines(panels)
        drawing.draw_without_rendering()
    assert [len(block.lines) for block in blocks] == [5, 5, 5, 5]
    for panel in drawing.axes:
        assert_bars_are_apart(panel)
        boxes = sorted((text.get_window_extent() for text in panel.texts), key=lambda box: -box.y0)
        assert all(upper.y0 >= lower.y1 - 1 for upper, lower in pairwise(boxes))
        assert all(box.x0 > panel.bbox.x1 and box.x1 <= drawing.bbox.x1 + 1 for box in boxes)
    named = [text for panel in drawing.axes for text in panel.texts]
    assert len(named) == 20 * (len(columns) if width is COLUMN else 1)


def assert_bars_are_apart(panel: Axes) -> None:
    bars = [bar for bar in panel.collections if isinstance(bar, LineCollection)]
    places = [bar.get_transform().transform(bar.get_segments()[0])[0, 0] for bar in bars]
    assert all(right - left > 3 for left, right in pairwise(places))


@pytest.mark.parametrize("value", [0.0, 100.0, NAN])
def test_names_stay_next_to_their_panel_wherever_lines_end(value):
    with publication_style():
        drawing = Figure(figsize=(4, 1.6))
        axes = drawing.subplots()
        axes.set_ylim(0, 100)
        labels = [EndLabel(value, position, f"line {position}") for position in range(MOST_LABELS)]
        draw_end_labels(axes, labels, axes.get_position().height * 1.6, COLUMN)
        drawing.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: -box.y0)
    assert all(upper.y0 >= lower.y1 - 1 for upper, lower in pairwise(boxes))
    assert min(box.y0 for box in boxes) >= axes.bbox.y0 - 1


def test_the_highest_mark_has_room_below_the_top():
    """Efficiencies end at 1, where automatic limits left none."""
    axes = Figure().subplots()
    axes.plot([1, 2], [1.0, 0.99])
    line_charts.device_axes(axes, [1, 2], logarithmic_y=False)
    assert axes.get_ylim()[0] == 0
    assert axes.get_ylim()[1] >= 1.05


def test_a_dollar_sign_in_a_name_is_no_formula():
    """Read as a formula, this name can't be drawn."""
    file = BytesIO()
    with publication_style():
        figure = Figure()
        figure.subplots().set_title(r"my$\frac$model")
        figure.savefig(file, format="svg")
    assert file.getvalue().startswith(b"<?xml")
