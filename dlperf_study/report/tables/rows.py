"""Tables with a row per configuration, per member of a group or per run, under the columns that are requested."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.series import all_groups, all_series, short_labels, varying_factors
from dlperf_study.report.tables.answers import NOTHING_DECLARED
from dlperf_study.report.tables.cells import (
    COMPARED_WITH,
    INTERVALS,
    TableColumn,
    factor_column,
    laid_out,
    measured_column,
    run_column,
    with_evidence,
)
from dlperf_study.report.tables.table import Cell, Heading, Table


def table_of_configurations(
    dataset: Dataset,
    name: str,
    title: str,
    shown: Sequence[str],
    notes: tuple[str, ...],
    selected: pd.DataFrame | None = None,
) -> Table:
    """Return a row for every configuration, or for those of the rows ``selected``."""
    identities = set((dataset.configurations if selected is None else selected)["identity"])
    columns = [*map(factor_column, _keys(dataset)), *map(partial(measured_column, dataset), shown)]
    rows, groups = [], []
    for label, configurations in labelled_series(dataset):
        for identity in filter(identities.__contains__, configurations["identity"]):
            rows.append(dataset.configuration_rows[identity])
            groups.append(label)
    headings, cells = laid_out(columns, rows)
    caption = _caption(dataset, shown)
    return Table(name, title, caption, headings, cells, notes, groups=tuple(groups), page_caption="")


def table_of_groups(
    dataset: Dataset,
    name: str,
    title: str,
    keys: Sequence[TableColumn],
    shown: Sequence[str],
    notes: tuple[str, ...],
) -> Table:
    """Return a row for every configuration that is compared with a reference, and for the reference itself."""
    columns = [*keys, *map(partial(measured_column, dataset), shown)]
    rows, groups = list[Any](), list[str]()
    for group in all_groups(dataset):
        rows += group.members
        groups += [group.label] * len(group.rows)
    headings, cells = laid_out(columns, rows)
    caption = _caption(dataset, shown)
    return Table(name, title, caption, headings, cells, notes, NOTHING_DECLARED, tuple(groups), page_caption="")


def table_of_runs(
    dataset: Dataset,
    name: str,
    title: str,
    shown: Sequence[str],
    runs: pd.DataFrame,
    notes: tuple[str, ...] = (),
    empty: str = "No run was found.",
) -> Table:
    """Return a row for each of the rows ``runs``, by series, number of devices and repetition."""
    columns = list(map(partial(run_column, runs), (*_keys(dataset), "repetition")))
    for name in shown:
        column = run_column(runs, name)
        columns.append(with_evidence(dataset, column) if column.heading.numeric else column)
    rows, groups = list[Any](), list[str]()
    tuples = dict(zip(runs.index, runs.itertuples(), strict=True))
    for label, configurations in labelled_series(dataset):
        of_series = runs[runs["identity"].isin(configurations["identity"])]
        of_series = of_series.sort_values(["world_size", "nodes", "servers", "repetition"], kind="stable")
        rows += map(tuples.__getitem__, of_series.index)
        groups += [label] * len(of_series)
    headings, cells = laid_out(columns, rows)
    caption = context.conditions(dataset)
    return Table(name, title, caption, headings, cells, notes, empty, tuple(groups), page_caption="")


def labelled_series(dataset: Dataset) -> list[tuple[str, pd.DataFrame]]:
    """Return the label and the configurations of every series of the study."""
    series = all_series(dataset)
    return [(label, line.rows) for label, line in zip(short_labels(series), series, strict=True)]


def label_column(heading: str, name: str) -> TableColumn:
    """Return a column of the labels that a group gives its rows."""
    return TableColumn(Heading(heading), lambda row: Cell(getattr(row, name)))


def _caption(dataset: Dataset, shown: Sequence[str]) -> str:
    """Return the caption that the columns need; only those with intervals get a sentence on them."""
    with_intervals = INTERVALS.keys() & set(shown)
    has_ratios = bool(with_intervals & COMPARED_WITH.keys())
    summary = context.repetition(dataset, has_ratios) if with_intervals else context.MEANS
    return f"{context.conditions(dataset)} {summary} {context.merging(dataset)}"


def _keys(dataset: Dataset) -> list[str]:
    """Return the columns that name a row within its series: the devices, and what else changes along it."""
    factors, rows = varying_factors(dataset), dataset.configurations
    candidates = ("nodes", "servers", "batch_per_device")
    return ["world_size", *(name for name in candidates if name not in factors and rows[name].nunique() > 1)]
