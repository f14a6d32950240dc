"""The tables of the report as a paper has them: their numbers, what is needed to read these, and no diagnostics."""

from collections.abc import Sequence
from dataclasses import replace

from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.tables.table import Cell, Table

#: What a column is where its heading does not say it, by that heading.
_EXPLANATIONS = {
    "Speedup": "Speedup: throughput over that of the baseline.",
    "Efficiency": "Efficiency: the speedup as a share of the ideal one.",
    "Communication factor": "A factor below 1 is what a configuration loses by one cause.",
    "Exposed communication": "Exposed communication: what a step takes longer than its computation and input wait.",
    "Pure communication": "Pure communication: the same exchange alone.",
    "Overlap": "Overlap: the share of the exchange that computation hides.",
    "Relative throughput": "Relative throughput: throughput over that of the reference.",
    "Step in parts, difference": "Differences are those to the reference: negative takes less time.",
}
_BRACKETS = "Brackets: 95 % intervals over runs."
#: What is printed where a configuration is compared with itself, and tells nothing.
_OF_ITSELF = "1"


def for_paper(dataset: Dataset, table: Table) -> Table:
    """Return a table without columns of dashes, with one note on all diagnostics, and a caption that explains it.

    Under which conditions it was measured is said once, by the methods.
    """
    rows = [tuple(map(_without_diagnostics, row)) for row in table.rows]
    kept = [position for position in range(len(table.headings)) if _says_something(table, position)]
    return replace(
        table,
        caption=_caption(dataset, table, [table.headings[position].label for position in kept]),
        headings=tuple(table.headings[position] for position in kept),
        rows=tuple(tuple(row[position] for position in kept) for row in rows),
        notes=tuple(_note(table)),
    )


def has_numbers(table: Table) -> bool:
    """Return whether a column has measured numbers."""
    return any(heading.interval for heading in table.headings) and not table.is_empty


def _without_diagnostics(cell: Cell) -> Cell:
    """Return a cell with the reason why something is missing, and no other footnote."""
    return cell if cell.text == MISSING else replace(cell, footnote=cell.reason, further=())


def _says_something(table: Table, position: int) -> bool:
    """Return whether a column has more than dashes, and ratios of configurations to themselves."""
    printed = {row[position].text for row in table.rows}
    return not (printed <= {MISSING} or (table.headings[position].interval and printed == {MISSING, _OF_ITSELF}))


def _note(table: Table) -> Sequence[str]:
    """Return how many numbers have diagnostics, in one note; nothing where none has."""
    cells = [cell for row in table.rows for cell in row if cell.text != MISSING]
    concerned = sum(cell.footnotes != _without_diagnostics(cell).footnotes for cell in cells)
    if not concerned:
        return []
    verb = "has" if concerned == 1 else "have"
    return [f"{counted(concerned, 'number')} of this table {verb} diagnostics, which the report of the study lists."]


def _caption(dataset: Dataset, table: Table, labels: Sequence[str]) -> str:
    """Return what the columns of these labels are, and what brackets are where there are some."""
    explanations = filter(None, map(_EXPLANATIONS.get, labels))
    brackets = _BRACKETS if any(cell.interval for row in table.rows for cell in row) else ""
    return " ".join(filter(None, (*explanations, brackets, context.quick_label(dataset).strip())))
