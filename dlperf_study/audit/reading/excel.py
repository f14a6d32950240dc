"""Written cells of an Excel file.

One stray cell in the last row would make a rectangle of a million rows.
"""

import re
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from dlperf_study.audit.reading.numbers import MOST_ERRORS, tidy
from dlperf_study.core.errors import TableError
from dlperf_study.core.wording import list_first

#: A sheet of more cells, and a file that is unpacked to more bytes, is refused before it is read into memory.
MOST_CELLS, MOST_BYTES = 2_000_000, 512_000_000
#: The rows of a sheet in Excel, and how many empty rows, cells and texts a file may have.
MAX_ROWS, MAX_EMPTY = 1 << 20, 100_000
#: The beginnings of rows, of cells and shared texts, and of what is in one that is not empty; and the numbers of rows.
_ROW, _CELL = re.compile(rb"<(?:\w{1,9}:)?row[\s/>]"), re.compile(rb"<(?:\w{1,9}:)?(?:c|si)[\s/>]")
_FILLED = re.compile(rb"<(?:\w{1,9}:)?(?:v|t|f)[\s>]")
_ROW_NUMBER = re.compile(rb"<(?:\w{1,9}:)?row[^<>]{0,1000}?\br=[\"'](\d+)")
_BLOCK_BYTES = 1 << 20
#: The rows of a sheet that have a text, each with its line and its fields from the first column on.
Rows = list[tuple[int, tuple[str, ...]]]


def sheets(path: Path) -> dict[str, Rows]:
    """Return the rows of each sheet; raises TableError if unreadable."""
    try:
        import openpyxl  # Only Excel files need it.
    except ImportError:
        raise TableError("reading Excel files needs openpyxl: pip install openpyxl") from None
    try:
        with zipfile.ZipFile(path) as archive:
            _require_few_empty_cells(archive)
        load = openpyxl.load_workbook
        with closing(load(path, read_only=True)) as formulas, closing(load(path, True, data_only=True)) as values:
            _require_values(formulas, values)
            return {sheet.title: _rows(sheet) for sheet in values.worksheets}
    except (TableError, MemoryError):
        raise
    except Exception as error:  # openpyxl raises what its XML and zip readers do, and errors of its own.
        raise TableError(f"not an Excel file: {error}") from None


def _require_few_empty_cells(archive: zipfile.ZipFile) -> None:
    """Reject a file of many empty cells, which take as long as others to be read."""
    size = sum(member.file_size for member in archive.infolist())
    if size > MOST_BYTES:
        raise TableError(f"has {size / 1e6:.0f} MB when unpacked; the maximum is {MOST_BYTES / 1e6:.0f} MB")
    rows = cells = filled = 0
    for member in archive.infolist():
        if not member.filename.endswith(".xml"):
            continue
        with archive.open(member) as file:
            while block := file.read(_BLOCK_BYTES):
                rows += len(_ROW.findall(block))
                cells += len(_CELL.findall(block))
                filled += len(_FILLED.findall(block))
                for row in _ROW_NUMBER.findall(block):
                    if len(row) > len(str(MAX_ROWS)) or int(row) > MAX_ROWS:
                        raise TableError(f"has a row {row.decode()[:20]}; a sheet has at most {MAX_ROWS:,}")
    empty = max(0, rows - cells) + max(0, cells - filled)
    if empty > MAX_EMPTY:
        raise TableError(f"has {empty:,} empty rows, cells and texts; delete those outside the table")


def _require_values(formulas: Any, values: Any) -> None:
    cells = []
    for sheet in formulas.worksheets:
        for row, stored_row in zip(_written(sheet), _written(values[sheet.title]), strict=True):
            for cell, stored in zip(row, stored_row, strict=True):
                # A formula that gives an empty text is stored as a text.
                if cell.data_type == "f" and stored.value is None and stored.data_type == "n":
                    cells.append(f"{sheet.title}!{cell.coordinate}")
    if cells:
        remedy = "open the file in a spreadsheet program, and save it"
        raise TableError(f"no stored value of the formulas in {list_first(cells, MOST_ERRORS)}; {remedy}")


def _rows(sheet: Any) -> Rows:
    """Return rows with text; raises TableError for too many cells."""
    rows: Rows = []
    width = 0
    for row in _written(sheet):
        fields = tuple(map(_text, row))
        last = max((column for column, field in enumerate(fields, 1) if field), default=0)
        if not last:
            continue
        rows.append((row[last - 1].row, fields[:last]))
        width = max(width, last)
        if width * len(rows) > MOST_CELLS:
            extent = f"sheet {sheet.title} spans more than {MOST_CELLS:,} cells up to {row[last - 1].coordinate}"
            raise TableError(f"{extent}; delete the cells outside the table")
    return [(line, fields + ("",) * (width - len(fields))) for line, fields in rows]


def _written(sheet: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that the file has, whatever extent it states."""
    sheet.reset_dimensions()
    return (row for row in sheet.iter_rows() if row)


def _text(cell: Any) -> str:
    """Return the text of a cell; empty for an error."""
    if cell.value is None or cell.data_type == "e":
        return ""
    if isinstance(cell.value, float) and cell.value.is_integer():
        return str(int(cell.value))
    return tidy(str(cell.value))
