"""Tables of the page on the original: what it asked, what it printed with ours below, what differs, and ours apart."""

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from dlperf_study.analysis.same_question import images_of_rows
from dlperf_study.columns import COLUMNS, TableName
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import display_name, listed
from dlperf_study.report.originals import NO_QUESTION, Original, originals_of
from dlperf_study.report.tables.cells import measured_column
from dlperf_study.report.tables.missing import why_not_measured
from dlperf_study.report.tables.published_tables import printed_grid, published_levels
from dlperf_study.report.tables.question_differences import why_no_match, why_unanswered
from dlperf_study.report.tables.rows import table_of_configurations
from dlperf_study.report.tables.table import Cell, Heading, Table

OURS = "ours"
#: What is compared of the conditions: a fact of the source, and the column of our runs that has the same.
_CONDITIONS = {
    **{"hardware": "cpu_model", "device": "device", "device_name": "device_name", "link": "link"},
    **{"framework": "framework", "data_source": "data_source"},
}
#: Those of which both have the same levels.
_LEVELS = ("device", "data_source")
#: Units that a printed number of the same metric has too.
_PRINTED_UNITS = ("", "samples/s", "×")
_APART = "These were measured here, but no number of the original is of the same question: they are not its answer."


def questions(dataset: Dataset) -> Table:
    """Return what each original asked, who printed the answer, when and where."""
    rows, groups = [], []
    for original in originals_of(dataset):
        source = original.source
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
    name, title, caption = "original-question", "The original", "What it asked, who printed the answer, and where."
    headings = (Heading(""), Heading(""))
    return Table(name, title, caption, headings, tuple(rows), empty=NO_QUESTION, groups=tuple(groups))


def side_by_side(dataset: Dataset) -> Iterator[Table]:
    """Yield each table of results as printed; below each row of which anything was measured here, ours."""
    for original in originals_of(dataset):
        for source, table in original.published.results():
            yield _side_by_side(original, source, table)


def _side_by_side(original: Original, source: str, table: str) -> Table:
    headings, printed_rows = printed_grid(original.published, source, table)
    columns = [heading.label for heading in headings[1:]]
    results = original.results[original.results["table"] == table]
    rows = []
    for printed in printed_rows:
        rows.append(printed)
        of_row = results[results["row"] == printed[0].text]
        if any(original.measured(match) is not None for match in of_row["match"]):
            rows.append((Cell(OURS), *_our_cells(original, of_row, columns)))
    year = f", {original.source.year}," if original.source.year else ""
    caption = f"As {original.source.authors}{year} printed it, cell by cell. "
    caption += _on_ours(original, results) if len(rows) > len(printed_rows) else _without_ours(results)
    name = f"original-{source}-{table}".replace("_", "-")
    return Table(name, original.published.title_of(source, table), caption, headings, tuple(rows))


def _on_ours(original: Original, results: pd.DataFrame) -> str:
    """Return what the rows of ours are; the unit of printed times is seconds."""
    identities = {row.identity for row in map(original.measured, results["match"]) if row is not None}
    configurations = original.dataset.configurations
    ours = context.only(original.dataset, configurations[configurations["identity"].isin(identities)])
    return f"Below a row: ours of the same question. {context.conditions(ours)} {context.repetition(ours)}"


def _without_ours(results: pd.DataFrame) -> str:
    """Return why no row of ours is below those of a table."""
    if reason := why_unanswered(results["match"]):
        return f"Nothing of ours is next to it. {reason}"
    return "What would be next to it was not measured here."


def _our_cells(original: Original, of_row: pd.DataFrame, columns: Iterable[str]) -> Iterator[Cell]:
    """Yield what ours gives for each printed cell of a row; a cell may hold several numbers."""
    for column in columns:
        cells = [_our_cell(original, number) for number in of_row[of_row["column"] == column].itertuples()]
        texts = [" ".join(filter(None, (cell.text, cell.interval))) for cell in cells]
        footnotes = dict.fromkeys(cell.footnote for cell in cells if cell.footnote)
        yield Cell(" / ".join(texts), footnote="; ".join(footnotes))


def _our_cell(original: Original, number: Any) -> Cell:
    """Return ours for one printed number."""
    row = original.measured(number.match)
    if not number.match.identities:
        return Cell.missing(why_no_match(number.match))
    if row is None:
        configurations = original.dataset.configurations
        [planned] = configurations[configurations["identity"] == number.match.identities[0]].itertuples()
        return Cell.missing(why_not_measured(original.dataset, planned))
    if number.metric not in COLUMNS or TableName.CONFIGURATIONS not in COLUMNS[number.metric].tables:
        return Cell.missing("not measured under this name")
    column = measured_column(original.dataset, number.metric)
    cell, unit = column.cell(row), column.heading.unit
    return cell if unit in _PRINTED_UNITS else Cell(f"{cell.text} {unit}", cell.interval, cell.footnote)


def differences(dataset: Dataset) -> Table:
    """Return the conditions of each original and of our runs, next to each other."""
    rows, groups = [], []
    runs = context.completed_runs(dataset)
    ours = {fact: context.levels(runs[column]) for fact, column in _CONDITIONS.items()}
    ours |= {"images": listed(sorted(filter(None, set(images_of_rows(runs))))), "software": context.versions(runs)}
    for original in originals_of(dataset):
        for fact, of_ours in ours.items():
            printed = published_levels(original.published, original.name, fact)
            if fact in _LEVELS:
                printed = " / ".join(map(display_name, printed.split(" / ")))
            rows.append((Cell(COLUMNS[fact].label), Cell(printed or "not stated"), Cell(of_ours or "not recorded")))
            groups.append(original.source.title)
    headings = (Heading(""), Heading("The original"), Heading("Ours, all that was measured here"))
    name, caption = "original-differences", f"What differs besides what is measured.{context.quick_label(dataset)}"
    return Table(name, "What differs", caption, headings, tuple(rows), empty=NO_QUESTION, groups=tuple(groups))


def apart(dataset: Dataset) -> Table:
    """Return our measured configurations that answer the question of no number of an original."""
    answering = set[str]()
    for original in originals_of(dataset):
        for match in original.results["match"]:
            answering.update(match.identities)
    measured = context.measured(dataset)
    alone = measured[~measured["identity"].isin(answering)]
    shown = ("throughput", "speedup", "efficiency")
    table = table_of_configurations(dataset, "original-apart", "Ours, apart", shown, (_APART,), alone)
    return table
