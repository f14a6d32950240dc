"""The figure of published speedups, with ours, where ours answer the same question."""

import textwrap
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.figure import SubFigure

from dlperf_study.audit.published.points import SCALING_RATIOS, Published
from dlperf_study.audit.published.same_question import SameQuestion
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings.published import read_published
from dlperf_study.metrics.scaling import differences_from_baseline
from dlperf_study.report import context, formatting, series
from dlperf_study.report.figures import charts, line_charts, style
from dlperf_study.report.figures.figure import Figure, page_figure
from dlperf_study.report.figures.line_charts import LineBlock, legend_below
from dlperf_study.report.say import caption
from dlperf_study.report.tables.published_tables import next_to_ours

MEASURED_HERE = "measured here"
_TITLE_INCHES, _LETTERS_PER_INCH = 0.6, 14


@dataclass(frozen=True)
class _Part:
    """One source's lines of one model, and the matching measured lines."""

    title: str
    published: list[series.Series]
    ours: list[series.Series]

    @property
    def lines(self) -> list[series.Series]:
        return [*self.published, *self.ours]

    def blocks(self, width: style.Width) -> list[LineBlock]:
        """Return the lines in blocks, measured next to published."""
        names = {line.label: line.label for line in self.lines}
        details = {line.label: line_charts.baseline_label(line) for line in self.lines}
        ordered = sorted(self.lines, key=lambda line: line.position % len(self.published))
        return [LineBlock(part, SCALING_RATIOS, names, details, width) for part in line_charts.parted(ordered)]


def speedups(dataset: Dataset) -> Figure:
    """Return published and measured speedup and efficiency against devices."""
    published = read_published(dataset)
    parts = []
    for (source, model), points in published.points.groupby(["source", "model"], sort=False):
        lines = _published_lines(published, points)
        title = f"{formatting.display_name(model)}: {published.sources[source].title}"
        parts.append(_Part(title, lines, _our_lines(dataset, lines)))
    drawn, name = list(filter(attrgetter("ours"), parts)), "published-speedups"
    if not drawn:
        nothing = page_figure(name, None, "", "", None, is_empty=True)
        return replace(nothing, empty=context.no_sources(dataset) or nothing.empty)
    lines = pd.concat([line.rows for part in drawn for line in part.lines])
    sizes = [line.rows["world_size"].nunique() for part in drawn for line in part.ours]
    about_lines = caption(f"figure-{name}", "lines", has_our_lines=max(sizes) > 1)
    has_interval = lines["speedup_low"].notna()
    further = caption(
        f"figure-{name}",
        has_interval=has_interval.any(),
        has_open_markers=not has_interval.all(),
        not_drawn=formatting.listed(part.title for part in parts if part.published and not part.ours),
    )
    in_file = " ".join(filter(None, (about_lines, further))) + context.quick_label(dataset)
    figure = page_figure(name, partial(_draw, dataset, drawn), in_file, about_lines, next_to_ours(dataset))
    return replace(figure, empty="")


def _published_lines(published: Published, points: pd.DataFrame) -> list[series.Series]:
    with_speedup = points.dropna(subset=["speedup"]).astype({"world_size": "int64"})
    is_line = with_speedup.groupby("series")["world_size"].transform("nunique") > 1
    points = with_speedup[is_line]
    labelled = points.assign(label=series.titled_published_labels(published, points))
    lines: list[series.Series] = []
    for _, rows in labelled.groupby("series", sort=False):
        lines.append(series.Series(rows["label"].iloc[0], len(lines), rows.sort_values("world_size", kind="stable")))
    return lines


def _our_lines(dataset: Dataset, published: list[series.Series]) -> list[series.Series]:
    configurations = dataset.configurations
    unlike = differences_from_baseline(configurations, dataset.plan.scaling)
    is_on_curve = ~configurations["configuration_id"].isin(
        [configuration_id for configuration_id, names in unlike.items() if names]
    )
    lines = []
    for line in published:
        matches = SameQuestion(line.rows, configurations).matches()
        configuration_ids = set(chain.from_iterable(map(attrgetter("configuration_ids"), matches)))
        rows = configurations[configurations["configuration_id"].isin(configuration_ids) & is_on_curve].dropna(
            subset=["speedup"]
        )
        if len(rows):
            position = len(published) + line.position
            by_devices = rows.sort_values("world_size", kind="stable")
            lines.append(series.Series(series.joined(MEASURED_HERE, line.label), position, by_devices))
    return lines


def _draw(dataset: Dataset, parts: list[_Part], width: style.Width) -> Drawing:
    blocks = [part.blocks(width) for part in parts]
    heights = [line_charts.blocks_inches(of_part) + _TITLE_INCHES for of_part in blocks]
    drawing = charts.labelled_page(dataset.plan.quick, width, sum(heights))
    subfigures = drawing.subfigures(len(parts), 1, squeeze=False, height_ratios=heights)
    for subfigure, part, of_part in zip(subfigures.flat, parts, blocks, strict=True):
        letters = round(width.inches * _LETTERS_PER_INCH)
        subfigure.suptitle(textwrap.fill(part.title, letters), x=0.01, ha="left", fontsize=7, fontweight="bold")
        _draw_part(subfigure, part, of_part)
    named = [line.label for part in parts for line in part.lines]
    legend_below(drawing, drawing.axes, width, named)
    return drawing


def _draw_part(subfigure: SubFigure, part: _Part, blocks: list[LineBlock]) -> None:
    devices = sorted({int(size) for line in part.lines for size in line.rows["world_size"]})
    ours = list(map(attrgetter("label"), part.ours))

    def draw_line(panel: Axes, line: series.Series, column: str, shift_points: float) -> None:
        line_charts.interval_line(panel, line, column, "--" if line.label in ours else "-", shift_points)

    rows = line_charts.panels_of_blocks(subfigure, blocks)
    for block, panels in zip(blocks, rows, strict=True):
        block.draw(panels, draw_line)
    for block, panels in zip(blocks, rows, strict=True):
        for column, panel in zip(SCALING_RATIOS, panels, strict=True):
            line_charts.ideal_line(panel, devices, [float(size) if column == "speedup" else 1.0 for size in devices])
            line_charts.device_axes(panel, devices, logarithmic_y=column == "speedup")
        block.name_lines(panels)
