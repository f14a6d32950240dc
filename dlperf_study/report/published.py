"""Tables of published results: beside ours where they answer the same question, and as their authors printed them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.analysis.published import Published, exchange_points, same_question
from dlperf_study.columns import COLUMNS
from dlperf_study.report import context, numbers
from dlperf_study.report.audit_links import AuditLinks
from dlperf_study.report.cells import ColumnOfCells, defined, laid_out, measured_column
from dlperf_study.report.names import human
from dlperf_study.report.numbers import is_missing
from dlperf_study.report.published_lines import NOTHING_NAMED, line_labels
from dlperf_study.report.source_facts import differences, hardware
from dlperf_study.report.table import Cell, Heading, Table

#: Why a published number has no interval, by its estimator.
WITHOUT_RUNS = {
    "median": "no interval: only the median of its runs is printed",
    "one value": "no interval: one value printed",
    "not stated": "no interval: one value printed, and how it was obtained is not stated",
}
_NOT_ASKED = "no configuration of this study asks the same"
_NO_BASELINE = "its source prints no single device of this line"
_APART = (
    "Published and measured numbers come from other programs on other machines, often years apart: what may be "
    "compared is how they scale, not how fast they are, and neither is divided by the other here."
)
_HOW = (
    "Published speedups are computed from the printed throughputs, against the baseline that the source names or else "
    "the single device of the same line; what the source itself printed stands beside. Their intervals come from the "
    "printed runs, resampled as ours are. A letter at a speedup leads to what the audit says of the numbers of its row."
)


def beside_ours(dataset: Dataset) -> Table:
    """Return every published throughput and its speedup, beside our configuration that asks the same question."""
    published = Published.read(dataset.plan.published)
    ours = _ours(dataset, "throughput", "mean_of_rates", "speedup")
    speedup = _linked(_published_speedup(), AuditLinks.of(dataset))
    columns = [*_NAMED, _published_throughput(), speedup, _AS_PRINTED, *ours]
    remarks = (_HOW, defined("mean_of_rates"), *differences(published))
    caption = (
        f"{_APART} {hardware(published)} Ours: {context.conditions(dataset)} {context.repetition(dataset, ratios=True)}"
    )
    return _table(dataset, published, published.points, "published", "Published, and ours", columns, caption, remarks)


def communication(dataset: Dataset) -> Table:
    """Return what sources print of the time of exchange, beside our computation and exposed communication."""
    published = Published.read(dataset.plan.published)
    points = exchange_points(published.cells)
    printed = ColumnOfCells(Heading("Communication, as published"), lambda row: Cell(row.communication))
    columns = [*_NAMED, _linked(printed, AuditLinks.of(dataset)), *_ours(dataset, "computation_to_communication")]
    caption = f"{_APART} {hardware(published)} Ours: {context.conditions(dataset)}"
    remarks = ("Of stage times, the share is the printed time of the all-reduce over that of the task.",)
    name, title = "published-communication", "Communication, published and ours"
    return _table(dataset, published, points, name, title, columns, caption, remarks)


def as_printed(dataset: Dataset) -> Iterator[Table]:
    """Yield every table of results as its authors printed it."""
    published = Published.read(dataset.plan.published)
    for source, name in published.results():
        grid, head = published.as_printed(source, name), published.sources[source].tables[name].rows
        headings = (Heading(head), *(Heading(label, numeric=True) for label in grid.columns))
        rows = tuple((Cell(label), *map(Cell, texts)) for label, texts in zip(grid.index, grid.to_numpy(), strict=True))
        key, title = f"printed-{source}-{name}".replace("_", "-"), published.title_of(source, name)
        yield Table(key, title, "As its authors printed it, cell by cell.", headings, rows)


def _table(
    dataset: Dataset,
    published: Published,
    points: pd.DataFrame,
    name: str,
    title: str,
    columns: list[ColumnOfCells],
    caption: str,
    remarks: tuple[str, ...],
) -> Table:
    """Return a row per point and per configuration of ours that asks the same, grouped by published table."""
    matched = points.assign(identity=same_question(points, dataset.configurations)).explode("identity")
    labelled = matched.assign(line=line_labels(matched))
    groups = [published.title_of(row.source, row.table) for row in labelled.itertuples()]
    headings, cells = laid_out(columns, labelled.itertuples())
    empty = "Its sources print no such number." if published.sources else NOTHING_NAMED
    return Table(name, title, caption, headings, cells, remarks, empty, tuple(groups))


_NAMED = (
    ColumnOfCells(Heading("Line"), lambda row: Cell(row.line)),
    ColumnOfCells(Heading(COLUMNS["world_size"].label, numeric=True), lambda row: Cell(str(row.world_size))),
)


def _published_throughput() -> ColumnOfCells:
    heading = Heading("Published throughput", COLUMNS["throughput"].unit, numeric=True, interval=True)

    def cell(row: Any) -> Cell:
        if is_missing(row.throughput_low):
            return Cell(row.printed, note=WITHOUT_RUNS[row.estimator])
        return Cell(row.printed, numbers.with_interval(row.value, row.throughput_low, row.throughput_high)[1])

    return ColumnOfCells(heading, cell)


def _published_speedup() -> ColumnOfCells:
    heading = Heading("Published speedup", COLUMNS["speedup"].unit, numeric=True, interval=True)

    def cell(row: Any) -> Cell:
        if is_missing(row.speedup):
            return Cell.missing(_NO_BASELINE)
        if row.is_baseline:
            return Cell("1")
        if is_missing(row.speedup_low):
            return Cell(numbers.plain(row.speedup), note=WITHOUT_RUNS[row.estimator])
        return Cell(*numbers.with_interval(row.speedup, row.speedup_low, row.speedup_high))

    return ColumnOfCells(heading, cell)


def _linked(column: ColumnOfCells, links: AuditLinks) -> ColumnOfCells:
    """Return a column whose cells also say what the audit found in the published numbers of their row."""
    return ColumnOfCells(column.heading, lambda row: replace(column.cell(row), links=links.about(row.keys)))


def _printed_ratio(row: Any) -> Cell:
    if is_missing(row.printed_ratio):
        return Cell.missing("its source prints no ratio here")
    return Cell(row.printed_ratio, note="" if row.ratio == "speedup" else f"printed as {human(row.ratio)}")


_AS_PRINTED = ColumnOfCells(Heading("As printed", numeric=True), _printed_ratio)


def _ours(dataset: Dataset, *names: str) -> list[ColumnOfCells]:
    """Return columns of our own values, each in the row of a published number."""
    rows = {row.identity: row for row in dataset.configurations.itertuples()}
    return [_of_ours(measured_column(dataset, name), rows.get) for name in names]


def _of_ours(column: ColumnOfCells, find: Callable[[Any], Any]) -> ColumnOfCells:
    label = column.heading.label
    heading = replace(column.heading, label=f"Our {label[0].lower()}{label[1:]}")

    def cell(row: Any) -> Cell:
        ours = None if is_missing(row.identity) else find(row.identity)
        return Cell.missing(_NOT_ASKED) if ours is None else column.cell(ours)

    return ColumnOfCells(heading, cell)
