"""The drawings: from the series of one model to a matplotlib figure, or to None where there is nothing to draw."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.category_rows import CategoryRows
from dlperf_study.report.figures.direct_labels import legend_below
from dlperf_study.report.figures.style import EXCHANGE, PALETTE, SOFT, Width
from dlperf_study.report.formatting import unit_of
from dlperf_study.report.series import Group, Series, devices_label, joined, short_labels

#: How many rows a page has, all models together.
MOST_ROWS = 60
#: Each model has at least so many, however many models there are.
_LEAST_OF_MODEL = 3


def overview(dataset: Dataset, series: list[Series], width: Width) -> Drawing | None:
    """Draw one row per measured configuration: its runs, their mean and its interval."""
    rows = configuration_rows(series)
    if rows.empty:
        return None
    drawing, axes, _ = charts.category_panel(dataset, width, list(rows["label"]))
    charts.runs_and_means(dataset, axes, rows)
    return drawing


def communication(dataset: Dataset, series: list[Series], width: Width) -> Drawing | None:
    """Draw each step as computation and exposed communication, with the pure communication as a thin line."""
    rows = configuration_rows(series)
    if rows["exchange_seconds"].isna().all() and not (rows["input_seconds"] > 0).any():
        return None
    unit = unit_of("step_seconds", rows["step_seconds"])
    drawing, axes, layout = charts.category_panel(dataset, width, list(rows["label"]))
    charts.step_bars(axes, rows, unit, layout.bar_height)
    step, exposed, exchange = (
        rows[["step_seconds", "exposed_seconds", "exchange_seconds"]].to_numpy(float).T / unit.size
    )
    bounds = rows[["exposed_seconds_low", "exposed_seconds_high"]].to_numpy(float).T / unit.size
    interval_ends = step - exposed + bounds
    exchange_start = step - np.maximum(exposed, 0.0)
    style: dict[str, Any] = {"color": EXCHANGE, "linewidth": 1, "label": unit_of("exchange_seconds", []).label}
    axes.hlines(rows["y"], exchange_start, exchange_start + exchange, **style)
    interval: dict[str, Any] = {"color": SOFT, "linewidth": 3, "alpha": 0.6, "label": "Interval of what is exposed"}
    if not np.isnan(bounds).all():
        axes.hlines(rows["y"] + layout.bar_height / 3, *interval_ends, **interval)
    legend_below(drawing, [axes], width)
    return drawing


def comparison(dataset: Dataset, groups: list[Group], width: Width) -> Drawing | None:
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
    layout = CategoryRows(labels, width, headings)
    height = charts.AXIS_INCHES + layout.inches
    drawing, (rates, times) = charts.panels(dataset, width, 1, 2, height, share_y=True)
    layout.draw(rates, times)
    charts.runs_and_means(dataset, rates, rows)
    charts.step_bars(times, rows, unit_of("step_seconds", rows["step_seconds"]), layout.bar_height)
    legend_below(drawing, [times], width)
    return drawing


def stragglers(dataset: Dataset, series: list[Series], width: Width) -> Drawing | None:
    """Draw the mean computation step of each rank relative to the slowest of its run."""
    # Importing it takes a third of all that the notebook of a configuration imports, and that has no such dots.
    import seaborn

    rows = configuration_rows(series)
    rows = rows[rows["world_size"] > 1]
    ranks = _rank_shares(dataset, rows)
    if ranks.empty:
        return None
    slowest_ranks = ranks.groupby("identity", observed=True)["share"].min().nsmallest(most_of_model(dataset, MOST_ROWS))
    if len(rows) > len(slowest_ranks):
        rows = rows[rows["identity"].isin(slowest_ranks.index)]
    ranks = charts.at_same_height(ranks, rows.assign(y=range(len(rows))))
    drawing, axes, _ = charts.category_panel(dataset, width, list(rows["label"]))
    dots = {"size": 3, "color": PALETTE[0], "alpha": 0.55, "jitter": False}
    seaborn.stripplot(ranks, x="share", y="y", orient="h", native_scale=True, ax=axes, **dots)
    axes.set_ylabel("")
    axes.axvline(1, color=SOFT, linewidth=0.8)
    axes.set_xlim(min(0.9, float(ranks["share"].min()) - 0.02), 1.01)
    axes.set_xlabel("Rank's computation / slowest rank's")
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


def most_of_model(dataset: Dataset, most: int) -> int:
    """Return how many of the configurations of a model are drawn one by one, so that a page has ``most`` of them."""
    models = len(dataset.configurations["model"].unique())
    return max(_LEAST_OF_MODEL, most // models)


def configuration_rows(series: list[Series]) -> pd.DataFrame:
    """Return the measured configurations with a ``y`` each, their labels, and the position of their series."""
    parts = []
    for line, label in zip(series, short_labels(series), strict=True):
        # A tuple of all columns would take most of the time of a large figure.
        sizes = line.measured[["world_size", "nodes", "servers"]]
        labels = [joined(label, devices_label(row)) for row in sizes.itertuples()]
        parts.append(line.measured.assign(position=line.position, series=label, label=labels))
    rows = pd.concat(parts)
    return rows.assign(y=range(len(rows)))
