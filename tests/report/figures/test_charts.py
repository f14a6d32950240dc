"""What figures share, drawn from a few numbers."""

from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dlperf_study.report.figures import charts
from dlperf_study.report.figures.style import publication_style
from dlperf_study.report.series import Series

NAN = np.nan


def test_the_bar_of_an_interval_is_where_it_is_also_if_the_value_is_outside() -> None:
    """A median may be printed that is outside the interval of the mean of its runs."""
    rates = {"world_size": [1, 2], "throughput": [100.0, 190.0], "is_baseline": [True, False]}
    bounds = {"throughput_low": [101.0, NAN], "throughput_high": [103.0, NAN]}
    axes = Figure().subplots()
    charts.interval_line(axes, Series("line", 0, pd.DataFrame(rates | bounds)), "throughput")
    [line] = [line for line in axes.get_lines() if line.get_label() == "line"]
    assert list(line.get_ydata()) == [100.0, 190.0]
    [(_, _, [bars])] = axes.containers
    assert [list(segment[:, 1]) for segment in bars.get_segments() if len(segment)] == [[101.0, 103.0]]


def test_there_is_no_bound_where_the_exchange_was_not_measured() -> None:
    rows = pd.DataFrame(
        {
            "world_size": [1, 1, 2, 4],
            "servers": [0, 1, 0, 0],
            "throughput": [100.0, 90.0, 180.0, 300.0],
            "step_seconds": [0.1, 0.12, 0.12, 0.15],
            "computation_seconds": [0.1, 0.1, 0.1, 0.1],
            "exchange_seconds": [NAN, NAN, NAN, 0.12],
        }
    )
    axes = Figure().subplots()
    charts.bound_line(axes, rows, "throughput", "black")
    [line] = axes.get_lines()
    assert list(line.get_xdata()) == [1, 4]
    np.testing.assert_allclose(line.get_ydata(), [100.0, 300.0 * 0.15 / 0.12])


def test_lines_that_end_at_the_same_height_have_names_and_intervals_side_by_side() -> None:
    rates = {"world_size": [1, 2], "throughput": [100.0, 190.0], "is_baseline": [True, False]}
    bounds = {"throughput_low": [99.0, 180.0], "throughput_high": [101.0, 200.0]}
    lines = [Series(f"line {position}", position, pd.DataFrame(rates | bounds)) for position in range(6)]
    with publication_style():
        drawing = Figure(figsize=(4, 2.6))
        axes = drawing.subplots()
        for line, shift in zip(lines, charts.shifts(len(lines)), strict=True):
            charts.interval_line(axes, line, "throughput", shift_points=shift)
        charts.device_axes(axes, [1, 2], logarithmic_y=False)
        charts.end_labels(axes, lines, "throughput", {line.label: f"{line.label}\n1× = 100" for line in lines}, 1.8)
        drawing.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: -box.y0)
    assert all(upper.y0 >= lower.y1 - 1 for upper, lower in pairwise(boxes))
    assert len(boxes) == 6
    bars = [container[2][0] for container in axes.containers]
    places = [bar.get_transform().transform(bar.get_segments()[0])[0, 0] for bar in bars]
    assert all(right - left > 3 for left, right in pairwise(places))
