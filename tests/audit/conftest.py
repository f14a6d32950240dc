"""Tables that a test writes, as the audit reads them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dlperf_study.audit.reading.table_file import TablesOfFile, read_tables

ReadTable = Callable[..., TablesOfFile]


@pytest.fixture
def read_table(tmp_path) -> ReadTable:
    """Return a function that writes a table to a file, and reads it."""

    def read(content, table_format=None, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_tables(path, table_format)

    return read


@pytest.fixture
def workbook(tmp_path) -> Callable[..., Path]:
    """Return a function that writes a workbook of these sheets; further cells are on the first of them."""
    openpyxl = pytest.importorskip("openpyxl")

    def write(further_cells=(), **sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in sheets.items():
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(row)
        for place, value in further_cells:
            book.worksheets[0][place] = value
        book.save(tmp_path / "table.xlsx")
        return tmp_path / "table.xlsx"

    return write
