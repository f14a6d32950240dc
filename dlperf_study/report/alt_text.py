"""The numbers of a figure in words, for who can't see it: those of the tables, printed alike."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.series import Series, devices_label, joined, short_labels
from dlperf_study.report.tables.cells import measured_column
from dlperf_study.report.tables.table import Cell, Table
from dlperf_study.wording import in_sentence

#: The columns that a figure of each name shows, and which figures begin with the rate.
_COLUMNS = {
    "overview": (),
    "scaling": ("speedup", "efficiency"),
    "communication": ("step_seconds", "computation_seconds", "exposed_seconds", "exchange_seconds"),
    "comparison": ("throughput", "relative_throughput", "step_seconds"),
    "steps": ("step_seconds",),
    "stragglers": ("load_balance",),
}
_OF_RATES = ("overview", "scaling")
#: So many configurations are read out.
MOST_CONFIGURATIONS = 30


def alt_text(dataset: Dataset, name: str, title: str, lines: Sequence[Series]) -> str:
    """Return the title of a figure and, of each configuration that was measured, the numbers with their intervals."""
    total = sum(len(line.measured) for line in lines)
    configurations = list(islice(_configurations(dataset, name, lines), MOST_CONFIGURATIONS))
    if not configurations:
        return f"{title}."
    more = f"; and {total - len(configurations)} more" if total > len(configurations) else ""
    return f"{title}. {'; '.join(configurations)}{more}."


def alt_text_of_table(title: str, table: Table) -> str:
    """Return the title of a figure and the rows of the table that has its numbers."""
    rows = []
    for row in table.rows[:MOST_CONFIGURATIONS]:
        cells = zip(table.headings, row, strict=True)
        values = [f"{in_sentence(heading.label)} {_printed(cell, heading.unit)}" for heading, cell in cells]
        rows.append(", ".join(values))
    more = f"; and {len(table.rows) - len(rows)} more" if len(table.rows) > len(rows) else ""
    return f"{title}. {'; '.join(rows)}{more}." if rows else f"{title}."


def _configurations(dataset: Dataset, name: str, lines: Sequence[Series]) -> Iterator[str]:
    rate = (dataset.rate,) if name in _OF_RATES else ()
    columns = list(map(partial(measured_column, dataset), (*rate, *_COLUMNS[name])))
    for line, label in zip(lines, short_labels(list(lines)), strict=True):
        for row in map(dataset.configuration_rows.__getitem__, line.measured["identity"]):
            values = []
            for column in columns:
                value = _printed(column.cell(row), column.heading.unit)
                values.append(f"{in_sentence(column.heading.label)} {value}")
            yield f"{joined(label, devices_label(row))}: {', '.join(values)}"


def _printed(cell: Cell, unit: str) -> str:
    return f"{cell.printed} {unit}".rstrip()
