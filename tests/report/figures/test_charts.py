"""What figures share, drawn from a few numbers."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dlperf_study.report.figures import charts
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
