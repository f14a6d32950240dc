"""The figure of what each cause adds to the ideal step: a waterfall for each of a few configurations."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings.published import read_published
from dlperf_study.metrics.printed_waterfall import PRINTED_CAUSES, printed_waterfalls
from dlperf_study.metrics.waterfall import CAUSES, TOGETHER, Waterfall
from dlperf_study.report import context, series
from dlperf_study.report.figures import charts, style
from dlperf_study.report.figures.figure import Figure, alt_text_of_table
from dlperf_study.report.tables import waterfall_table

MOST_DRAWN, _MOST_PRINTED, _COLUMNS = 6, 9, {"page": 3, "column": 1}
_PALE = 0.45
_PANEL_INCHES, _ROW_INCHES, _LETTERS = 0.9, 0.16, {"page": 26, "column": 40}
_CAPTION = (
    "Ideal: the baseline's step, for as much work of a device. Each bar begins where the one before ends: by how much "
    "a cause makes a step longer or shorter."
)
_LINES = " Lines: 95 % intervals."
_TOGETHER = " Pale: computation, load imbalance, waiting and exchange together, where no measurement divides them."
_PRINTED_CAPTION = (
    "Seconds of one worker for a task, or for a step where shares of communication are printed: that of one worker, "
    "what each cause adds, and that of the most workers of each table. Black line: exchange and copy as printed; where "
    "it is longer than these causes, the wait for the device is in it. Printed once: no intervals."
)
_NOTHING = "Of no configuration and its baseline a part of the step is known."


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
    steps = {identity: steps for identity, steps in breakdowns.shown.items() if steps.has_several_causes}
    lost = sorted(steps, key=lambda identity: steps[identity].ideal.mean / steps[identity].measured.mean)
    drawn = [identity for identity in steps if identity in lost[:MOST_DRAWN]]
    omission = ""
    if len(steps) > MOST_DRAWN:
        omission = f" The {MOST_DRAWN} of {len(steps)} that lose most are shown."
    hidden = ""
    if count := len(breakdowns.hidden):
        contradict, are = ("contradicts", "is") if count == 1 else ("contradict", "are")
        hidden = f" {counted(count, 'breakdown')} {contradict} the throughput and {are} not shown; "
        hidden += "the table has the numbers."
    unit, labels = waterfall_table.step_unit(dataset), series.configuration_labels(dataset)
    panels = [_Panel(labels[identity], steps[identity], unit.size, f"Step ({unit.symbol})") for identity in drawn]
    draw = None
    if drawn:
        draw = partial(_draw, dataset, panels, (waterfall_table.IDEAL, CAUSES, waterfall_table.MEASURED))
    has_rest = any(TOGETHER in steps[identity].causes for identity in drawn)
    has_lines = any(steps[identity].has_intervals for identity in drawn)
    caption = f"{_CAPTION}{_LINES * has_lines}{_TOGETHER * has_rest}{omission}{hidden}"
    alt = alt_text_of_table(waterfall_table.TITLE, waterfall_table.causes(dataset))
    yield Figure(
        "waterfall",
        waterfall_table.TITLE,
        f"{caption} {context.conditions(dataset)}",
        draw,
        hidden.strip() or _NOTHING,
        caption,
        alt,
    )


def printed_waterfall(dataset: Dataset) -> Figure:
    """Return the waterfalls of the most workers of each printed table."""
    published = read_published(dataset)
    largest = {(steps.source, steps.table): steps for steps in printed_waterfalls(published.cells)}
    distinct = {(steps.ideal, steps.measured): steps for steps in reversed(largest.values())}
    panels = []
    for steps in reversed(distinct.values()):
        title = waterfall_table.panel_title(published, steps)
        panels.append(_Panel(title, waterfall_table.printed_steps(steps), 1.0, "Task or step (s)", steps.communication))
    panels = panels[:_MOST_PRINTED]
    draw = None
    if panels:
        draw = partial(
            _draw, dataset, panels, (waterfall_table.ONE_WORKER, PRINTED_CAUSES, waterfall_table.SEVERAL_WORKERS)
        )
    table = waterfall_table.printed_causes(dataset)
    alt = alt_text_of_table(waterfall_table.PRINTED_TITLE, table)
    return Figure("printed-waterfall", waterfall_table.PRINTED_TITLE, _PRINTED_CAPTION, draw, table.empty, alt=alt)


def _draw(
    dataset: Dataset, panels: Sequence[_Panel], labels: tuple[str, Mapping[str, str], str], width: style.Width
) -> Drawing:
    """Draw a panel for each waterfall; ``labels``: first row, causes, last row."""
    first, of_causes, last = labels
    columns = min(len(panels), _COLUMNS[width.name])
    rows = math.ceil(len(panels) / columns)
    names = [name for name in of_causes if any(name in panel.steps.causes for panel in panels)]
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
        alpha = 1.0
        if name == TOGETHER:
            alpha = _PALE
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
