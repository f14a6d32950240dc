"""Figures of published speedups, with ours where they answer the same question."""

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure as Drawing

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.analysis.published import RATIOS, Published, same_question
from dlperf_study.report import charts, context
from dlperf_study.report.figure import Figure
from dlperf_study.report.names import human
from dlperf_study.report.published_lines import titled_lines
from dlperf_study.report.series import SEPARATOR, Series
from dlperf_study.report.style import publication_style
from dlperf_study.report.units import unit_of

OURS = "ours"
#: Height of one entry of the legend.
LEGEND_INCHES = 0.14
_SAID = (
    "Dotted: ideal scaling from one device. Each line is relative to a single device of its own: compare shapes only."
)
_WITH_OURS = " Dashed: ours, on our machine; solid: published."
_INTERVALS = " Bars: intervals, of what is published from the printed runs."
_NO_INTERVAL = " Open markers have no interval: one value is printed, or too few runs."
_EMPTY = "Nothing is published of this model on two or more numbers of devices with a baseline."


def speedups(dataset: Dataset) -> Iterator[Figure]:
    """Yield speedup and efficiency against devices, a figure for each source and model."""
    published = Published.read(dataset.plan.published)
    for (source, model), points in published.points.groupby(["source", "model"], sort=False):
        lines = _lines(published, points)
        ours = [one for line in lines for one in _ours(dataset, line, len(lines))]
        with publication_style():
            drawing = _drawn(dataset, lines, ours)
        name = f"published-{source}-{model}".replace("_", "-")
        title = f"{human(model)}: {published.sources[source].title}"
        yield Figure(name, title, _caption(dataset, lines, ours), drawing, _EMPTY)


def _caption(dataset: Dataset, lines: list[Series], ours: list[Series]) -> str:
    """Return what is to be said of the lines of one figure, and of no others."""
    known = [value for one in (*lines, *ours) for value in one.rows["speedup_low"].notna()]
    intervals = f"{_INTERVALS * any(known)}{_NO_INTERVAL * (not all(known))}"
    return f"{_SAID}{_WITH_OURS * bool(ours)}{intervals}{context.quick_label(dataset)}"


def _lines(published: Published, points: pd.DataFrame) -> list[Series]:
    """Return the published lines that have a speedup on more than one number of devices, in printed order."""
    known = points.dropna(subset=["speedup"]).astype({"world_size": "int64"})
    known = known[known.groupby("series")["world_size"].transform("nunique") > 1]
    labelled = known.assign(label=titled_lines(published, known))
    groups = [rows for _, rows in labelled.groupby("series", sort=False)]
    return [_series(rows["label"].iloc[0], position, rows) for position, rows in enumerate(groups)]


def _ours(dataset: Dataset, line: Series, published: int) -> Iterator[Series]:
    """Yield our measured configurations that ask the same as the points of a line, as a line of ours."""
    identities = {identity for matches in same_question(line.rows, dataset.configurations) for identity in matches}
    rows = dataset.configurations[dataset.configurations["identity"].isin(identities)].dropna(subset=["speedup"])
    if len(rows):
        yield _series(SEPARATOR.join((OURS, line.label)), published + line.position, rows)


def _series(label: str, position: int, rows: pd.DataFrame) -> Series:
    return Series(label, position, rows.sort_values("world_size", kind="stable"))


def _drawn(dataset: Dataset, lines: list[Series], ours: list[Series]) -> Drawing | None:
    if not lines:
        return None
    devices = sorted({int(size) for one in (*lines, *ours) for size in one.rows["world_size"]})
    drawing, axes = charts.panels(dataset, 1, len(RATIOS), 2.2 + LEGEND_INCHES * (len(lines) + len(ours)))
    for column, panel in zip(RATIOS, axes, strict=True):
        for one in lines:
            charts.interval_line(panel, one, column)
        for one in ours:
            charts.interval_line(panel, one, column, dashes="--")
        charts.ideal_line(panel, devices, [float(size) if column == "speedup" else 1.0 for size in devices])
        charts.device_axes(panel, devices, logarithmic_y=column == "speedup")
        panel.set_title(unit_of(column, []).axis)
        panel.set_xlabel(unit_of("world_size", []).axis)
    charts.legend_below(drawing, axes[0], {})
    return drawing
