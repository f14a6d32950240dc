"""A table as it is in a file, before any column is understood."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

#: The name of the column with the names of the columns of a table that is read across.
COLUMN_NAME = "column of the table"


@dataclass(frozen=True)
class GridRow:
    """The fields of one row, stripped; empty where nothing is written. ``line`` is its line of the file."""

    line: int
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A header and the rows below it; ``heading`` is the text above the table, empty if there is none.

    ``number`` counts the tables of a file from 1. ``is_marked_up``: it is of a page for people to read, so its line
    numbers are those of that page, and a table without results may be in it.
    """

    number: int
    heading: str
    header: tuple[str, ...]
    rows: tuple[GridRow, ...]
    is_marked_up: bool = False

    @property
    def name(self) -> str:
        """The table in messages."""
        return f"table {self.number}" + (f" ({self.heading})" if self.heading else "")

    def column(self, position: int) -> list[str]:
        """Return the fields of a column that are not empty."""
        return [row.fields[position] for row in self.rows if row.fields[position]]

    def columns(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the name of each column and its fields."""
        for position, name in enumerate(self.header):
            yield name, self.column(position)

    def transposed(self, first_column: str) -> "Grid":
        """Return the table with its columns as rows; ``first_column`` is the name of the column with their names."""
        (_, *names), *columns = zip(self.header, *map(attrgetter("fields"), self.rows), strict=True)
        rows = [GridRow(self.rows[0].line, fields) for fields in columns]
        heading = f"{self.heading}: {self.header[0]}" if self.heading else self.header[0]
        return Grid(self.number, heading, (first_column, *names), tuple(rows), self.is_marked_up)
