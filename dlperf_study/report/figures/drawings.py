"""The drawings: from the series of one model to a matplotlib figure, or to None where there is nothing to draw."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.context import completed_runs
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.style import (
    EXCHANGE,
    FAINT,
    PALETTE,
    SOFT,
    category_axes,
    colour,
    quantity_axes,
)
from dlperf_study.report.formatting import is_missing, unit_of
from dlperf_study.report.series import Group, Series, devices_label, joined, short_labels

SCALED = ("throughput", "speedup", "efficiency")
STEP_COLUMNS = 3
#: The windows of measured runs and of ingested logs that are drawn step by step.
STEP_WINDOWS = ("warmup", "training", "left_out")
#: How many panels and rows a page has, all models together, and of how many pieces a panel can show the extremes.
MOST_PANELS, MOST_ROWS, STEP_PIECES = 24, 60, 60
#: By figure: how many configurations a page shows, and which.
_LEFT_OUT = {
    "steps": (MOST_PANELS, "whose steps vary most"),
    "stragglers": (MOST_ROWS, "whose ranks differ most"),
}
#: How many parts the ticks of such a panel divide its steps into at most.
STEP_TICKS = 4
#: From this ratio of the longest to the shortest step on, the axis is marked at powers of two.
_WIDE = 4
#: How much of a label fits above one of them.
PANEL_LETTERS = 44


def overview(dataset: Dataset, series: list[Series]) -> Drawing | None:
    """Draw one row per measured configuration: its runs, their mean and its interval."""
    rows = _rows(series)
    if rows.empty:
        return None
    drawing, axes = charts.category_panel(dataset, list(rows["label"]))
    charts.runs_and_means(dataset, axes, rows)
    return drawing


def scaling(dataset: Dataset, series: list[Series]) -> Drawing | None:
    """Draw throughput, speedup and efficiency against devices, one line per series."""
    lines = [line for line in series if len(line.measured)]
    devices = sorted({size for line in lines for size in line.measured["world_size"]})
    if len(devices) < 2:
        return None
    labels = {}
    for line, label in zip(lines, short_labels(lines), strict=True):
        labels[line.label] = "\n".join(filter(None, (label, charts.baseline_label(line))))
    named = [line.label for line in lines if line.measured["efficiency"].notna().any()]
    has_end_labels = len(named) == len(lines) <= charts.MOST_END_LABELS
    # Titles, ticks and the legend take 0.8 inches of the height.
    height = max(2.6, 0.8 + charts.end_labels_inches(labels.values())) if has_end_labels else 2.6
    drawing, axes = charts.panels(dataset, 1, 3, height)
    for column, panel in zip(SCALED, axes, strict=True):
        for line, shift in zip(lines, charts.shifts(len(lines)), strict=True):
            charts.interval_line(panel, line, column, shift_points=shift)
            if line.measured["exchange_seconds"].notna().any():
                charts.bound_line(panel, line.measured, column, colour(line.position))
        panel.set_title(unit_of(column, []).axis)
        panel.set_xlabel(unit_of("world_size", []).axis)
    _draw_ideal(axes, lines, devices)
    for column, panel in zip(SCALED, axes, strict=True):
        charts.device_axes(panel, devices, logarithmic_y=column != "efficiency")
    if has_end_labels:
        charts.end_labels(axes[2], lines, "efficiency", labels, height - 0.8)
        charts.legend_below(drawing, axes[0], {}, named)
    else:
        in_one_line = {name: label.replace("\n", ": ") for name, label in labels.items()}
        charts.legend_below(drawing, axes[0], in_one_line)
    return drawing


def _draw_ideal(axes: Sequence[Axes], lines: list[Series], devices: Sequence[int]) -> None:
    """Draw what perfect scaling gives: a rate per line from its baseline on, which may be a point of another line."""
    throughput, speedup, efficiency = axes
    all_baseline_devices = set()
    for line in lines:
        rows = line.measured.dropna(subset=["speedup"])
        # The number of devices that efficiency was computed with.
        all_devices = (rows["efficiency"] * rows["world_size"] / rows["speedup"]).round().astype(int)
        for (rate, baseline_devices), points in rows.groupby(["baseline_throughput", all_devices]):
            sizes = sorted({baseline_devices, *points["world_size"]})
            rates = [rate * size / baseline_devices for size in sizes]
            charts.ideal_line(throughput, sizes, rates, colour(line.position))
        all_baseline_devices.update(all_devices)
    for baseline_devices in sorted(all_baseline_devices):
        charts.ideal_line(speedup, devices, [size / baseline_devices for size in devices])
    charts.ideal_line(efficiency, devices, [1.0] * len(devices))


def communication(dataset: Dataset, series: list[Series]) -> Drawing | None:
    """Draw each step as computation and exposed communication, with the pure communication as a thin line."""
    rows = _rows(series)
    if rows["exchange_seconds"].isna().all() and not (rows["input_seconds"] > 0).any():
        return None
    unit = unit_of("step_seconds", rows["step_seconds"])
    drawing, axes = charts.category_panel(dataset, list(rows["label"]), extra_inches=1.0)
    charts.step_bars(axes, rows, unit)
    step, exposed, exchange = (
        rows[["step_seconds", "exposed_seconds", "exchange_seconds"]].to_numpy(float).T / unit.size
    )
    bounds = rows[["exposed_seconds_low", "exposed_seconds_high"]].to_numpy(float).T / unit.size
    interval_ends = step - exposed + bounds
    exchange_start = step - np.maximum(exposed, 0.0)
    style: dict[str, Any] = {"color": EXCHANGE, "linewidth": 1, "label": unit_of("exchange_seconds", []).label}
    axes.hlines(rows["y"], exchange_start, exchange_start + exchange, **style)
    interval: dict[str, Any] = {"color": SOFT, "linewidth": 3, "alpha": 0.6, "label": "interval of what is exposed"}
    axes.hlines(rows["y"] + 0.2, *interval_ends, **interval)
    charts.legend_below(drawing, axes, {})
    return drawing


def comparison(dataset: Dataset, groups: list[Group]) -> Drawing | None:
    """Draw each group under its heading: throughputs with their runs on the left, what a step contains on the right."""
    labels: list[str] = []
    headings, parts = [], []
    for group in groups:
        if len(group.measured):
            headings.append(len(labels))
            first = len(labels) + 1
            parts.append(group.measured.assign(y=range(first, first + len(group.measured))))
            labels += [group.shared, *group.measured["label"]]
    if not parts:
        return None
    rows = pd.concat(parts)
    height = 0.9 + charts.ROW_INCHES * len(labels)
    drawing, (rates, times) = charts.panels(dataset, 1, 2, height, share_y=True)
    for axes in (rates, times):
        category_axes(axes, labels)
    for heading in headings:
        rates.get_yticklabels()[heading].set_fontweight("bold")
    charts.runs_and_means(dataset, rates, rows)
    charts.step_bars(times, rows, unit_of("step_seconds", rows["step_seconds"]))
    charts.legend_below(drawing, times, {})
    return drawing


def steps(dataset: Dataset, series: list[Series]) -> Drawing | None:
    """Draw a panel per measured configuration, of many only those whose steps vary most: every step of every run.

    Relative to the median of the run.
    """
    rows = _most_varying(dataset, _rows(series))
    if rows.empty:
        return None
    panel_rows = math.ceil(len(rows) / STEP_COLUMNS)
    drawing, axes = charts.panels(dataset, panel_rows, STEP_COLUMNS, 0.5 + 1.3 * panel_rows, share_y=True)
    is_shown = dataset.steps["identity"].isin(rows["identity"]) & dataset.steps["window"].isin(STEP_WINDOWS)
    steps_by_identity = dict(list(dataset.steps[is_shown].groupby("identity", observed=True)))
    for panel, row in zip(axes, rows.itertuples(), strict=False):
        _draw_steps(panel, row, list(_relative_steps(steps_by_identity[row.identity], row)))
    for panel in axes[: len(rows)]:
        _relative_axes(panel)
    for panel in axes[len(rows) :]:
        panel.set_visible(False)
    drawing.supxlabel("step (measured from 0)", fontsize=7)
    drawing.supylabel("step time / median", fontsize=7)
    return drawing


def omissions(dataset: Dataset, figure: str, series: list[Series]) -> str:
    """Return the sentence on the configurations that a figure leaves out; empty where it shows all."""
    if figure not in _LEFT_OUT:
        return ""
    most, criterion = _LEFT_OUT[figure]
    count, shown = sum(len(line.measured) for line in series), _most_of_model(dataset, most)
    return f"Of {count} configurations the {shown} {criterion} are shown." if count > shown else ""


def _most_varying(dataset: Dataset, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the configurations of which a run has the most varying steps, in the order of the rows."""
    most = _most_of_model(dataset, MOST_PANELS)
    if len(rows) <= most:
        return rows
    variations = completed_runs(dataset).groupby("identity")["step_variation"].max()
    most_varying = rows["identity"].map(variations).fillna(0.0).nlargest(most)
    return rows[rows.index.isin(most_varying.index)]


def _draw_steps(panel: Axes, row: Any, runs: list[pd.Series]) -> None:
    """Draw the runs of one configuration, and the warm-up grey."""
    title = [*textwrap.wrap(row.series, PANEL_LETTERS), devices_label(row)]
    panel.set_title("\n".join(title), fontsize=6, fontweight="normal")
    first_step = min((run.index.min() for run in runs), default=0)
    if first_step < 0:
        panel.axvspan(first_step - 0.5, -0.5, color=FAINT, linewidth=0)
    for position, run in enumerate(map(_thinned, runs)):
        panel.plot(run.index, run.to_numpy(), linewidth=0.8, color=PALETTE[position % len(PALETTE)])


def _thinned(run: pd.Series) -> pd.Series:
    """Return the shortest and the longest step of each piece of a long run: a panel has no room for more."""
    if len(run) <= 2 * STEP_PIECES:
        return run
    pieces = pd.Series(run.to_numpy()).groupby(np.arange(len(run)) * STEP_PIECES // len(run))
    return run.iloc[np.union1d(pieces.idxmin(), pieces.idxmax())]


def _relative_steps(steps: pd.DataFrame, row: Any) -> Iterator[pd.Series]:
    """Yield, per run, step times over the median of those that count, numbered from minus the warm-up."""
    for _, run in steps.groupby("repetition"):
        counts = run["window"] == "training"
        if is_missing(row.warmup_steps):
            # Ingested logs do not say how many steps came before the first one that counts.
            index = run["step"] - run.loc[counts, "step"].min()
        else:
            is_warmup = run["window"] == "warmup"
            index = run["step"] - is_warmup * is_warmup.groupby(run["rank"]).sum().max()
        slowest = run.groupby(index)["seconds"].max()
        yield slowest / run[counts].groupby(index[counts])["seconds"].max().median()


def _relative_axes(axes: Axes) -> None:
    quantity_axes(axes)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    is_wide = high > _WIDE * low
    axes.yaxis.set_major_locator(FixedLocator([0.25, 0.5, 1, 2, 4, 8, 16]) if is_wide else MaxNLocator(5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    # Ingested logs count to hundreds of thousands, and the panels are narrow.
    axes.xaxis.set_major_locator(MaxNLocator(STEP_TICKS, integer=True))


def stragglers(dataset: Dataset, series: list[Series]) -> Drawing | None:
    """Draw the mean computation step of each rank relative to the slowest of its run."""
    # Importing it takes a third of all that the notebook of a configuration imports, and that has no such dots.
    import seaborn

    rows = _rows(series)
    rows = rows[rows["world_size"] > 1]
    ranks = _rank_shares(dataset, rows)
    if ranks.empty:
        return None
    slowest_ranks = (
        ranks.groupby("identity", observed=True)["share"].min().nsmallest(_most_of_model(dataset, MOST_ROWS))
    )
    if len(rows) > len(slowest_ranks):
        rows = rows[rows["identity"].isin(slowest_ranks.index)]
    ranks = charts.at_same_height(ranks, rows.assign(y=range(len(rows))))
    drawing, axes = charts.category_panel(dataset, list(rows["label"]))
    dots = {"size": 3, "color": PALETTE[0], "alpha": 0.55, "jitter": False}
    seaborn.stripplot(ranks, x="share", y="y", orient="h", native_scale=True, ax=axes, **dots)
    axes.set_ylabel("")
    axes.axvline(1, color=SOFT, linewidth=0.8)
    axes.set_xlim(min(0.9, float(ranks["share"].min()) - 0.02), 1.01)
    axes.set_xlabel("rank's computation / slowest rank's")
    return drawing


def _rank_shares(dataset: Dataset, rows: pd.DataFrame) -> pd.DataFrame:
    """Return ``identity``, ``repetition``, ``rank`` and ``share``: its mean computation step / the slowest rank's."""
    steps = dataset.steps
    is_shown = steps["window"].isin(("computation_before", "computation_after")) & steps["identity"].isin(
        rows["identity"]
    )
    of_run = ["identity", "repetition"]
    ranks = steps[is_shown].groupby([*of_run, "rank"], as_index=False, observed=True)["seconds"].mean()
    return ranks.assign(share=ranks["seconds"] / ranks.groupby(of_run, observed=True)["seconds"].transform("max"))


def _most_of_model(dataset: Dataset, most: int) -> int:
    """Return how many of the configurations of a model are drawn one by one, so that a page has ``most`` of them."""
    models = len(dataset.configurations["model"].unique())
    return max(STEP_COLUMNS, most // models)


def _rows(series: list[Series]) -> pd.DataFrame:
    """Return the measured configurations with a ``y`` each, their labels, and the position of their series."""
    parts = []
    for line, label in zip(series, short_labels(series), strict=True):
        labels = [joined(label, devices_label(row)) for row in line.measured.itertuples()]
        parts.append(line.measured.assign(position=line.position, series=label, label=labels))
    rows = pd.concat(parts)
    return rows.assign(y=range(len(rows)))
