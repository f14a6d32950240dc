"""Published tables as printed, with ours below, and how much throughputs change in print and here."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from dlperf_study.audit.published.same_question import SameQuestion
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.findings.published import differences, read_published
from dlperf_study.metrics.columns import COLUMNS, TableName, column_named
from dlperf_study.metrics.published import STAGES
from dlperf_study.metrics.statistics import Estimate, log_ratio
from dlperf_study.report import context, formatting, say
from dlperf_study.report.tables.missing import explain_unmeasured
from dlperf_study.report.tables.published_sources import stage_cell
from dlperf_study.report.tables.published_tables import mismatch_reasons
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.report.tables.table_builders import measured_column

OURS = "ours"
_OURS_BELOW, _NOTHING_BELOW = "Below a row: ours of the same question.", "Nothing of ours is next to it."
_STAGES = {stage.metric: stage for stage in STAGES}
_FACTORS = (
    *("world_size", "servers", "batch_per_device", "precision", "loss_scaling", "compiler"),
    *("data_source", "classifier", "sample_ratio", "classes"),
)
_CHANGES_CAPTION = "How much a throughput changes from one published configuration to another, in print and here."
_NO_CHANGES = "No two published throughputs of one line were measured here too."
_NO_PRINTED_INTERVAL = "no interval: its source prints no runs of both"
_NO_OWN_INTERVAL = "no interval: it takes three rounds with a run of both, and runs that differ"
_NO_RATIO_INTERVAL = "no interval: it takes one of both ratios"


def as_printed(dataset: Dataset) -> Iterator[Table]:
    """Yield each published table, with measured results below its rows."""
    published = read_published(dataset)
    results = published.cells[published.cells["role"] == "result"]
    if len(results):
        results = results.assign(match=SameQuestion(results, dataset.configurations).matches())
    for source, table in published.results():
        of_table = results[(results["source"] == source) & (results["table"] == table)]
        yield _as_printed(dataset, source, table, of_table)


def _as_printed(dataset: Dataset, source: str, table: str, results: pd.DataFrame) -> Table:
    published, measured = read_published(dataset), _measured_rows(dataset)
    grid, origin = published.as_printed(source, table), published.sources[source]
    rows, of_ours = [], set[str]()
    for label, printed in zip(grid.index, grid.to_numpy(), strict=True):
        rows.append((Cell(label), *map(Cell, printed)))
        of_row = results[results["row"] == label]
        identities = set[str]().union(*(match.identities for match in of_row["match"])) & measured.keys()
        if identities:
            rows.append((Cell(OURS), *_our_cells(dataset, of_row, grid.columns)))
        of_ours |= identities
    year = ""
    if origin.year:
        year = f", {origin.year},"
    printed_by = f"As {origin.authors}{year} printed it, cell by cell."
    page_caption = f"{printed_by} {_OURS_BELOW if of_ours else _NOTHING_BELOW}"
    if of_ours:
        configurations = dataset.configurations
        ours = dataset.only(configurations[configurations["identity"].isin(of_ours)])
        caption = f"{page_caption} {context.conditions(ours)} {context.repetition(ours)}"
    else:
        caption = f"{page_caption} {' '.join(say.say(differences(list(results['match'])), say.TERMINAL))}"
    name, title = f"printed-{source}-{table}".replace("_", "-"), published.full_title(source, table)
    headings = (Heading(origin.tables[table].rows), *(Heading(label, numeric=True) for label in grid.columns))
    return Table(name, title, caption.strip(), headings, tuple(rows), page_caption=page_caption)


@kept_with_dataset
def _measured_rows(dataset: Dataset) -> Mapping[str, Any]:
    rows = dataset.configuration_rows
    return {identity: rows[identity] for identity in dataset.measured["identity"]}


def _our_cells(dataset: Dataset, of_row: pd.DataFrame, columns: Iterable[str]) -> Iterator[Cell]:
    for column in columns:
        cells = []
        for result in of_row[of_row["column"] == column].itertuples():
            cells.append(_our_cell(dataset, result))
        footnotes = dict.fromkeys(cell.footnote for cell in cells if cell.footnote)
        yield Cell(" / ".join(cell.printed for cell in cells), footnote="; ".join(footnotes))


def _our_cell(dataset: Dataset, result: Any) -> Cell:
    identities = result.match.identities
    if not identities:
        return Cell.missing(*mismatch_reasons(result.match))
    measured = _measured_rows(dataset)
    row = next((measured[identity] for identity in identities if identity in measured), None)
    if row is None:
        return Cell.missing(explain_unmeasured(dataset, dataset.configuration_rows[identities[0]]))
    if result.metric in _STAGES:
        steps = result.samples_per_task / row.batch_per_device
        return _append_unit(stage_cell(dataset, row, _STAGES[result.metric], steps), "s")
    if result.metric not in COLUMNS or TableName.CONFIGURATIONS not in COLUMNS[result.metric].tables:
        return Cell.missing("not measured under this name")
    column = measured_column(dataset, result.metric)
    # A time of ours may have another prefix than the printed one.
    return _append_unit(column.cell(row), column.heading.unit if COLUMNS[result.metric].unit == "s" else "")


def _append_unit(cell: Cell, unit: str) -> Cell:
    if unit and cell.text != formatting.MISSING:
        return replace(cell, text=f"{cell.text} {unit}")
    return cell


@dataclass(frozen=True)
class Change:
    """A throughput's change ``between`` two published configurations, as log ratios."""

    table: str
    program: str
    between: str
    published: Estimate
    ours: Estimate


@kept_with_dataset
def changes(dataset: Dataset) -> tuple[Change, ...]:
    """Return the changes between published throughputs that were measured here too."""
    published, measured = read_published(dataset), _measured_rows(dataset)
    points = published.points
    if points.empty:
        return ()
    ours = []
    for match in SameQuestion(points, dataset.configurations).matches():
        ours.append(next((identity for identity in match.identities if identity in measured), None))
    points, all_changes = points.assign(ours=ours), []
    for first, last in _pairs(points[points["ours"].notna()]):
        if between := _differing_factors(first, last):
            ratio = log_ratio(dataset.throughputs[last.ours], dataset.throughputs[first.ours])
            title = published.full_title(last.source, last.table)
            all_changes.append(Change(title, last.program, between, published_ratio(first, last), ratio))
    return tuple(all_changes)


def changes_table(dataset: Dataset) -> Table:
    """Return the changes of throughputs in print and here, and their quotients."""
    rows, groups = [], []
    for change in changes(dataset):
        ratios = (change.published, change.ours, change.ours.minus(change.published))
        reasons = (_NO_PRINTED_INTERVAL, _NO_OWN_INTERVAL, _NO_RATIO_INTERVAL)
        cells = []
        for ratio, reason in zip(ratios, reasons, strict=True):
            cells.append(Cell.of(ratio.bounded_factor, reason, decision=1))
        rows.append((Cell(change.program), Cell(change.between), *cells))
        groups.append(change.table)
    headings = [Heading("Program"), Heading("From, to")]
    for label in ("Published", "Ours", "Ours / published"):
        headings.append(Heading(label, "×", numeric=True, interval=True))
    caption = f"{_CHANGES_CAPTION}{context.quick_label(dataset)}"
    empty = _NO_CHANGES
    if not dataset.plan.published:
        empty = context.NO_SOURCES
    name, title = "published-changes", "Change in print and here"
    return Table(name, title, caption, tuple(headings), tuple(rows), empty=empty, groups=tuple(groups))


def _pairs(points: pd.DataFrame) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of published throughputs that were measured here too.

    Of each line of a table: the baseline and the most devices. Of the points of one program in a table on the most
    devices that several have: the first and the last.
    """
    by_cell = {point.cell: point for point in points.itertuples()}
    for _, of_program in points.groupby(["source", "table", "program"], sort=False, dropna=False):
        for _, line in of_program.groupby("series", sort=False):
            last = max(line.itertuples(), key=lambda point: point.world_size)
            first = by_cell.get(last.baseline)
            if first is not None and first.cell != last.cell:
                yield first, last
        sizes = of_program["world_size"]
        shared = sizes[sizes.duplicated(keep=False)]
        if len(shared):
            on_most = list(of_program[sizes == shared.max()].itertuples())
            yield on_most[0], on_most[-1]


def _differing_factors(first: Any, last: Any) -> str:
    """Return the factors in which two differ: ``devices from 1 to 8``."""
    differing = []
    for name in _FACTORS:
        levels = [getattr(point, name) for point in (first, last)]
        if not any(map(is_missing, levels)) and levels[0] != levels[1]:
            names = [formatting.level_with_unit(name, level) for level in levels]
            differing.append(f"{column_named(name).words} from {names[0]} to {names[1]}")
    return formatting.listed(differing)


def published_ratio(first: Any, last: Any) -> Estimate:
    """Return the logarithm of a published ratio, with any printed interval."""
    ratio = last.value / first.value
    if last.baseline != first.cell or is_missing(last.speedup_low):
        return Estimate(math.log(ratio))
    return Estimate.from_printed(ratio, last.speedup_low, last.speedup_high)
