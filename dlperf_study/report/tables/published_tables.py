"""Tables of published results: next to ours where they answer the same question, and as their authors printed them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from dlperf_study.analysis.published_points import Published, exchange_points
from dlperf_study.analysis.same_question import Match, SameQuestion
from dlperf_study.analysis.scaling import differences_from_baseline
from dlperf_study.columns import COLUMNS, PRODUCTS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.context import NO_SOURCES
from dlperf_study.report.formatting import (
    bounded_value,
    display_name,
    is_missing,
    listed,
    listed_columns,
    with_interval,
)
from dlperf_study.report.series import configuration_labels, published_labels
from dlperf_study.report.tables.audit_tables import AuditLinks
from dlperf_study.report.tables.cells import TableColumn, defined, laid_out, measured_column
from dlperf_study.report.tables.question_differences import common_differences, differs_in, why_no_match, why_unmatched
from dlperf_study.report.tables.table import Cell, Heading, Link, Table
from dlperf_study.wording import in_sentence

#: Why a published number has no interval, by its estimator.
WITHOUT_RUNS = {
    "median": "no interval: only the median of its runs is printed",
    "one value": "no interval: one value printed",
    "not stated": "no interval: one value printed, and how it was obtained is not stated",
}
#: What a source may state of how it measured.
_CONDITIONS = ("program", "mode", "device_name", "hardware", "software", "link")
#: The columns of ours that also say what differs although the question is the same.
_WITH_DIFFERENCES = ("throughput", "computation_to_communication")
_NO_BASELINE = "its source prints no single device of this line"
_COMPARED = "Different programs on different machines: compare how they scale, not how fast they are."
_APART = (
    "Published and measured numbers come from different programs on different machines, often years apart: what may be "
    "compared is how they scale, not how fast they are, and neither is divided by the other here."
)
_HOW = (
    "Published speedups are computed from the printed throughputs, against the baseline that the source names or else "
    "the single device of the same line; what the source itself printed is next to them. Their intervals are "
    "95 % t intervals over the printed runs. A letter at a speedup leads to what the audit says of the numbers of its "
    "row."
)


def sources(dataset: Dataset) -> Table:
    """Return what is known of each source, one below the other: however many there are, they fit a page."""
    published = Published.read(dataset.plan.published)
    rows, groups = [], []
    for name, source in published.sources.items():
        for label, fact in _facts(published, name).items():
            rows.append((Cell(label), Cell(fact)))
            groups.append(source.title)
    name, caption = "published-sources", "Who published what, where, and how it was measured."
    headings = (Heading(""), Heading(""))
    return Table(name, "Published sources", caption, headings, tuple(rows), empty=NO_SOURCES, groups=tuple(groups))


def _facts(published: Published, name: str) -> dict[str, str]:
    """Return what a source states and, as the last fact, what it does not."""
    source = published.sources[name]
    conditions = {
        COLUMNS[column].label: published_levels(published, name, column) for column in (*_CONDITIONS, "estimator")
    }
    facts = {
        "Authors": source.authors,
        "Year": str(source.year or ""),
        "Page": source.url.removeprefix("https://"),
        "Licence": source.licence,
        "Retrieved": source.retrieved,
        **conditions,
        COLUMNS["inferred"].label: _inferred(published, name),
        "To know": source.differs,
    }
    required = ("Year", *(COLUMNS[column].label for column in _CONDITIONS))
    missing = [in_sentence(label) for label in required if not facts[label]]
    if missing:
        facts["Not stated"] = listed(missing)
    return {label: fact for label, fact in facts.items() if fact}


def _inferred(published: Published, name: str) -> str:
    """Return the columns whose values a source does not state, without those that are products of others."""
    groups = []
    for value in published_levels(published, name, "inferred").split(" / "):
        columns = ", ".join(column for column in value.split(", ") if column not in PRODUCTS)
        if columns and columns not in groups:
            groups.append(columns)
    return " / ".join(groups)


def published_levels(published: Published, name: str, column: str) -> str:
    """Return what a source states of its results in one column, divided by slashes; empty if nothing."""
    results = published.cells[(published.cells["source"] == name) & (published.cells["role"] == "result")]
    return " / ".join(str(level) for level in dict.fromkeys(results[column].dropna()))


def hardware(published: Published) -> str:
    """Return the sentence on what each source ran on; empty without a source."""
    machines = []
    for name, source in published.sources.items():
        machines.append(f"{source.title}: {published_levels(published, name, 'hardware') or 'not stated'}")
    return f"Published on {'; '.join(machines)}." if machines else ""


def differences(published: Published) -> Iterator[str]:
    """Yield what a reader must know of a source before comparing."""
    for source in published.sources.values():
        if source.differs:
            yield f"{source.title}: {source.differs}"


def next_to_ours(dataset: Dataset) -> Table:
    """Return every published throughput and its speedup, next to our configuration that answers the same question."""
    published = Published.read(dataset.plan.published)
    speedup = _with_links(_published_speedup(), AuditLinks.of(dataset))
    points = _matched(dataset, published.points)
    is_any_measured = points["identity"].isin(context.measured(dataset)["identity"]).any()
    # Where nothing is measured, one column says why.
    names = ("throughput", "mean_of_rates", "speedup") if is_any_measured else ("throughput",)
    ours = [_our_column(dataset, name, points["match"]) for name in names]
    columns = [*_keys(points), _published_throughput(), _BASELINE, speedup, _AS_PRINTED, *ours]
    notes = (_HOW, *((defined("mean_of_rates"),) if is_any_measured else ()), *differences(published))
    conditions = f"{context.conditions(dataset)} {context.repetition(dataset, ratios=True)}"
    caption = f"{_APART} {hardware(published)} Ours: {conditions}"
    return _table(published, points, "published", "Published, and ours", columns, caption, notes)


def communication(dataset: Dataset) -> Table:
    """Return what sources print of the time of exchange, next to our computation and exposed communication."""
    published = Published.read(dataset.plan.published)
    points = _matched(dataset, exchange_points(published.cells))
    printed = TableColumn(Heading("Communication, as published"), lambda row: Cell(row.communication))
    ours = _our_column(dataset, "computation_to_communication", points["match"])
    columns = [*_keys(points), _with_links(printed, AuditLinks.of(dataset)), ours]
    caption = f"{_APART} {hardware(published)} Ours: {context.conditions(dataset)} {context.repetition(dataset)}"
    notes = ("Of stage times, the share is the printed time of the all-reduce over that of the task.",)
    name, title = "published-communication", "Communication, published and ours"
    return _table(published, points, name, title, columns, caption, notes)


def without_number(dataset: Dataset) -> Table:
    """Return every configuration of ours that answers the question of no published number, and why."""
    published = Published.read(dataset.plan.published)
    results = published.cells[published.cells["role"] == "result"]
    reasons = why_unmatched(SameQuestion(results, dataset.configurations))
    labels = configuration_labels(dataset)
    rows = [(Cell(labels[identity]), Cell(reason)) for identity, reason in reasons.items()]
    headings = (Heading("Configuration of ours"), Heading("Why it is next to no published number"))
    caption = "They were planned, and measured where possible, but no source printed a number of the same question."
    empty = "Every configuration of this study is next to a published number." if published.sources else NO_SOURCES
    return Table("published-without-number", "Ours alone", caption, headings, tuple(rows), empty=empty)


def as_printed(dataset: Dataset) -> Iterator[Table]:
    """Yield every table of results as its authors printed it."""
    published = Published.read(dataset.plan.published)
    for source, table in published.results():
        headings, rows = printed_grid(published, source, table)
        name, title = f"printed-{source}-{table}".replace("_", "-"), published.title_of(source, table)
        yield Table(name, title, "As its authors printed it, cell by cell.", headings, rows)


def printed_grid(
    published: Published, source: str, table: str
) -> tuple[tuple[Heading, ...], tuple[tuple[Cell, ...], ...]]:
    """Return the headings and the rows of a table as printed; the first cell of a row is its label."""
    grid, corner = published.as_printed(source, table), published.sources[source].tables[table].rows
    headings = (Heading(corner), *(Heading(label, numeric=True) for label in grid.columns))
    rows = []
    for label, cells in zip(grid.index, grid.to_numpy(), strict=True):
        rows.append((Cell(label), *map(Cell, cells)))
    return headings, tuple(rows)


def _matched(dataset: Dataset, points: pd.DataFrame) -> pd.DataFrame:
    """Return a row per point and per configuration of ours that answers its question, with its match."""
    matches = SameQuestion(points, dataset.configurations).matches()
    matched = points.assign(match=matches, identity=[match.identities for match in matches]).explode("identity")
    return matched.assign(line=published_labels(matched))


def _table(
    published: Published,
    rows: pd.DataFrame,
    name: str,
    title: str,
    columns: list[TableColumn],
    caption: str,
    notes: tuple[str, ...],
) -> Table:
    """Return the matched points, grouped by published table."""
    groups = tuple(published.title_of(row.source, row.table) for row in rows.itertuples())
    headings, cells = laid_out(columns, rows.itertuples())
    empty = "Its sources print no such number." if published.sources else NO_SOURCES
    return Table(name, title, caption, headings, cells, notes, empty, groups, _COMPARED)


def _keys(points: pd.DataFrame) -> list[TableColumn]:
    """Return the columns that name a point: its line, unless all are of one, and its devices."""
    line = TableColumn(Heading("Line"), lambda row: Cell(row.line))
    devices = TableColumn(Heading(COLUMNS["world_size"].label, numeric=True), lambda row: Cell(str(row.world_size)))
    return [line, devices] if points["line"].nunique() > 1 else [devices]


def _published_throughput() -> TableColumn:
    heading = Heading("Published throughput", COLUMNS["throughput"].unit, numeric=True, interval=True)

    def cell(row: Any) -> Cell:
        if is_missing(row.throughput_low):
            return Cell(row.printed, footnote=WITHOUT_RUNS[row.estimator])
        bounds = (row.throughput_low, row.throughput_high)
        return Cell(row.printed, with_interval(row.value, *bounds)[1], _outside_note(row.value, *bounds))

    return TableColumn(heading, cell)


def _outside_note(value: float, low: float, high: float) -> str:
    """Return the note on a value that is outside its interval; empty for any other."""
    return "" if low <= value <= high else "outside its interval, which is that of the means of printed runs"


def _published_speedup() -> TableColumn:
    heading = Heading("Published speedup", COLUMNS["speedup"].unit, numeric=True, interval=True)

    def cell(row: Any) -> Cell:
        if is_missing(row.speedup):
            return Cell.missing(_NO_BASELINE)
        if row.is_baseline:
            return Cell("1")
        if is_missing(row.speedup_low):
            # The baseline of its line may have no runs where the point has them.
            no_runs = is_missing(row.throughput_low)
            footnote = WITHOUT_RUNS[row.estimator] if no_runs else "no interval: no runs of its baseline"
        else:
            footnote = _outside_note(row.speedup, row.speedup_low, row.speedup_high)
        return Cell(*with_interval(*bounded_value(row, "speedup")), footnote)

    return TableColumn(heading, cell)


def _baseline(row: Any) -> Cell:
    return Cell.missing(_NO_BASELINE) if is_missing(row.baseline_printed) else Cell(row.baseline_printed)


_BASELINE = TableColumn(Heading("Its baseline", COLUMNS["throughput"].unit, numeric=True), _baseline)


def _printed_ratio(row: Any) -> Cell:
    if is_missing(row.printed_ratio):
        return Cell.missing("its source prints no ratio here")
    footnote = "" if row.ratio == "speedup" else f"printed as {display_name(row.ratio)}"
    return Cell(row.printed_ratio, footnote=footnote)


_AS_PRINTED = TableColumn(Heading("As printed", numeric=True), _printed_ratio)


def _with_links(column: TableColumn, links: AuditLinks) -> TableColumn:
    """Return a column whose cells also lead to what the audit says of the published numbers of their row."""
    return TableColumn(column.heading, lambda row: _with_further(column.cell(row), links.about(row.keys)))


def _with_further(cell: Cell, links: tuple[Link, ...]) -> Cell:
    return replace(cell, further=(*cell.further, *links))


def _our_column(dataset: Dataset, name: str, matches: Iterable[Match]) -> TableColumn:
    """Return a column of our own values, each in the row of a published number; ``matches``: of all these."""
    rows, common = dataset.configuration_rows, common_differences(matches)
    column = measured_column(dataset, name)
    heading = replace(column.heading, label=f"Our {in_sentence(column.heading.label)}")
    unlike = differences_from_baseline(dataset.configurations, dataset.plan.scaling) if name == "speedup" else {}

    def cell(row: Any) -> Cell:
        if row.identity not in rows:
            return Cell.missing(*why_no_match(row.match, common))
        if parameters := unlike.get(row.identity):
            differing = listed_columns(parameters)
            return Cell.missing(f"our baseline differs from it in {differing}: not how one line scales")
        ours = column.cell(rows[row.identity])
        if name not in _WITH_DIFFERENCES:
            return ours
        footnotes = filter(None, (ours.footnote, differs_in(dataset, row, rows[row.identity], row.match)))
        return replace(ours, footnote="; ".join(footnotes))

    return TableColumn(heading, cell)
