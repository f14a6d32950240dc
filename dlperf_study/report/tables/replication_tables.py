"""Tables of the page on the original: what it asked, what it printed with ours below, what differs, and ours apart."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from dlperf_study.analysis.same_question import images_of_rows
from dlperf_study.analysis.stages import STAGES
from dlperf_study.columns import COLUMNS, TableName
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import MISSING, display_name, listed
from dlperf_study.report.replications import NO_QUESTION, Replication, replications_of
from dlperf_study.report.tables.cells import measured_column
from dlperf_study.report.tables.missing import why_not_measured
from dlperf_study.report.tables.published_tables import printed_grid, published_levels
from dlperf_study.report.tables.question_differences import why_no_match, why_unanswered
from dlperf_study.report.tables.rows import table_of_configurations
from dlperf_study.report.tables.stage_tables import stage_cell
from dlperf_study.report.tables.table import Cell, Heading, Table

OURS = "ours"
#: What is compared of the conditions: a fact of the source, and the column of our runs that has the same.
_CONDITIONS = {
    **{"hardware": "cpu_model", "device": "device", "device_name": "device_name", "link": "link"},
    **{"framework": "framework", "data_source": "data_source"},
}
_OURS_BELOW, _NOTHING_BELOW = "Below a row: ours of the same question.", "Nothing of ours is next to it."
#: The stages of a task by the metric of their times.
_STAGES = {stage.metric: stage for stage in STAGES}
#: Those of which both have the same levels.
_LEVELS = ("device", "data_source")
_APART = "These were measured here, but no number of the original is of the same question: they are not its answer."


def questions(dataset: Dataset) -> Table:
    """Return what each original asked, who printed the answer, when and where."""
    rows, groups = [], []
    for replication in replications_of(dataset):
        source = replication.published.sources[replication.name]
        facts = {
            "Question": source.question,
            "Authors": source.authors,
            "Year": str(source.year or "not stated"),
            "Page": source.url.removeprefix("https://"),
            "Copied": source.retrieved,
            "To know": source.differs,
        }
        for label, fact in facts.items():
            rows.append((Cell(label), Cell(fact)))
            groups.append(source.title)
    name, title, caption = "replication-question", "The original", "What it asked, who printed the answer, and where."
    headings = (Heading(""), Heading(""))
    return Table(name, title, caption, headings, tuple(rows), empty=NO_QUESTION, groups=tuple(groups))


def side_by_side(dataset: Dataset) -> Iterator[Table]:
    """Yield each table of results as printed; below each row of which anything was measured here, ours."""
    for replication in replications_of(dataset):
        for source, table in replication.published.results():
            yield _side_by_side(replication, source, table)


def _side_by_side(replication: Replication, source: str, table: str) -> Table:
    headings, printed_rows = printed_grid(replication.published, source, table)
    columns = [heading.label for heading in headings[1:]]
    results = replication.results[replication.results["table"] == table]
    rows = []
    for printed in printed_rows:
        rows.append(printed)
        of_row = results[results["row"] == printed[0].text]
        if any(replication.measured(match) is not None for match in of_row["match"]):
            rows.append((Cell(OURS), *_our_cells(replication, of_row, columns)))
    origin = replication.published.sources[source]
    year = f", {origin.year}," if origin.year else ""
    as_printed, has_ours = f"As {origin.authors}{year} printed it, cell by cell.", len(rows) > len(printed_rows)
    caption = f"{as_printed} {_on_ours(replication, results) if has_ours else _without_ours(results)}"
    page_caption = f"{as_printed} {_OURS_BELOW if has_ours else _NOTHING_BELOW}"
    name, title = f"replication-{source}-{table}".replace("_", "-"), replication.published.title_of(source, table)
    return Table(name, title, caption, headings, tuple(rows), page_caption=page_caption)


def _on_ours(replication: Replication, results: pd.DataFrame) -> str:
    """Return what the rows of ours are, and how they were measured."""
    identities = {row.identity for row in map(replication.measured, results["match"]) if row is not None}
    configurations = replication.dataset.configurations
    ours = context.only(replication.dataset, configurations[configurations["identity"].isin(identities)])
    return f"{_OURS_BELOW} {context.conditions(ours)} {context.repetition(ours)}"


def _without_ours(results: pd.DataFrame) -> str:
    """Return why no row of ours is below those of a table."""
    if reason := why_unanswered(results["match"]):
        return f"{_NOTHING_BELOW} {reason}"
    return "What would be next to it was not measured here."


def _our_cells(replication: Replication, of_row: pd.DataFrame, columns: Iterable[str]) -> Iterator[Cell]:
    """Yield what ours gives for each printed cell of a row; a cell may hold several numbers."""
    for column in columns:
        cells = [_our_cell(replication, result) for result in of_row[of_row["column"] == column].itertuples()]
        footnotes = dict.fromkeys(cell.footnote for cell in cells if cell.footnote)
        yield Cell(" / ".join(cell.printed for cell in cells), footnote="; ".join(footnotes))


def _our_cell(replication: Replication, result: Any) -> Cell:
    """Return ours for one printed result."""
    row = replication.measured(result.match)
    if not result.match.identities:
        return Cell.missing(*why_no_match(result.match))
    if row is None:
        configurations = replication.dataset.configurations
        [planned] = configurations[configurations["identity"] == result.match.identities[0]].itertuples()
        return Cell.missing(why_not_measured(replication.dataset, planned))
    if result.metric in _STAGES:
        steps = result.samples_per_task / row.batch_per_device
        return _with_unit(stage_cell(replication.dataset, row, _STAGES[result.metric], steps), "s")
    if result.metric not in COLUMNS or TableName.CONFIGURATIONS not in COLUMNS[result.metric].tables:
        return Cell.missing("not measured under this name")
    column = measured_column(replication.dataset, result.metric)
    # A time of ours may have another prefix than the printed one.
    return _with_unit(column.cell(row), column.heading.unit if COLUMNS[result.metric].unit == "s" else "")


def _with_unit(cell: Cell, unit: str) -> Cell:
    return replace(cell, text=f"{cell.text} {unit}") if unit and cell.text != MISSING else cell


def differences(dataset: Dataset) -> Table:
    """Return the conditions of each original and of our runs, next to each other."""
    rows, groups = [], []
    runs = context.completed_runs(dataset)
    ours = {fact: context.levels(runs[column]) for fact, column in _CONDITIONS.items()}
    ours |= {"images": listed(sorted(filter(None, set(images_of_rows(runs))))), "software": context.versions(runs)}
    for replication in replications_of(dataset):
        for fact, of_ours in ours.items():
            printed = published_levels(replication.published, replication.name, fact)
            if fact in _LEVELS:
                printed = " / ".join(map(display_name, printed.split(" / ")))
            rows.append((Cell(COLUMNS[fact].label), Cell(printed or "not stated"), Cell(of_ours or "not recorded")))
            groups.append(replication.title)
    headings = (Heading(""), Heading("The original"), Heading("Ours, all that was measured here"))
    name, caption = "replication-differences", f"What differs besides what is measured.{context.quick_label(dataset)}"
    return Table(name, "What differs", caption, headings, tuple(rows), empty=NO_QUESTION, groups=tuple(groups))


def apart(dataset: Dataset) -> Table:
    """Return our measured configurations that answer the question of no number of an original."""
    answering = set[str]()
    for replication in replications_of(dataset):
        for match in replication.results["match"]:
            answering.update(match.identities)
    measured = context.measured(dataset)
    alone = measured[~measured["identity"].isin(answering)]
    shown = ("throughput", "speedup", "efficiency")
    table = table_of_configurations(dataset, "replication-apart", "Ours, apart", shown, (_APART,), alone)
    return table
