"""The figure on the dates of a study: the throughput of each configuration relative to the first measurement."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure as Drawing

from dlperf_study.arrays import Floats
from dlperf_study.history.measurements import Measurement
from dlperf_study.report.alt_text import alt_text_of_table
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.direct_labels import EndLabel, draw_end_labels, labels_inches, parted
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import COLUMN, SOFT, Width, colour, marker, quantity_axes
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.history_tables import dates

_CAPTION = (
    "Throughput on each date relative to the first date on which a configuration was measured; bars: 95 % intervals "
    "over the runs of a date, relative to that first mean. They hold nothing that differs from date to date."
)
#: The height of a panel at least, and how many are next to each other.
_PANEL_INCHES, _COLUMNS = 1.7, {"page": 2, "column": 1}
_NOTHING = "No configuration was measured on two dates."


def history(measurements: Sequence[Measurement]) -> Figure:
    """Return the throughput of the configurations that were measured on several dates, by date."""
    lines = _lines(measurements)
    draw = partial(_draw, measurements, lines) if lines else None
    title = "All measurements"
    alt = alt_text_of_table(title, dates(measurements)) if lines else ""
    return Figure("history", title, _CAPTION, draw, _NOTHING, alt=alt)


def _lines(measurements: Sequence[Measurement]) -> dict[str, Floats]:
    """Return [dates, 4] by the label of each configuration with several dates.

    Position of the date, and mean rate with its bounds; bounds are NaN without an interval.
    """
    points: dict[str, list[tuple[float, ...]]] = {}
    for position, measurement in enumerate(measurements):
        rate = measurement.dataset.rate
        rows = measurement.dataset.configurations.dropna(subset=rate)
        columns = rows[["identity", rate, f"{rate}_low", f"{rate}_high"]]
        for identity, *rates in columns.itertuples(index=False):
            points.setdefault(identity, []).append((position, *rates))
    labels = configuration_labels(measurements[-1].dataset)
    return {labels[name]: np.array(line) for name, line in points.items() if name in labels and len(line) > 1}


def _draw(measurements: Sequence[Measurement], lines: dict[str, np.ndarray], width: Width) -> Drawing:
    parts = parted(list(enumerate(lines.items())))
    inches = _PANEL_INCHES
    for part in parts:
        inches = max(inches, labels_inches((label for _, (label, _) in part), width))
    columns = min(len(parts), _COLUMNS[width.name])
    rows = math.ceil(len(parts) / columns)
    drawing, panels = charts.panels(measurements[-1].dataset, width, rows, columns, rows * (inches + 0.4), share_y=True)
    drawing.supylabel("Relative throughput (×)", fontsize=7)
    for axes, part in zip(panels, parts, strict=False):
        axes.axhline(1, color=SOFT, linewidth=0.6)
        for order_in_panel, (position, (_, line)) in enumerate(part):
            # Bars of one date would hide each other.
            positions = line[:, 0] + 0.3 * ((order_in_panel + 0.5) / len(part) - 0.5)
            relative = line[:, 1:] / line[0, 1]
            axes.plot(positions, relative[:, 0], color=colour(position), marker=marker(position))
            axes.vlines(positions, relative[:, 1], relative[:, 2], color=colour(position))
        axes.set_xticks(range(len(measurements)), [measurement.begun for measurement in measurements])
        if width is COLUMN:
            axes.tick_params(axis="x", rotation=30)
        quantity_axes(axes)
    for axes, part in zip(panels, parts, strict=False):
        labels = [EndLabel(line[-1, 1] / line[0, 1], position, label) for position, (label, line) in part]
        draw_end_labels(axes, labels, inches, width)
    for axes in panels[len(parts) :]:
        axes.remove()
    return drawing
