"""The figure of what each cause adds to the ideal step: a waterfall for each of a few configurations."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings.published import read_published
from dlperf_study.metrics.printed_waterfall import PRINTED_CAUSES, printed_waterfalls
from dlperf_study.metrics.waterfall import CAUSES, TOGETHER, Waterfall
from dlperf_study.report import context, series
from dlperf_study.report.figures import charts, style
from dlperf_study.report.figures.figure import Figure, page_figure
from dlperf_study.report.say import caption
from dlperf_study.report.tables import waterfall_table

MOST_DRAWN, _MOST_PRINTED, _COLUMNS = 6, 9, {"page": 3, "column": 1}
_PALE = 0.45
_PANEL_INCHES, _ROW_INCHES, _LETTERS = 0.9, 0.16, {"page": 26, "column": 40}


@dataclass(frozen=True)
class _Panel:
    """One waterfall of a figure.

    ``size``: of the unit of its axis ``label``, in seconds. ``communication``: printed communication in seconds.
    """

    title: str
    steps: Waterfall
    size: float
    label: str
    communication: float = 0.0


def waterfall(dataset: Dataset) -> Iterator[Figure]:
    """Yield the waterfalls of the configurations that lose most."""
    breakdowns = waterfall_table.waterfalls(dataset)
    steps = {
        configuration_id: steps for configuration_id, steps in breakdowns.shown.items() if steps.has_several_causes
    }
    lost = sorted(
        steps, key=lambda configuration_id: steps[configuration_id].ideal.mean / steps[configuration_id].measured.mean
    )
    drawn = [configuration_id for configuration_id in steps if configuration_id in lost[:MOST_DRAWN]]
    unit, labels = waterfall_table.step_unit(dataset), series.configuration_labels(dataset)
    panels = [
        _Panel(labels[configuration_id], steps[configuration_id], unit.size, f"Step ({unit.symbol})")
        for configuration_id in drawn
    ]
    hidden = caption("figure-waterfall", "hidden", hidden=len(breakdowns.hidden))
    on_page = caption(
        "figure-waterfall",
        has_lines=any(steps[configuration_id].has_intervals for configuration_id in drawn),
        has_rest=any(TOGETHER in steps[configuration_id].causes for configuration_id in drawn),
        count=len(steps),
        shown=MOST_DRAWN,
        hidden=hidden,
    )
    draw = partial(_draw, dataset, panels, (waterfall_table.IDEAL, CAUSES, waterfall_table.MEASURED))
    in_file, table = f"{on_page} {context.conditions(dataset)}", waterfall_table.causes(dataset)
    figure = page_figure("waterfall", draw, in_file, on_page, table, is_empty=not drawn)
    yield replace(figure, empty=hidden or figure.empty)


def printed_waterfall(dataset: Dataset) -> Figure:
    """Return the waterfalls of the most workers of each printed table."""
    published = read_published(dataset)
    largest = {(steps.source, steps.table): steps for steps in printed_waterfalls(published.cells)}
    distinct = {(steps.ideal, steps.measured): steps for steps in reversed(largest.values())}
    panels = []
    for steps in reversed(distinct.values()):
        title = waterfall_table.panel_title(published, steps)
        panels.append(_Panel(title, waterfall_table.printed_steps(steps), 1.0, "Task or step (s)", steps.communication))
    labels = (waterfall_table.ONE_WORKER, PRINTED_CAUSES, waterfall_table.SEVERAL_WORKERS)
    draw, table = partial(_draw, dataset, panels[:_MOST_PRINTED], labels), waterfall_table.printed_causes(dataset)
    about = caption("figure-printed-waterfall")
    return replace(page_figure("printed-waterfall", draw, about, "", table, is_empty=not panels), empty=table.empty)


def _draw(
    dataset: Dataset, panels: Sequence[_Panel], labels: tuple[str, Mapping[str, str], str], width: style.Width
) -> Drawing:
    """Draw a panel for each waterfall; ``labels``: first row, causes, last row."""
    first, of_causes, last = labels
    columns = min(len(panels), _COLUMNS[width.name])
    rows = math.ceil(len(panels) / columns)
    drawn = set[str]().union(*(panel.steps.causes for panel in panels))
    names = list(filter(drawn.__contains__, of_causes))
    height = rows * (_PANEL_INCHES + _ROW_INCHES * (len(names) + 2))
    drawing, all_axes = charts.panels(dataset, width, rows, columns, height, share_y=False)
    for axes, position in zip(all_axes, range(rows * columns), strict=True):
        if position >= len(panels):
            axes.set_visible(False)
            continue
        panel = panels[position]
        _draw_waterfall(axes, panel, names)
        row_labels = (first, *(of_causes[name] for name in names), last)
        axes.set_yticks(range(len(row_labels)), row_labels if position % columns == 0 else [""] * len(row_labels))
        axes.set_title(style.wrapped(panel.title, _LETTERS[width.name]))
        axes.set_xlabel(panel.label)
    return drawing


def _draw_waterfall(axes: Axes, panel: _Panel, names: Sequence[str]) -> None:
    """Draw bars from the ideal step to the measured step."""
    steps, size = panel.steps, panel.size
    end, last_row, bottom = steps.ideal.mean, 0, len(names) + 1
    axes.barh(0, end / size, height=0.7, color=style.COMPUTATION)
    for row, name in enumerate(names, 1):
        if name not in steps.causes:
            continue
        estimate = steps.causes[name]
        colour = style.PALETTE[1] if estimate.mean >= 0 else style.PALETTE[2]
        alpha = _PALE if name == TOGETHER else 1.0
        axes.barh(row, estimate.mean / size, left=end / size, height=0.7, color=colour, alpha=alpha)
        if interval := estimate.interval():
            axes.hlines(row, (end + interval.low) / size, (end + interval.high) / size, color=style.INK, linewidth=0.9)
        axes.vlines(end / size, last_row, row, color=style.SOFT, linewidth=0.5)
        end, last_row = end + estimate.mean, row
    axes.vlines(end / size, last_row, bottom, color=style.SOFT, linewidth=0.5)
    axes.barh(bottom, steps.measured.mean / size, height=0.7, color=style.COMPUTATION)
    if panel.communication:
        axes.hlines(bottom, (end - panel.communication) / size, end / size, color=style.INK, linewidth=2.0)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(bottom + 0.6, -0.6)
    axes.grid(True, axis="x")
