"""The figure of published speedups, with ours, where ours answer the same question."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure as Drawing
from matplotlib.figure import SubFigure

from dlperf_study.analysis.published_points import RATIOS, Published, matching_configurations
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import publication_style
from dlperf_study.report.formatting import human, listed, unit_of
from dlperf_study.report.published_series import NOTHING_NAMED, titled_lines
from dlperf_study.report.series import SEPARATOR, Series

OURS = "ours"
#: Height of the panels of one source and model, and of one entry of their legend.
PANELS_INCHES, LEGEND_INCHES = 2.4, 0.14
_SAID = (
    "Dotted: ideal scaling from one device. Each line is relative to a single device of its own: compare shapes only. "
    "Dashed: ours, on our machine; solid: published."
)
_INTERVALS = " Bars: intervals, of what is published from the printed runs."
_NO_INTERVAL = " Open markers have no interval: one value is printed, or too few runs."
_NOT_DRAWN = " Not drawn, but in the tables, as nothing measured here asks the same: "
_EMPTY = (
    "Nothing measured here asks what is published on two or more numbers of devices with a baseline: "
    "what is published stands in the tables alone."
)


@dataclass(frozen=True)
class _Part:
    """What one source printed of one model, as lines, and the lines of ours that ask the same."""

    title: str
    lines: list[Series]
    ours: list[Series]

    @property
    def all_lines(self) -> list[Series]:
        return [*self.lines, *self.ours]

    @property
    def height_inches(self) -> float:
        return PANELS_INCHES + LEGEND_INCHES * len(self.all_lines)


def speedups(dataset: Dataset) -> Figure:
    """Return speedup and efficiency against devices, for each source and model of which something is measured here."""
    published = Published.read(dataset.plan.published)
    parts = list(_parts(dataset, published))
    drawn = [part for part in parts if part.ours]
    with publication_style():
        drawing = _drawn(dataset, drawn) if drawn else None
    others = [part.title for part in parts if part.lines and not part.ours]
    caption = _caption(dataset, drawn, others) if drawn else ""
    empty = _EMPTY if published.sources else NOTHING_NAMED
    return Figure("published-speedups", "Published speedups, and ours", caption, drawing, empty)


def _parts(dataset: Dataset, published: Published) -> Iterator[_Part]:
    for (source, model), points in published.points.groupby(["source", "model"], sort=False):
        lines = _lines(published, points)
        ours = [one for line in lines for one in _ours(dataset, line, len(lines))]
        yield _Part(f"{human(model)}: {published.sources[source].title}", lines, ours)


def _caption(dataset: Dataset, drawn: list[_Part], others: list[str]) -> str:
    """Return what is to be said of the lines that are drawn, once for all, and what is not drawn."""
    known = [value for part in drawn for one in part.all_lines for value in one.rows["speedup_low"].notna()]
    intervals = f"{_INTERVALS * any(known)}{_NO_INTERVAL * (not all(known))}"
    left_out = f"{_NOT_DRAWN}{listed(others)}." if others else ""
    return f"{_SAID}{intervals}{left_out}{context.quick_label(dataset)}"


def _lines(published: Published, points: pd.DataFrame) -> list[Series]:
    """Return the published lines that have a speedup on more than one number of devices, in printed order."""
    known = points.dropna(subset=["speedup"]).astype({"world_size": "int64"})
    known = known[known.groupby("series")["world_size"].transform("nunique") > 1]
    labelled = known.assign(label=titled_lines(published, known))
    groups = [rows for _, rows in labelled.groupby("series", sort=False)]
    return [_series(rows["label"].iloc[0], position, rows) for position, rows in enumerate(groups)]


def _ours(dataset: Dataset, line: Series, published: int) -> Iterator[Series]:
    """Yield our measured configurations that ask the same as the points of a line, as a line of ours."""
    identities = {
        identity for matches in matching_configurations(line.rows, dataset.configurations) for identity in matches
    }
    rows = dataset.configurations[dataset.configurations["identity"].isin(identities)].dropna(subset=["speedup"])
    if len(rows):
        yield _series(SEPARATOR.join((OURS, line.label)), published + line.position, rows)


def _series(label: str, position: int, rows: pd.DataFrame) -> Series:
    return Series(label, position, rows.sort_values("world_size", kind="stable"))


def _drawn(dataset: Dataset, parts: list[_Part]) -> Drawing:
    heights = [part.height_inches for part in parts]
    drawing = charts.page(dataset, sum(heights))
    below = drawing.subfigures(len(parts), 1, squeeze=False, height_ratios=heights)
    for place, part in zip(below.flat, parts, strict=True):
        _draw(place, part)
    return drawing


def _draw(place: SubFigure, part: _Part) -> None:
    place.suptitle(part.title, x=0.01, ha="left", fontsize=7.5, fontweight="bold")
    devices = sorted({int(size) for one in part.all_lines for size in one.rows["world_size"]})
    axes = place.subplots(1, len(RATIOS))
    for column, panel in zip(RATIOS, axes, strict=True):
        for one in part.lines:
            charts.interval_line(panel, one, column)
        for one in part.ours:
            charts.interval_line(panel, one, column, dashes="--")
        charts.ideal_line(panel, devices, [float(size) if column == "speedup" else 1.0 for size in devices])
        charts.device_axes(panel, devices, logarithmic_y=column == "speedup")
        panel.set_title(unit_of(column, []).axis)
        panel.set_xlabel(unit_of("world_size", []).axis)
    charts.legend_below(place, axes[0], {})
