"""The figure of what each cause adds to the ideal step: a waterfall for each of a few configurations."""

import math
from collections.abc import Iterator, Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.waterfall import Waterfall
from dlperf_study.report import context
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.figure import Figure, alt_text_of_table
from dlperf_study.report.figures.style import COMPUTATION, INK, PALETTE, SOFT, Width, wrapped
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.waterfall_table import NOTHING, STEPS, TITLE, causes, step_unit
from dlperf_study.report.waterfalls import waterfalls

#: So many configurations are drawn, those that lose most, in so many columns.
MOST_DRAWN, _COLUMNS = 6, {"page": 3, "column": 1}
_PANEL_INCHES, _LETTERS = 2.2, {"page": 26, "column": 40}
_CAPTION = (
    "Ideal: the baseline's step, for as much work of a device. Each bar begins where the one before ends: by how much "
    "a cause makes a step longer or shorter. Lines: 95 % intervals."
)


def waterfall(dataset: Dataset) -> Iterator[Figure]:
    """Yield the figure of the configurations that lose the largest share of their ideal step."""
    steps = waterfalls(dataset)
    lost = sorted(steps, key=lambda identity: steps[identity].ideal.mean / steps[identity].measured.mean)
    drawn = [identity for identity in steps if identity in lost[:MOST_DRAWN]]
    omission = f" The {MOST_DRAWN} of {len(steps)} that lose most are shown." if len(steps) > MOST_DRAWN else ""
    draw = partial(_draw, dataset, drawn) if drawn else None
    caption = f"{_CAPTION}{omission}"
    alt = alt_text_of_table(TITLE, causes(dataset))
    yield Figure("waterfall", TITLE, f"{caption} {context.conditions(dataset)}", draw, NOTHING, caption, alt)


def _draw(dataset: Dataset, identities: Sequence[str], width: Width) -> Drawing:
    columns = min(len(identities), _COLUMNS[width.name])
    rows = math.ceil(len(identities) / columns)
    drawing, panels = charts.panels(dataset, width, rows, columns, rows * _PANEL_INCHES, share_y=False)
    unit, labels = step_unit(dataset), configuration_labels(dataset)
    for position, axes in enumerate(panels):
        if position >= len(identities):
            axes.set_visible(False)
            continue
        _draw_waterfall(axes, waterfalls(dataset)[identities[position]], unit.size, is_named=position % columns == 0)
        axes.set_title(wrapped(labels[identities[position]], _LETTERS[width.name]))
        axes.set_xlabel(f"Step ({unit.symbol})")
    return drawing


def _draw_waterfall(axes: Axes, steps: Waterfall, size: float, is_named: bool) -> None:
    """Draw bars from the ideal step on top to the measured one, each beginning where the one before ends."""
    end = steps.ideal.mean
    axes.barh(0, end / size, height=0.7, color=COMPUTATION)
    for row, estimate in enumerate(steps.causes.values(), 1):
        longer = PALETTE[1] if estimate.mean >= 0 else PALETTE[2]
        axes.barh(row, estimate.mean / size, left=end / size, height=0.7, color=longer)
        interval = estimate.interval()
        if interval:
            axes.hlines(row, (end + interval.low) / size, (end + interval.high) / size, color=INK, linewidth=0.9)
        axes.vlines(end / size, row - 1, row, color=SOFT, linewidth=0.5)
        end += estimate.mean
    axes.barh(len(STEPS) - 1, steps.measured.mean / size, height=0.7, color=COMPUTATION)
    axes.set_yticks(range(len(STEPS)), STEPS if is_named else [""] * len(STEPS))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(STEPS) - 0.4, -0.6)
    axes.grid(True, axis="x")
