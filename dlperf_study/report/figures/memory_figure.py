"""The figure of what the peak of a rank consists of: weights, gradients, optimizer's state, and the rest."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.process_resources import HELD_COLUMNS
from dlperf_study.report import context
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.figure import Figure, alt_text_of_table
from dlperf_study.report.figures.line_charts import legend_below
from dlperf_study.report.figures.style import COMPUTATION, INK, PALETTE, Width
from dlperf_study.report.formatting import MOST_NAMED, unit_of
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.page_tables import memory as memory_table

TITLE = "What the memory of a rank holds"
#: The kinds of peaks, the first that all configurations have is drawn; and what the rest of each is.
_PEAKS = {
    "peak_allocated_bytes": "activations and buffers",
    "peak_process_bytes": "activations, buffers, and what a process needs without training, such as its libraries",
}
#: So many configurations are drawn, those with the highest peaks.
MOST_DRAWN = 30
_REST = "Rest of the peak"
_NOTHING = "No configuration has both a peak and what its ranks hold."


def memory(dataset: Dataset) -> Iterator[Figure]:
    """Yield the figure of the configurations whose ranks say what they hold."""
    rows = dataset.configurations.dropna(subset=list(HELD_COLUMNS))
    peak = next((name for name in _PEAKS if len(rows) and rows[name].notna().all()), "")
    if not peak:
        yield Figure("memory", TITLE, "", None, _NOTHING)
        return
    drawn = rows.loc[rows[peak].astype(float).nlargest(MOST_DRAWN).index].sort_index()
    label, searched = COLUMNS[peak].label, ""
    if drawn["largest_micro_batch"].notna().any():
        searched = " At its end: the largest micro-batch that fits; ≥: none larger was tried."
    caption = (
        "Each part is that of the rank with most of it, as held after an update; "
        f"the bar ends at the {label[0].lower()}{label[1:]}, and the rest is {_PEAKS[peak]}.{searched}"
    )
    omission = f" The {MOST_DRAWN} of {len(rows)} with the highest peaks are shown." if len(rows) > MOST_DRAWN else ""
    draw, alt = partial(_draw, dataset, drawn, peak), alt_text_of_table(TITLE, memory_table(dataset))
    on_page = f"{caption}{omission}{_left_out(dataset, peak)}"
    yield Figure("memory", TITLE, f"{on_page} {context.conditions(dataset)}", draw, _NOTHING, on_page, alt)


def _left_out(dataset: Dataset, peak: str) -> str:
    """Return which configurations have a peak and no bar, and why; empty where none is left out."""
    rows, labels = dataset.configurations.dropna(subset=peak), configuration_labels(dataset)
    names = [labels[row.identity] for row in rows[rows[list(HELD_COLUMNS)].isna().any(axis=1)].itertuples()]
    if not names:
        return ""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    named = f"{'; '.join(names[:MOST_NAMED])}{more}"
    return f" Without a bar, as it is not known what their ranks hold (the table says why): {named}."


def _draw(dataset: Dataset, rows: pd.DataFrame, peak: str, width: Width) -> Drawing:
    labels = configuration_labels(dataset)
    drawing, axes, categories = charts.category_panel(dataset, width, [labels[name] for name in rows["identity"]])
    unit = unit_of(peak, rows[peak])
    end_of_parts = pd.Series(0.0, index=rows.index)
    style: dict[str, Any] = {"y": range(len(rows)), "height": categories.bar_height}
    for name, colour in zip(HELD_COLUMNS, PALETTE, strict=False):
        part = rows[name].astype(float) / unit.size
        axes.barh(width=part, left=end_of_parts, color=colour, label=COLUMNS[name].label, **style)
        end_of_parts = end_of_parts + part
    # Parts of several ranks may be more than one rank has at its peak.
    rest = (rows[peak].astype(float) / unit.size - end_of_parts).clip(lower=0)
    axes.barh(width=rest, left=end_of_parts, color=COMPUTATION, label=_REST, **style)
    axes.spines["left"].set_color(INK)
    for y, row in enumerate(rows.itertuples()):
        if not pd.isna(row.largest_micro_batch):
            end = getattr(row, peak) / unit.size
            at_least = "≥ " if pd.isna(row.too_large_batch) else ""
            axes.annotate(
                f"{at_least}{row.largest_micro_batch}", (end, y), (3, 0), textcoords="offset points", va="center"
            )
    axes.margins(x=0.1)
    axes.set_xlabel(unit.axis)
    legend_below(drawing, [axes], width)
    return drawing
