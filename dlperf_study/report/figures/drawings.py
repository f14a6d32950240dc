"""The drawings: from the series of one model to a matplotlib figure, or to None where there is nothing to draw."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import formatting
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
from dlperf_study.report.formatting import is_missing, plain, unit_of
from dlperf_study.report.series import SEPARATOR, Group, Series, devices_of, short_labels

SCALED = ("throughput", "speedup", "efficiency")
STEP_COLUMNS = 3
#: How many parts the ticks of such a panel divide its steps into at most.
STEP_TICKS = 4
#: From this ratio of the longest to the shortest step on, the axis is marked at powers of two.
_WIDE = 4
#: How much of a label fits above one of them.
PANEL_LETTERS = 44


def overview(dataset: Dataset, series: list[Series]) -> Drawing | None:
    """Draw one row per measured configuration: its runs, their median and its interval."""
    rows = _rows(series)
    if rows.empty:
        return None
    drawing, axes = charts.category_panel(dataset, list(rows["label"]))
    charts.runs_and_medians(dataset, axes, rows)
    return drawing


def scaling(dataset: Dataset, series: list[Series]) -> Drawing | None:
    """Draw throughput, speedup and efficiency against devices, one line per series."""
    shown = [one for one in series if len(one.measured)]
    devices = sorted({size for one in shown for size in one.measured["world_size"]})
    if len(devices) < 2:
        return None
    drawing, axes = charts.panels(dataset, 1, 3, 2.6)
    for column, panel in zip(SCALED, axes, strict=True):
        for one in shown:
            charts.interval_line(panel, one, column)
        panel.set_title(unit_of(column, []).axis)
        panel.set_xlabel(unit_of("world_size", []).axis)
    _ideal_throughputs(axes[0], shown)
    _ideal_speedups(axes[1], axes[2], shown, devices)
    for column, panel in zip(SCALED, axes, strict=True):
        charts.device_axes(panel, devices, logarithmic_y=column != "efficiency")
    charts.legend_below(drawing, axes[0], _baselines(dataset, shown))
    return drawing


def communication(dataset: Dataset, series: list[Series]) -> Drawing | None:
    """Draw each step as computation and exposed communication, with the pure communication as a thin line."""
    rows = _rows(series)
    if rows["exchange_seconds"].isna().all():
        return None
    unit = unit_of("step_seconds", rows["step_seconds"])
    drawing, axes = charts.category_panel(dataset, list(rows["label"]), extra_inches=1.0)
    charts.step_bars(axes, rows, unit)
    step, exposed, exchange = (
        rows[name].to_numpy(float) / unit.size for name in ("step_seconds", "exposed_seconds", "exchange_seconds")
    )
    alone: dict[str, Any] = {"color": EXCHANGE, "linewidth": 1, "label": _label("exchange_seconds")}
    axes.hlines(rows["place"], step - exposed, step - exposed + exchange, **alone)
    for row, end in zip(rows.itertuples(), np.fmax(step, step - exposed + exchange), strict=True):
        axes.annotate(_ratio(row), (end, row.place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=6)
    charts.legend_below(drawing, axes, {})
    return drawing


def comparison(dataset: Dataset, groups: list[Group]) -> Drawing | None:
    """Draw each group under its heading: throughputs with their runs on the left, what a step holds on the right."""
    shown = [group for group in groups if len(group.measured)]
    if not shown:
        return None
    labels, rows = _under_headings(shown)
    drawing, (rates, times) = charts.panels(dataset, 1, 2, 0.9 + charts.ROW_INCHES * len(labels), share_y=True)
    for axes in (rates, times):
        category_axes(axes, labels)
    for heading in set(range(len(labels))) - set(rows["place"]):
        rates.get_yticklabels()[heading].set_fontweight("bold")
    charts.runs_and_medians(dataset, rates, rows)
    charts.step_bars(times, rows, unit_of("step_seconds", rows["step_seconds"]))
    charts.legend_below(drawing, times, {})
    return drawing


def steps(dataset: Dataset, series: list[Series]) -> Drawing | None:
    """Draw one panel per measured configuration: every step of every run, relative to the run's median."""
    rows = _rows(series)
    if rows.empty:
        return None
    height = math.ceil(len(rows) / STEP_COLUMNS)
    drawing, axes = charts.panels(dataset, height, STEP_COLUMNS, 0.5 + 1.3 * height, share_y=True)
    for panel, row in zip(axes, rows.itertuples(), strict=False):
        panel.set_title(_wrapped(row), fontsize=6, fontweight="normal")
        runs = list(_relative_steps(dataset, row))
        first = min((run.index.min() for run in runs), default=0) if is_missing(row.warmup_steps) else -row.warmup_steps
        if first < 0:
            panel.axvspan(first - 0.5, -0.5, color=FAINT, linewidth=0)
        for number, run in enumerate(runs):
            panel.plot(run.index, run.to_numpy(), linewidth=0.8, color=PALETTE[number % len(PALETTE)])
    for panel in axes[: len(rows)]:
        _relative_axes(panel)
    for panel in axes[len(rows) :]:
        panel.set_visible(False)
    drawing.supxlabel("step (measured from 0)", fontsize=7)
    drawing.supylabel("step time / median", fontsize=7)
    return drawing


def stragglers(dataset: Dataset, series: list[Series]) -> Drawing | None:
    """Draw the mean computation step of each rank relative to the slowest of its run."""
    rows = _rows(series)
    rows = rows[rows["world_size"] > 1]
    ranks = _relative_ranks(dataset.steps, rows)
    if ranks.empty:
        return None
    drawing, axes = charts.category_panel(dataset, list(rows["label"]))
    dots = {"size": 3, "color": PALETTE[0], "alpha": 0.55, "jitter": False}
    seaborn.stripplot(ranks, x="share", y="place", orient="h", native_scale=True, ax=axes, **dots)
    axes.set_ylabel("")
    axes.axvline(1, color=SOFT, linewidth=0.8)
    axes.set_xlim(min(0.9, float(ranks["share"].min()) - 0.02), 1.01)
    axes.set_xlabel("rank's computation / slowest rank's")
    return drawing


def _rows(series: list[Series]) -> pd.DataFrame:
    """Return the measured configurations of some series, labelled, with the position of their series."""
    labels = short_labels(series)
    parts = [
        one.measured.assign(position=one.position, series=label) for one, label in zip(series, labels, strict=True)
    ]
    rows = pd.concat(parts)
    names = [SEPARATOR.join(filter(None, [row.series, devices_of(row)])) for row in rows.itertuples()]
    return rows.assign(label=names, place=range(len(rows)))


def _under_headings(groups: list[Group]) -> tuple[list[str], pd.DataFrame]:
    """Return the labels of all lines, each group's place above its own, and the rows with the ``place`` of theirs."""
    labels: list[str] = []
    parts = []
    for group in groups:
        labels.append(group.place)
        parts.append(group.measured.assign(place=range(len(labels), len(labels) + len(group.measured))))
        labels.extend(group.measured["label"])
    return labels, pd.concat(parts)


def _ideal_throughputs(axes: Axes, series: list[Series]) -> None:
    """Draw a line per series from its baseline on, which may be another series' point."""
    for one in series:
        for (rate, alone), rows in _with_baseline_devices(one).groupby(["baseline_throughput", "baseline_devices"]):
            sizes = sorted({alone, *rows["world_size"]})
            charts.ideal_line(axes, sizes, [rate * size / alone for size in sizes], colour(one.position))


def _ideal_speedups(speedup: Axes, efficiency: Axes, series: list[Series], devices: Sequence[int]) -> None:
    """Draw the line through each distinct number of baseline devices; efficiency's ideal is one."""
    rows = pd.concat([_with_baseline_devices(one) for one in series])
    for alone in sorted(set(rows["baseline_devices"])):
        charts.ideal_line(speedup, devices, [size / alone for size in devices])
    charts.ideal_line(efficiency, devices, [1.0] * len(devices))


def _with_baseline_devices(series: Series) -> pd.DataFrame:
    """Return the rows that have a speedup, with the number of devices that efficiency was computed with."""
    rows = series.measured.dropna(subset=["speedup"])
    alone = rows["efficiency"] * rows["world_size"] / rows["speedup"]
    return rows.assign(baseline_devices=alone.round().astype(int))


def _baselines(dataset: Dataset, series: list[Series]) -> dict[str, str]:
    """Return the legend's text of each series: its short label and the absolute throughput of its baseline."""
    return {one.label: f"{short} ({_baseline(one)})" for one, short in zip(series, short_labels(series), strict=True)}


def _baseline(series: Series) -> str:
    known = dict.fromkeys(series.measured["baseline_throughput"].dropna())
    unit = unit_of("baseline_throughput", known)
    return f"1× = {' or '.join(map(plain, known))} {unit.symbol}" if known else "no baseline measured"


def _label(column: str) -> str:
    return unit_of(column, []).label


def _wrapped(row: Any) -> str:
    return "\n".join([*textwrap.wrap(row.series, PANEL_LETTERS), devices_of(row)])


def _ratio(row: Any) -> str:
    value = row.computation_to_communication
    return "" if is_missing(value) else formatting.ratio(value)


def _relative_steps(dataset: Dataset, row: Any) -> Iterator[pd.Series]:
    """Yield, per run, step times over the median of those that count, numbered from minus the warm-up."""
    windows = ["warmup", "training", "left_out"]
    taken = dataset.steps[(dataset.steps["identity"] == row.identity) & dataset.steps["window"].isin(windows)]
    for _, run in taken.groupby("repetition"):
        number = _from_first_measured(run, row.warmup_steps)
        counting = run["window"] == "training"
        slowest = run.groupby(number)["seconds"].max()
        yield slowest / run[counting].groupby(number[counting])["seconds"].max().median()


def _from_first_measured(run: pd.DataFrame, warmup_steps: Any) -> pd.Series:
    """Number steps from the first measured one; nobody says how many came before it in ingested logs."""
    if is_missing(warmup_steps):
        return run["step"] - run.loc[run["window"] == "training", "step"].min()
    return run["step"] - (run["window"] == "warmup") * warmup_steps


def _relative_axes(axes: Axes) -> None:
    quantity_axes(axes)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    wide = high > _WIDE * low
    axes.yaxis.set_major_locator(FixedLocator([0.25, 0.5, 1, 2, 4, 8, 16]) if wide else MaxNLocator(5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    # Ingested logs count to hundreds of thousands, and the panels are narrow.
    axes.xaxis.set_major_locator(MaxNLocator(STEP_TICKS, integer=True))


def _relative_ranks(steps: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row per run and rank: ``place`` and ``share``, its mean over the slowest rank's."""
    places = {identity: place for place, identity in enumerate(rows["identity"])}
    computation = charts.rows_of(steps[steps["window"] == "computation"], places)
    means = computation.groupby(["place", "repetition", "rank"], as_index=False)["seconds"].mean()
    slowest = means.groupby(["place", "repetition"])["seconds"].transform("max")
    return means.assign(share=means["seconds"] / slowest)
