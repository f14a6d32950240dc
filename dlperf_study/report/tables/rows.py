"""How tables are made of configurations, of groups and of runs: one row each, under the columns that are asked for."""

from collections.abc import Sequence

import pandas as pd

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.series import Series, all_groups, all_series, short_labels, split_factors
from dlperf_study.report.tables.answers import NOTHING_DECLARED
from dlperf_study.report.tables.cells import (
    INTERVALS,
    ColumnOfCells,
    factor_column,
    laid_out,
    measured_column,
    run_column,
)
from dlperf_study.report.tables.table import Cell, Heading, Table


def of_configurations(
    dataset: Dataset,
    name: str,
    title: str,
    shown: Sequence[str],
    remarks: tuple[str, ...],
    chosen: pd.DataFrame | None = None,
) -> Table:
    """Return a row for every configuration, or for those of the rows ``chosen``."""
    identities = (dataset.configurations if chosen is None else chosen)["identity"]
    columns = [*map(factor_column, _keys(dataset)), *(measured_column(dataset, column) for column in shown)]
    series, labels = labelled_series(dataset)
    parts = [
        (label, one.rows[one.rows["identity"].isin(identities)]) for one, label in zip(series, labels, strict=True)
    ]
    rows = [(label, row) for label, part in parts for row in part.itertuples(index=False)]
    headings, cells = laid_out(columns, (row for _, row in rows))
    groups = tuple(label for label, _ in rows)
    return Table(name, title, _caption(dataset, shown), headings, cells, remarks, groups=groups)


def _caption(dataset: Dataset, shown: Sequence[str]) -> str:
    """Return what is owed to the columns shown; only those with intervals get a sentence on them."""
    with_intervals = INTERVALS.keys() & set(shown)
    ratios = bool(with_intervals - {"throughput"})
    summary = context.repetition(dataset, ratios) if with_intervals else context.MEDIANS
    return f"{context.conditions(dataset)} {summary} {context.merging(dataset)}"


def labelled_series(dataset: Dataset) -> tuple[list[Series], list[str]]:
    """Return every line of the study, and what each is called beside the others."""
    series = all_series(dataset)
    return series, short_labels(series)


def of_groups(
    dataset: Dataset,
    name: str,
    title: str,
    named: Sequence[ColumnOfCells],
    shown: Sequence[str],
    remarks: tuple[str, ...],
) -> Table:
    """Return a row for every configuration that is compared with one, and for what it is compared with."""
    columns = [*named, *(measured_column(dataset, column) for column in shown)]
    rows = [(group.label, row) for group in all_groups(dataset) for row in group.rows.itertuples(index=False)]
    headings, cells = laid_out(columns, (row for _, row in rows))
    groups = tuple(label for label, _ in rows)
    return Table(name, title, _caption(dataset, shown), headings, cells, remarks, NOTHING_DECLARED, groups)


def words(heading: str, name: str) -> ColumnOfCells:
    """Return a column of what a group calls its rows."""
    return ColumnOfCells(Heading(heading), lambda row: Cell(getattr(row, name)))


def of_runs(
    dataset: Dataset,
    name: str,
    title: str,
    shown: Sequence[str],
    runs: pd.DataFrame,
    remarks: tuple[str, ...] = (),
    empty: str = "No run was found.",
) -> Table:
    """Return a row for each of the rows ``runs``, grouped as the configurations are."""
    columns = [run_column(runs, column) for column in (*_keys(dataset), "repetition", *shown)]
    series, labels = labelled_series(dataset)
    parts = [(label, _runs_of(one, runs)) for one, label in zip(series, labels, strict=True)]
    headings, cells = laid_out(columns, (row for _, part in parts for row in part.itertuples()))
    groups = tuple(label for label, part in parts for _ in range(len(part)))
    return Table(name, title, context.conditions(dataset), headings, cells, remarks, empty, groups)


def _runs_of(series: Series, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of a series, by number of devices and repetition."""
    ours = runs[runs["identity"].isin(series.rows["identity"])]
    return ours.sort_values(["world_size", "nodes", "servers", "repetition"], kind="stable")


def _keys(dataset: Dataset) -> list[str]:
    """Return the columns that name a row within its series: the devices, and whatever else changes along it."""
    split = split_factors(dataset)
    along = [name for name in ("nodes", "servers", "batch_per_device") if name not in split]
    return ["world_size", *(name for name in along if dataset.configurations[name].nunique() > 1)]
