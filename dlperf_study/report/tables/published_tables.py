"""Tables of published results: beside ours where they answer the same question, and as their authors printed them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from dlperf_study.analysis.published_points import Published, exchange_points, matching_configurations
from dlperf_study.columns import COLUMNS, PRODUCTS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context, formatting
from dlperf_study.report.formatting import human, is_missing, listed
from dlperf_study.report.published_series import NOTHING_NAMED, line_labels
from dlperf_study.report.tables.audit_tables import AuditLinks
from dlperf_study.report.tables.cells import ColumnOfCells, defined, laid_out, measured_column
from dlperf_study.report.tables.table import Cell, Heading, Table

# What is known of published sources: who published what, where, and how it was measured.


#: What a source may state of how it measured.
_STATED = ("mode", "device_name", "hardware", "software", "link")


def sources(dataset: Dataset) -> Table:
    """Return what is known of each source, one below the other: however many there are, they fit a page."""
    published = Published.read(dataset.plan.published)
    facts = [(source.title, fact) for name, source in published.sources.items() for fact in _facts(published, name)]
    rows = tuple((Cell(word), Cell(said)) for _, (word, said) in facts)
    groups = tuple(title for title, _ in facts)
    name, caption = "published-sources", "Who published what, where, and how it was measured."
    headings = (Heading(""), Heading(""))
    return Table(name, "Published sources", caption, headings, rows, empty=NOTHING_NAMED, groups=groups)


def hardware(published: Published) -> str:
    """Return the sentence on what each source ran on; empty without a source."""
    places = [
        f"{source.title}: {_levels(published, name, 'hardware') or 'not stated'}"
        for name, source in published.sources.items()
    ]
    return f"Published on {'; '.join(places)}." if places else ""


def differences(published: Published) -> Iterator[str]:
    """Yield what a reader must know of a source before comparing."""
    yield from (f"{source.title}: {source.differs}" for source in published.sources.values() if source.differs)


def _facts(published: Published, name: str) -> Iterator[tuple[str, str]]:
    """Yield what a source states, and at last what it does not."""
    source = published.sources[name]
    known = {COLUMNS[fact].label: _levels(published, name, fact) for fact in (*_STATED, "estimator")}
    facts = {
        "Authors": source.authors,
        "Year": str(source.year or ""),
        "Page": source.url.removeprefix("https://"),
        "Licence": source.licence,
        "Retrieved": source.retrieved,
        **known,
        COLUMNS["inferred"].label: _inferred(published, name),
        "To know": source.differs,
    }
    unsaid = ["Year"] * (not source.year) + [COLUMNS[fact].label for fact in _STATED if not known[COLUMNS[fact].label]]
    yield from ((word, said) for word, said in facts.items() if said)
    if unsaid:
        yield "Not stated", listed([word.lower() for word in unsaid])


def _inferred(published: Published, name: str) -> str:
    """Return the columns whose values a source does not state, but those that are products of others."""
    levels = (level.split(", ") for level in _levels(published, name, "inferred").split(" / "))
    kept = (", ".join(column for column in level if column not in PRODUCTS) for level in levels)
    return " / ".join(dict.fromkeys(filter(None, kept)))


def _levels(published: Published, name: str, column: str) -> str:
    ours = published.cells[(published.cells["source"] == name) & (published.cells["role"] == "result")]
    return " / ".join(str(value) for value in dict.fromkeys(ours[column].dropna()))


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
    matched = points.assign(identity=matching_configurations(points, dataset.configurations)).explode("identity")
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
        return Cell(row.printed, formatting.with_interval(row.value, row.throughput_low, row.throughput_high)[1])

    return ColumnOfCells(heading, cell)


def _published_speedup() -> ColumnOfCells:
    heading = Heading("Published speedup", COLUMNS["speedup"].unit, numeric=True, interval=True)

    def cell(row: Any) -> Cell:
        if is_missing(row.speedup):
            return Cell.missing(_NO_BASELINE)
        if row.is_baseline:
            return Cell("1")
        if is_missing(row.speedup_low):
            return Cell(formatting.plain(row.speedup), note=WITHOUT_RUNS[row.estimator])
        return Cell(*formatting.with_interval(row.speedup, row.speedup_low, row.speedup_high))

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
