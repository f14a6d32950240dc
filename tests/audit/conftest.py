"""Tables that a test writes, as the audit reads them."""

from collections.abc import Callable

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
