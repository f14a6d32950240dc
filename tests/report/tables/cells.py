"""Cells of a table, found by what a reader looks for."""

from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.series import SEPARATOR
from dlperf_study.report.tables.table import Cell, Table


def cell_of(table: Table, devices: str, label: str, group: str, framework: str = "") -> Cell:
    """Return the cell of one configuration, found by the end or the framework of its group, and by its devices."""
    labels = [heading.label for heading in table.headings]
    devices_at = labels.index(COLUMNS["world_size"].label)
    grouped = [
        row
        for row, name in zip(table.rows, table.groups, strict=True)
        if name.endswith(group) or group in name.split(SEPARATOR)[0]
    ]
    [row] = [row for row in grouped if row[devices_at].text == devices and framework in (*(c.text for c in row), "")]
    return row[labels.index(label)]


def labelled(table: Table, row: int) -> dict[str, Cell]:
    """Return the cells of a row by the labels of their columns."""
    return {heading.label: cell for heading, cell in zip(table.headings, table.rows[row], strict=True)}


def facts(table: Table) -> dict[str, str]:
    """Return the second cell of each row by the text of the first."""
    return {row[0].text: row[1].text for row in table.rows}


def labels(table: Table) -> list[str]:
    """Return the labels of the columns."""
    return [heading.label for heading in table.headings]


def assert_dashes_have_reasons(table: Table) -> None:
    """Every dash has a footnote, and nothing is printed as NaN."""
    cells = [cell for row in table.rows for cell in row]
    assert [cell for cell in cells if cell.text == MISSING and not cell.footnote] == []
    assert [cell for cell in cells if "nan" in cell.text.lower() or "<NA>" in cell.text] == []
