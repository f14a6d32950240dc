"""The tables of a file: CSV, Markdown or Excel, as the end of its name says."""

import codecs
import csv
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pandas as pd

from dlperf_study.audit.reading.grid import Grid, GridRow
from dlperf_study.audit.reading.markdown import markdown_grids
from dlperf_study.audit.reading.table_errors import MOST_ERRORS, TableErrors
from dlperf_study.errors import TableError
from dlperf_study.wording import counted, first_of

MARKDOWN, EXCEL = (".md", ".markdown"), (".xlsx",)
#: Separators other than the comma, as people call them.
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}
#: What a file begins with that gzip has compressed.
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class TableFormat:
    """What a CSV file does not say itself: the separator of its fields, and the sign of its decimals.

    Without ``decimal``, commas are between thousands if any number of the table has a decimal point.
    """

    separator: str = ","
    decimal: str = ""


def read_grids(path: Path, table_format: TableFormat, errors: TableErrors) -> list[Grid]:
    """Return the tables of a file; raises TableError if it is none that can be read, or has no row."""
    if path.suffix.lower() in EXCEL:
        return _with_rows(_excel_grids(path), "sheet with a table")
    stored = path.read_bytes()
    if stored.startswith(_GZIP):
        raise TableError("is compressed with gzip: unpack it, and audit what is in it")
    try:
        content = _decoded(stored)
    except UnicodeDecodeError as error:
        kind = "Markdown page" if path.suffix.lower() in MARKDOWN else "CSV table"
        raise TableError(f"not a {kind}: {error}") from None
    if path.suffix.lower() in MARKDOWN:
        return _with_rows(markdown_grids(content), "table: a header, a line of dashes and rows, all with |,")
    return [_csv_grid(content, "\t" if path.suffix.lower() == ".tsv" else table_format.separator, errors)]


def _decoded(content: bytes) -> str:
    """Return a text in UTF-8, or in UTF-16 if it begins with that mark, as Excel's Unicode text does."""
    is_utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if is_utf_16 else "utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def _require_separator(header: GridRow) -> None:
    """Raise TableError, with what to declare, if the only field of a header holds another separator."""
    for separator, noun in OTHER_SEPARATORS.items():
        if len(header.fields) == 1 and separator in header.fields[0]:
            declared = "declare them with --separator, and decimal commas with --decimal"
            raise TableError(f"its fields seem to be separated by {noun}: {declared}")


def _with_rows(grids: list[Grid], wanted: str) -> list[Grid]:
    filled = [grid for grid in grids if grid.rows]
    if not filled:
        raise TableError(f"there is no {wanted} in it")
    return filled


def _csv_grid(text: str, separator: str, errors: TableErrors) -> Grid:
    """Return the table of a CSV file; a row with too few or too many fields is one of its errors."""
    if text.lstrip()[:1] in ("{", "["):
        raise TableError("is JSON: tables are read from CSV, Markdown and Excel files")
    try:
        # The lines keep their ends: a field in quotes may hold one.
        reader = csv.reader(text.splitlines(keepends=True), strict=True, skipinitialspace=True, delimiter=separator)
        lines = [GridRow(reader.line_num, tuple(map(str.strip, fields))) for fields in reader if fields]
    except csv.Error as error:
        raise TableError(f"not a CSV table: {error}") from None
    if not lines:
        raise TableError("is empty: a header with the names of the columns was expected, and rows below it")
    heading, (header, *rows) = _without_comments(lines)
    # Decimal commas would be reported as wrong numbers of fields, line by line.
    _require_separator(header)
    if len(header.fields) == 1 and rows and all(len(row.fields) == len(rows[0].fields) > 1 for row in rows):
        remedy = "put # before a text that is above the header, as a comment has it"
        raise TableError(f"line {header.line} has 1 field, and all others have {len(rows[0].fields)}; {remedy}")

    def complete_row(row: GridRow) -> GridRow:
        if len(row.fields) != len(header.fields):
            count = counted(len(row.fields), "field")
            raise TableError(f"line {row.line} has {count}, and the header has {len(header.fields)}")
        return row

    return Grid(1, heading, header.fields, tuple(errors.parse_each(rows, complete_row)))


def _without_comments(lines: list[GridRow]) -> tuple[str, list[GridRow]]:
    """Return the comments above the header, and the lines from the header on, which may itself begin with #."""
    first = 0
    while first + 1 < len(lines) and lines[first].fields[0].startswith("#"):
        if len(lines[first].fields) == len(lines[first + 1].fields):
            break
        first += 1
    comments = [", ".join(line.fields).lstrip("# ") for line in lines[:first]]
    return "; ".join(comments), lines[first:]


def _excel_grids(path: Path) -> list[Grid]:
    """Return one table for each sheet: its first row that is not empty is the header."""
    try:
        sheets = pd.read_excel(path, sheet_name=None, header=None, dtype=object, engine="openpyxl")
        uncomputed = _uncomputed_formulas(path)
    except ImportError:
        raise TableError("an Excel file is read with the package openpyxl, which is not installed") from None
    except Exception as error:  # openpyxl raises what its XML and zip readers do, and errors of its own.
        raise TableError(f"not an Excel file: {error}") from None
    if uncomputed:
        cells = first_of(uncomputed, MOST_ERRORS)
        remedy = "open the file in a spreadsheet program, which computes them, and save it"
        raise TableError(f"formulas have no stored value, in {cells}: {remedy}")
    grids: list[Grid] = []
    for name, sheet in sheets.items():
        lines = list(_filled_rows(sheet.itertuples(name=None)))
        if lines:
            grids.append(Grid(len(grids) + 1, str(name), lines[0].fields, tuple(lines[1:]), is_marked_up=True))
    return grids


def _uncomputed_formulas(path: Path) -> list[str]:
    """Return the cells with a formula and without its value: ``speeds!C2``. A program may write formulas alone."""
    import openpyxl  # Only Excel files need it.

    load = openpyxl.load_workbook
    with closing(load(path)) as formulas, closing(load(path, data_only=True)) as values:
        cells = []
        for sheet in formulas.worksheets:
            for cell in chain.from_iterable(sheet.iter_rows()):
                stored = values[sheet.title][cell.coordinate]
                # A formula that gives an empty text is stored as a text.
                if cell.data_type == "f" and stored.value is None and stored.data_type == "n":
                    cells.append(f"{sheet.title}!{cell.coordinate}")
        return cells


def _filled_rows(rows: Iterable[tuple[object, ...]]) -> Iterable[GridRow]:
    for position, *values in rows:
        fields = tuple("" if pd.isna(value) else str(value).strip() for value in values)
        if any(fields):
            yield GridRow(int(str(position)) + 1, fields)
