"""Tables of CSV, Markdown and Excel files as grids of text."""

import codecs
import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from dlperf_study.audit.reading import excel
from dlperf_study.audit.reading.numbers import TableErrors, tidy
from dlperf_study.core.errors import TableError
from dlperf_study.core.large_files import require_end
from dlperf_study.core.wording import counted

#: The name of the column with the names of the columns of a table that is read across.
COLUMN_NAME = "column of the table"
MARKDOWN, EXCEL, LATEX = (".md", ".markdown"), (".xlsx",), (".tex", ".ltx")
HTML = (".html", ".htm")
#: Separators other than the comma, as people call them.
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}
#: Far above what anybody publishes.
MOST_BYTES = 64_000_000
_GZIP = b"\x1f\x8b"
_SEPARATOR = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?")
_DASHES = re.compile(r":?-{3,}:?")
_HEADING = re.compile(r"#{1,6}\s+(.*)")
#: A bar that separates no cells is written with a backslash.
_BAR = re.compile(r"(?<!\\)\|")
#: Footnotes, tags, links and emphasis are no part of a text.
#: Each pattern ends where the next one of its kind could begin, so that a long cell takes no longer than its length.
_FOOTNOTE, _TAG = re.compile(r"\[\^[^\[\]]*\]"), re.compile(r"<[^<>]+>")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()]|\([^()]*\))*\)")
_EMPHASIS = re.compile(r"\*\*|__|`|(?<!\\)(?:(?<![\d\s])\*|\*(?![\d\s]))")
_FENCE = ("```", "~~~")


@dataclass(frozen=True)
class GridRow:
    """The fields of one row, with single spaces, and its file line."""

    line: int
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A header and its rows; ``heading`` is the text above the table.

    ``number`` counts the tables of a file from 1. ``is_marked_up``: the table is in a page of text, which gives the
    line numbers and may have tables without results.
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
        """Return the transposed table; ``first_column`` names its first column."""
        (_, *names), *columns = zip(self.header, *map(attrgetter("fields"), self.rows), strict=True)
        rows = [GridRow(self.rows[0].line, fields) for fields in columns]
        heading = f"{self.heading}: {self.header[0]}" if self.heading else self.header[0]
        return Grid(self.number, heading, (first_column, *names), tuple(rows), self.is_marked_up)


@dataclass(frozen=True)
class TableFormat:
    """Field separator and decimal sign of a CSV file.

    Without ``decimal``, commas separate thousands if any number has a decimal point.
    """

    separator: str = ","
    decimal: str = ""


def read_grids(path: Path, table_format: TableFormat, errors: TableErrors) -> list[Grid]:
    """Return the tables of a file; raises TableError if there is none."""
    suffix = path.suffix.lower()
    try:
        require_end(path)
    except OSError as error:
        raise TableError(str(error.strerror)) from None
    if (size := path.stat().st_size) > MOST_BYTES:
        raise TableError(f"has {size / 1e6:.0f} MB; the maximum is {MOST_BYTES / 1e6:.0f} MB")
    if suffix in EXCEL:
        return _require_rows(_excel_grids(path), "sheet with a table", errors)
    if suffix in LATEX:
        raise TableError("LaTeX is not supported; export the table as CSV, Markdown or Excel")
    if suffix in HTML:
        raise TableError("HTML is not supported; open it, and paste its table into a spreadsheet")
    stored = path.read_bytes()
    if stored.startswith(_GZIP):
        raise TableError("is compressed with gzip; unpack it first")
    try:
        content = stored.decode(_encoding(stored)).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        kind = "Markdown page" if suffix in MARKDOWN else "CSV table"
        raise TableError(f"not a {kind}: {error}") from None
    if suffix in MARKDOWN:
        wanted = "table: a header, a line of dashes and rows, all with |"
        return _require_rows(markdown_grids(content, errors), wanted, errors)
    return [_csv_grid(content, "\t" if suffix == ".tsv" else table_format.separator, errors)]


def _encoding(stored: bytes) -> str:
    """Return the encoding of the first bytes; Excel writes UTF-16."""
    # The mark of UTF-32 begins with that of UTF-16.
    if stored.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if stored.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig"


def _require_rows(grids: list[Grid], wanted: str, errors: TableErrors) -> list[Grid]:
    filled = [grid for grid in grids if grid.rows]
    if not filled:
        errors.raise_all()
        raise TableError(f"has no {wanted}")
    return filled


def _csv_grid(text: str, separator: str, errors: TableErrors) -> Grid:
    """Return the table of a CSV file; rows of wrong length are errors."""
    if text.lstrip()[:1] in ("{", "["):
        raise TableError("is JSON; export the table as CSV, Markdown or Excel")
    try:
        # The lines keep their ends: a field in quotes may hold one.
        reader = csv.reader(text.splitlines(keepends=True), strict=True, skipinitialspace=True, delimiter=separator)
        lines = []
        for fields in reader:
            if fields:
                lines.append(GridRow(reader.line_num, tuple(map(tidy, fields))))
    except csv.Error as error:
        raise TableError(f"not a CSV table: {error}") from None
    if not lines:
        raise TableError("is empty; a table needs a header with the names of its columns, and rows")
    first = 0
    while first + 1 < len(lines) and lines[first].fields[0].startswith("#"):
        if len(lines[first].fields) == len(lines[first + 1].fields):
            break
        first += 1
    comments = [", ".join(line.fields).lstrip("# ") for line in lines[:first]]
    heading, (header, *rows) = "; ".join(comments), lines[first:]
    # Decimal commas would be reported as wrong numbers of fields, line by line.
    for other_separator, noun in OTHER_SEPARATORS.items():
        if len(header.fields) == 1 and other_separator in header.fields[0]:
            declared = "declare them with --separator, and decimal commas with --decimal"
            raise TableError(f"its fields seem to be separated by {noun}; {declared}")
    if len(header.fields) == 1 and rows and all(len(row.fields) == len(rows[0].fields) > 1 for row in rows):
        remedy = "put # before text above the header"
        raise TableError(f"line {header.line} has 1 field, and all others have {len(rows[0].fields)}; {remedy}")
    complete = errors.parse_each(rows, partial(_complete_row, header, may_be_short=False))
    return Grid(1, heading, header.fields, tuple(complete))


def _excel_grids(path: Path) -> list[Grid]:
    """Return one table per sheet; its first row is the header."""
    grids: list[Grid] = []
    for name, sheet_rows in excel.sheets(path).items():
        rows = tuple(itertools.starmap(GridRow, sheet_rows))
        if rows:
            grids.append(Grid(len(grids) + 1, name, rows[0].fields, rows[1:], is_marked_up=True))
    return grids


def markdown_grids(text: str, errors: TableErrors) -> list[Grid]:
    """Return the tables of a page; too many cells are errors."""
    grids: list[Grid] = []
    for heading, start, lines in _blocks(_without_comments(text).splitlines()):
        written = []
        for line_number, line in enumerate(lines, start):
            stripped = line.strip().removeprefix("|")
            if stripped.endswith("|") and not stripped.endswith("\\|"):
                stripped = stripped[:-1]
            written.append(GridRow(line_number, tuple(map(plain_text, _BAR.split(stripped)))))
        if not _is_labelled_separator(lines[1]):
            del written[1]
        header, *rows = written
        complete = tuple(errors.parse_each(rows, partial(_complete_row, header)))
        grids.append(Grid(len(grids) + 1, heading, header.fields, complete, is_marked_up=True))
    return grids


def _without_comments(page: str) -> str:
    """Return a page with empty lines for its comments."""
    parts: list[str] = []
    visible, begin, rest = page.partition("<!--")
    while begin:
        comment, end, following = rest.partition("-->")
        if not end:
            # What does not end is no comment.
            return "".join([*parts, visible, begin, rest])
        parts += [visible, "\n" * comment.count("\n")]
        visible, begin, rest = following.partition("<!--")
    return "".join([*parts, visible])


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, int, list[str]]]:
    """Yield heading, first line number and lines of each table."""
    heading, position, is_code = "", 0, False
    while position < len(lines):
        line = lines[position].strip()
        if line.startswith(_FENCE):
            is_code = not is_code
        if match := _HEADING.fullmatch(line):
            heading = plain_text(match[1])
        following = ""
        if position + 1 < len(lines):
            following = lines[position + 1].strip()
        is_table = _SEPARATOR.fullmatch(following) or _is_labelled_separator(following)
        if is_code or "|" not in line or not is_table:
            position += 1
            continue
        end = position
        while end < len(lines) and "|" in lines[end]:
            end += 1
        yield heading, position + 1, list(lines[position:end])
        position = end


def _is_labelled_separator(line: str) -> bool:
    """Return whether a line of dashes begins with a label."""
    label, *cells = map(str.strip, line.strip().strip("|").split("|"))
    return bool(label.strip("-: ")) and len(cells) > 1 and all(map(_DASHES.fullmatch, cells))


def _complete_row(header: GridRow, row: GridRow, may_be_short: bool = True) -> GridRow:
    """Pad a short row with empty cells, as Markdown does; raises TableError for another length."""
    missing = len(header.fields) - len(row.fields)
    if missing < 0 or (missing and not may_be_short):
        count = counted(len(row.fields), "field")
        raise TableError(f"line {row.line} has {count}, and the header has {len(header.fields)}")
    return GridRow(row.line, row.fields + ("",) * missing)


def plain_text(cell: str) -> str:
    """Return the text of a cell without markup: ``**8**[^1]`` is 8."""
    cell = _LINK.sub(r"\1", _TAG.sub("", _FOOTNOTE.sub("", cell)))
    return tidy(_EMPHASIS.sub("", cell).replace("\\|", "|").replace("\\*", "*"))
