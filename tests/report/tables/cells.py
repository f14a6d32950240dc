"""The cell of one configuration in a table."""

from dlperf_study.columns import COLUMNS
from dlperf_study.report.tables.table import Cell, Table


def cell_of(table: Table, devices: str, label: str, group: str, framework: str = "") -> Cell:
    """Return the cell of one configuration, found by its group, its number of devices and its framework."""
    labels = [heading.label for heading in table.headings]
    devices_at = labels.index(COLUMNS["world_size"].label)
    grouped = [row for row, name in zip(table.rows, table.groups, strict=True) if group in name]
    [row] = [row for row in grouped if row[devices_at].text == devices and framework in (*(c.text for c in row), "")]
    return row[labels.index(label)]
