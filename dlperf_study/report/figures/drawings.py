"""The drawings: from the series of one model to a matplotlib figure, or to None where there is nothing to draw."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.report.figures import charts, line_charts
from dlperf_study.report.figures.style import COMMUNICATION_ALONE, FAINT, PALETTE, SOFT, Width, colour, wrapped
from dlperf_study.report.formatting import fitting_unit
from dlperf_study.report.series import Group, Series, all_groups, devices_label, joined, short_labels

MOST_ROWS = 60
_LEAST_OF_MODEL = 3


def overview(dataset: Dataset, series: list[Series], width: Width) -> Drawing | None:
    """Draw each configuration's runs, mean and interval; of many, both extremes."""
    rows = overview_rows(dataset, series)
    if rows.empty:
        return None
    drawing, axes, _ = charts.category_panel(dataset, width, list(rows["label"]))
    charts.runs_and_means(dataset, axes, rows)
    return drawing


def communication(dataset: Dataset, series: list[Series], width: Width) -> Drawing | None:
    """Draw steps in parts, with the communication-only time as a line."""
    rows = communication_rows(dataset, series)
    has_parts = rows["communication_seconds"].notna().any() or (rows["input_seconds"] > 0).any()
    if rows.empty or not has_parts:
        return None
    unit = fitting_unit("broken_down_step_seconds", rows["broken_down_step_seconds"])
    drawing, axes, layout = charts.category_panel(dataset, width, list(rows["label"]))
    charts.step_bars(axes, rows, unit, layout.bar_height)
    name = "exposed_communication_seconds"
    step, exposed, alone = (
        rows[["broken_down_step_seconds", name, "communication_seconds"]].to_numpy(float).T / unit.size
    )
    bounds = rows[[f"{name}_low", f"{name}_high"]].to_numpy(float).T / unit.size
    # What is exposed may be below 0 by chance, but no step ends before it begins.
    interval_ends = np.maximum(step - exposed + bounds, 0.0)
    communication_start = step - np.maximum(exposed, 0.0)
    label = fitting_unit("communication_seconds", []).label
    style: dict[str, Any] = {"color": COMMUNICATION_ALONE, "linewidth": 1, "label": label}
    axes.hlines(rows["y"], communication_start, communication_start + alone, **style)
    interval: dict[str, Any] = {
        "color": SOFT,
        "linewidth": 3,
        "alpha": 0.6,
        "label": "95 % CI of exposed communication",
    }
    if not np.isnan(bounds).all():
        axes.hlines(rows["y"] + layout.bar_height / 3, *interval_ends, **interval)
    line_charts.legend_below(drawing, [axes], width)
    return drawing


def comparison(dataset: Dataset, series: list[Series], width: Width) -> Drawing | None:
    """Draw each group: throughputs with runs left, parts of steps right."""
    labels: list[str] = []
    headings, parts = [], []
    for group in most_different(dataset, model_groups(dataset, series)):
        headings.append(len(labels))
        first = len(labels) + 1
        parts.append(group.measured.assign(y=range(first, first + len(group.measured))))
        labels += [group.shared, *group.measured["label"]]
    if not parts:
        return None
    rows = pd.concat(parts)
    layout = charts.CategoryRows(labels, width, headings)
    height = charts.AXIS_INCHES + layout.inches
    drawing, (throughputs, times) = charts.panels(dataset, width, 1, 2, height, share_y=True)
    layout.draw(throughputs, times)
    charts.runs_and_means(dataset, throughputs, rows)
    unit = fitting_unit("broken_down_step_seconds", rows["broken_down_step_seconds"])
    charts.step_bars(times, rows, unit, layout.bar_height)
    line_charts.legend_below(drawing, [times], width)
    return drawing


def stragglers(dataset: Dataset, series: list[Series], width: Width) -> Drawing | None:
    """Draw each rank's mean computation step / the slowest rank's."""
    # Importing it takes a third of all that the notebook of a configuration imports, and that has no such dots.
    import seaborn

    rows, of_run = straggler_rows(dataset, series), ["configuration_id", "repetition"]
    steps = dataset.select_steps(list(rows["configuration_id"]))
    is_shown = steps["window"].isin(("computation_before", "computation_after"))
    ranks = steps[is_shown].groupby([*of_run, "rank"], as_index=False, observed=True)["seconds"].mean()
    if ranks.empty:
        return None
    slowest = ranks.groupby(of_run, observed=True)["seconds"].transform("max")
    ranks = ranks.assign(share=ranks["seconds"] / slowest)
    rows = rows[rows["configuration_id"].isin(ranks["configuration_id"].unique())]
    ranks = charts.at_same_height(ranks, rows.assign(y=range(len(rows))))
    drawing, axes, _ = charts.category_panel(dataset, width, list(rows["label"]))
    dots = {"size": 3, "color": PALETTE[0], "alpha": 0.55, "jitter": False}
    seaborn.stripplot(ranks, x="share", y="y", orient="h", native_scale=True, ax=axes, **dots)
    axes.set_ylabel("")
    axes.axvline(1, color=SOFT, linewidth=0.8)
    axes.set_xlim(min(0.9, float(ranks["share"].min()) - 0.02), 1.01)
    axes.set_xlabel("Rank's computation / slowest rank's")
    return drawing


def straggler_rows(dataset: Dataset, series: list[Series]) -> pd.DataFrame:
    """Return configurations of several ranks; of many, the least balanced."""
    rows = configuration_rows(dataset, series)
    rows = rows[(rows["world_size"] > 1) & rows["load_balance"].notna()]
    if len(rows) > (most := most_of_model(dataset, MOST_ROWS)):
        rows = rows[rows.index.isin(rows["load_balance"].nsmallest(most).index)]
    return rows


def most_of_model(dataset: Dataset, most: int) -> int:
    """Return how many configurations of a model a page shows."""
    models = len(dataset.configurations["model"].unique())
    return max(_LEAST_OF_MODEL, most // models)


def configuration_rows(dataset: Dataset, series: list[Series]) -> pd.DataFrame:
    """Return the measured configurations with ``y``, label and series position."""
    added: dict[str, list[Any]] = {"configuration_id": [], "position": [], "series": [], "label": []}
    for line, label in zip(series, short_labels(series), strict=True):
        for row in map(dataset.configuration_rows.__getitem__, line.measured_identities):
            values = (row.configuration_id, line.position, label, joined(label, devices_label(row)))
            for column, value in zip(added.values(), values, strict=True):
                column.append(value)
    # One selection: a table for each of thousands of series takes a minute.
    rows = (
        dataset.configurations.set_index("configuration_id", drop=False)
        .loc[added["configuration_id"]]
        .reset_index(drop=True)
    )
    return rows.assign(**added, y=range(len(rows)))


def overview_rows(dataset: Dataset, series: list[Series]) -> pd.DataFrame:
    """Return the rows of the overview."""
    rows = configuration_rows(dataset, series)
    return _extremes(dataset, rows, rows[dataset.throughput_column])


def communication_rows(dataset: Dataset, series: list[Series]) -> pd.DataFrame:
    """Return the rows of the figure of steps in parts."""
    rows = configuration_rows(dataset, series)
    rows = rows[rows["exposed_communication_seconds"].notna()]
    return _extremes(dataset, rows, rows["exposed_communication_seconds"] / rows["broken_down_step_seconds"])


def most_rows(dataset: Dataset) -> int:
    """Return the even number of configurations shown of a model."""
    return most_of_model(dataset, MOST_ROWS) // 2 * 2


def _extremes(dataset: Dataset, rows: pd.DataFrame, values: pd.Series) -> pd.DataFrame:
    """Return rows with the largest and smallest values, or all."""
    most = most_rows(dataset)
    if len(rows) > most:
        ends = values.sort_values(kind="stable").index
        rows = rows[rows.index.isin([*ends[: most // 2], *ends[-(most // 2) :]])]
    return rows.assign(y=range(len(rows)))


def model_groups(dataset: Dataset, series: list[Series]) -> list[Group]:
    """Return the groups of the model of some series."""
    return all_groups(dataset, str(dataset.configuration_rows[series[0].configuration_ids[0]].model))


def has_reference(group: Group) -> bool:
    """Return whether the reference of a group was measured."""
    return not is_missing(getattr(group.reference, group.throughput_column))


def comparison_rows(dataset: Dataset, series: list[Series]) -> pd.DataFrame:
    """Return the rows of the figure of comparisons."""
    drawn = most_different(dataset, model_groups(dataset, series))
    return pd.concat([dataset.configurations[["configuration_id"]].iloc[:0], *(group.measured for group in drawn)])


def most_different(dataset: Dataset, groups: Iterable[Group]) -> list[Group]:
    """Return groups with a measured reference, at most MOST_ROWS configurations."""
    room = most_rows(dataset)
    measured = [_most_different_members(group, room) for group in groups if has_reference(group)]
    by_difference = sorted(range(len(measured)), key=lambda position: -_differences(measured[position]).max())
    kept = []
    for position in by_difference:
        if len(measured[position].measured) <= room:
            kept.append(position)
            room -= len(measured[position].measured)
    return list(map(measured.__getitem__, sorted(kept)))


def _most_different_members(group: Group, most: int) -> Group:
    """Return a group with its reference and most different members."""
    if len(group.measured) <= most:
        return group
    reference, *_ = group.rows.index
    differing = _differences(group).drop(reference, errors="ignore").nlargest(most - 1).index
    is_kept = group.rows.index.isin([reference, *differing])
    return replace(group, rows=group.rows[is_kept], members=tuple(compress(group.members, is_kept)))


def _differences(group: Group) -> pd.Series:
    """Return each member's absolute log ratio to the reference; 0 if unknown."""
    return group.measured["relative_throughput"].map(math.log).abs().fillna(0.0)


def scaling(dataset: Dataset, series: list[Series], width: Width) -> Drawing | None:
    """Draw throughput, speedup and efficiency against devices, one line per series."""
    lines = _drawn_lines(dataset, series)
    devices = sorted({size for line in lines for size in line.measured["world_size"]})
    if len(devices) < 2:
        return None
    names = dict(zip((line.label for line in lines), short_labels(lines), strict=True))
    details = {line.label: line_charts.baseline_label(line) for line in lines}
    columns = (dataset.throughput_column, "speedup", "efficiency")
    blocks = []
    for part in line_charts.parted(lines):
        blocks.append(line_charts.LineBlock(part, columns, names, details, width))
    drawing = charts.labelled_page(dataset.plan.quick, width, line_charts.blocks_inches(blocks))
    rows = line_charts.panels_of_blocks(drawing, blocks)
    for block, panels in zip(blocks, rows, strict=True):
        block.draw(panels, _draw_line)
        _draw_ideal(panels, block.lines, devices)
    # Panels of one column share their limits, so all lines come first.
    for block, panels in zip(blocks, rows, strict=True):
        for column, panel in zip(columns, panels, strict=True):
            line_charts.device_axes(panel, devices, logarithmic_y=column != "efficiency")
        block.name_lines(panels)
    line_charts.legend_below(drawing, drawing.axes, width, named=names)
    return drawing


MOST_LINES = 36


def most_lines(dataset: Dataset) -> int:
    """Return the even number of lines drawn of a model."""
    return most_of_model(dataset, MOST_LINES) // 2 * 2


def scaling_rows(dataset: Dataset, series: list[Series]) -> pd.DataFrame:
    """Return the rows of the configurations in the scaling figure."""
    return configuration_rows(dataset, _drawn_lines(dataset, series))


def _drawn_lines(dataset: Dataset, series: list[Series]) -> list[Series]:
    """Return the measured lines; of many, those with extreme last efficiencies."""
    lines = list(filter(attrgetter("measured_identities"), series))
    half = most_lines(dataset) // 2
    if len(lines) <= 2 * half:
        return lines
    efficiencies = dataset.configurations.set_index("configuration_id")["efficiency"].astype(float)
    values = pd.Series([efficiencies[line.measured_identities].dropna().tail(1).max() for line in lines])
    # What has none is neither large nor small.
    ordered = values.fillna(values.median()).argsort(kind="stable").to_numpy()
    return list(map(lines.__getitem__, sorted((*ordered[:half], *ordered[-half:]))))


def _draw_line(panel: Axes, line: Series, column: str, shift_points: float) -> None:
    line_charts.interval_line(panel, line, column, shift_points=shift_points)
    if line.measured["communication_seconds"].notna().any():
        line_charts.bound_line(panel, line.measured, column, colour(line.position))


def _draw_ideal(axes: Sequence[Axes], lines: Sequence[Series], devices: Sequence[int]) -> None:
    throughputs_panel, speedup, efficiency = axes
    all_baseline_devices = set()
    for line in lines:
        rows = line.measured.dropna(subset=["speedup"])
        # The number of devices that efficiency was computed with.
        all_devices = (rows["efficiency"] * rows["world_size"] / rows["speedup"]).round().astype(int)
        for (throughput, baseline_devices), points in rows.groupby([f"baseline_{line.throughput_column}", all_devices]):
            sizes = np.union1d(points["world_size"], baseline_devices)
            line_charts.ideal_line(
                throughputs_panel, sizes, throughput * sizes / baseline_devices, colour(line.position)
            )
        all_baseline_devices.update(all_devices)
    for baseline_devices in sorted(all_baseline_devices):
        line_charts.ideal_line(speedup, devices, np.array(devices) / baseline_devices)
    line_charts.ideal_line(efficiency, devices, [1.0] * len(devices))


_COLUMNS, _LETTERS = {"page": 3, "column": 2}, {"page": 36, "column": 24}
_LINE_INCHES, _PANEL_INCHES = 0.125, 1.05
STEP_WINDOWS = ("warmup", "training", "left_out")
MOST_PANELS, STEP_PIECES = 24, 60
_PIECES = {"page": STEP_PIECES, "column": STEP_PIECES // 2}
STEP_TICKS = 4
#: From this ratio of the longest to the shortest step on, the axis is marked at powers of two.
_WIDE = 4


def steps(dataset: Dataset, series: list[Series], width: Width) -> Drawing | None:
    """Draw every step of each run relative to its median."""
    rows = steps_rows(dataset, series)
    if rows.empty:
        return None
    titles = []
    for row in rows.itertuples():
        titles.append("\n".join(filter(None, (wrapped(row.series, _LETTERS[width.name]), devices_label(row)))))
    columns = _COLUMNS[width.name]
    panel_rows = math.ceil(len(rows) / columns)
    height = 0.4 + panel_rows * (_PANEL_INCHES + _LINE_INCHES * max(title.count("\n") + 1 for title in titles))
    drawing, axes = charts.panels(dataset, width, panel_rows, columns, height, share_y=True)
    runs = _relative_runs(dataset, tuple(rows["configuration_id"]))
    for panel, title, of_configuration in zip(axes, titles, runs, strict=False):
        panel.set_title(title, fontweight="normal")
        _draw_steps(panel, of_configuration, _PIECES[width.name])
    for panel in axes[: len(rows)]:
        _relative_axes(panel)
    for panel in axes[len(rows) :]:
        panel.set_visible(False)
    drawing.supxlabel("Step (0 = first measured)", fontsize=7)
    drawing.supylabel("Step time / median", fontsize=7)
    return drawing


def steps_rows(dataset: Dataset, series: list[Series]) -> pd.DataFrame:
    """Return the rows of the panels; of many, the most varying."""
    rows = configuration_rows(dataset, series).dropna(subset="step_seconds")
    most = most_of_model(dataset, MOST_PANELS)
    if len(rows) <= most:
        return rows
    variations = dataset.completed_runs.groupby("configuration_id")["step_variation"].max()
    most_varying = rows["configuration_id"].map(variations).fillna(0.0).nlargest(most)
    return rows[rows.index.isin(most_varying.index)]


def _draw_steps(panel: Axes, runs: list[pd.Series], pieces: int) -> None:
    first_step = min((run.index.min() for run in runs), default=0)
    if first_step < 0:
        panel.axvspan(first_step - 0.5, -0.5, color=FAINT, linewidth=0)
    for position, run in enumerate(_thinned(run, pieces) for run in runs):
        panel.plot(run.index, run.to_numpy(), linewidth=0.8, color=colour(position))


def _thinned(run: pd.Series, count: int) -> pd.Series:
    """Return the shortest and the longest step of each piece."""
    if len(run) <= 2 * count:
        return run
    pieces = pd.Series(run.to_numpy()).groupby(np.arange(len(run)) * count // len(run))
    return run.iloc[np.union1d(pieces.idxmin(), pieces.idxmax())]


# Both widths show the same runs.
@kept_with_dataset
def _relative_runs(dataset: Dataset, configuration_ids: tuple[str, ...]) -> list[list[pd.Series]]:
    all_steps = dataset.select_steps(configuration_ids)
    is_shown = all_steps["window"].isin(STEP_WINDOWS)
    steps_by_identity = dict(list(all_steps[is_shown].groupby("configuration_id", observed=True)))
    warmups = dataset.configurations.set_index("configuration_id")["warmup_steps"]
    return [list(_relative_steps(steps_by_identity[name], warmups[name])) for name in configuration_ids]


def _relative_steps(steps: pd.DataFrame, warmup_steps: Any) -> Iterator[pd.Series]:
    """Yield, per run, step times over the median measured step."""
    for _, run in steps.groupby("repetition"):
        counts = run["window"] == "training"
        if is_missing(warmup_steps):
            # Ingested logs do not say how many steps came before the first one that counts.
            index = run["step"] - run.loc[counts, "step"].min()
        else:
            is_warmup = run["window"] == "warmup"
            index = run["step"] - is_warmup * is_warmup.groupby(run["rank"]).sum().max()
        slowest = run.groupby(index)["seconds"].max()
        yield slowest / run[counts].groupby(index[counts])["seconds"].max().median()


def _relative_axes(axes: Axes) -> None:
    axes.grid(True)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    ticks = [0.25, 0.5, 1, 2, 4, 8, 16] if high > _WIDE * low else _ticks_with_one(low, high)
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    # Ingested logs count to hundreds of thousands, and the panels are narrow.
    axes.xaxis.set_major_locator(MaxNLocator(STEP_TICKS, integer=True))


def _ticks_with_one(low: float, high: float) -> list[float]:
    """Return round ticks between two limits, including 1."""
    ticks = MaxNLocator(5).tick_values(low, high)
    distance = ticks[1] - ticks[0]
    return sorted([1.0, *(float(tick) for tick in ticks if abs(tick - 1) > distance / 2)])
