"""The figure on the dates of a study: the throughput of each configuration relative to the first measurement."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure as Drawing

from dlperf_study.arrays import Floats
from dlperf_study.history.measurements import Measurement
from dlperf_study.report.alt_text import alt_text_of_table
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import SOFT, colour, marker, publication_style, quantity_axes
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.history_tables import dates

_CAPTION = (
    "Throughput on each date relative to the first date on which a configuration was measured; bars: 95 % intervals "
    "over the runs of a date, relative to that first mean. They hold nothing that differs from date to date."
)
_NOTHING = "No configuration was measured on two dates."


def history(measurements: Sequence[Measurement]) -> Figure:
    """Return the throughput of the configurations that were measured on several dates, by date."""
    lines = _lines(measurements)
    drawing = None
    if lines:
        with publication_style():
            drawing = _draw(measurements, lines)
    title = "All measurements"
    alt = alt_text_of_table(title, dates(measurements)) if lines else ""
    return Figure("history", title, _CAPTION, drawing, _NOTHING, alt=alt)


def _lines(measurements: Sequence[Measurement]) -> dict[str, Floats]:
    """Return [dates, 4] by the label of each configuration with several dates.

    Position of the date, and mean throughput with its bounds in samples/s; bounds are NaN without an interval.
    """
    points: dict[str, list[tuple[float, ...]]] = {}
    for position, measurement in enumerate(measurements):
        rows = measurement.dataset.configurations.dropna(subset="throughput")
        columns = rows[["identity", "throughput", "throughput_low", "throughput_high"]]
        for identity, *rates in columns.itertuples(index=False):
            points.setdefault(identity, []).append((position, *rates))
    labels = configuration_labels(measurements[-1].dataset)
    return {labels[name]: np.array(line) for name, line in points.items() if name in labels and len(line) > 1}


def _draw(measurements: Sequence[Measurement], lines: dict[str, np.ndarray]) -> Drawing:
    drawing, (axes,) = charts.panels(measurements[-1].dataset, 1, 1, 2.4)
    axes.axhline(1, color=SOFT, linewidth=0.6)
    for position, (label, line) in enumerate(lines.items()):
        positions, relative = line[:, 0], line[:, 1:] / line[0, 1]
        # Bars of one date would hide each other.
        shifted = positions + 0.3 * ((position + 0.5) / len(lines) - 0.5)
        axes.plot(shifted, relative[:, 0], color=colour(position), marker=marker(position), label=label)
        axes.vlines(shifted, relative[:, 1], relative[:, 2], color=colour(position))
    axes.set_xticks(range(len(measurements)), [measurement.begun for measurement in measurements])
    quantity_axes(axes)
    axes.set_ylabel("relative throughput (×)")
    charts.legend_below(drawing, axes, {})
    return drawing
