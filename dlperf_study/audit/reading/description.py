"""What is said about a table before it is audited: how each column was read, and which numbers are not used."""

from collections.abc import Iterator, Sequence
from typing import Any

from dlperf_study.audit.reading.column_names import Use
from dlperf_study.audit.reading.column_readings import ColumnReading
from dlperf_study.audit.results import grouped
from dlperf_study.audit.table_file import TablesOfFile
from dlperf_study.terminal import text_table
from dlperf_study.wording import first_of

#: How many tables with the same column are named at most.
_MOST_TABLES = 3
_HEADINGS = ("column", "read as", "unit", "scope", "tables")


def describe_columns(tables: TablesOfFile) -> str:
    """Return a line for each column, and a warning for all numbers that no check uses; columns that are alike share."""
    rows = []
    for columns in grouped(tables.columns, lambda column: (column.header, column.meaning)).values():
        meaning = columns[0].meaning
        rows.append((columns[0].header, read_as(columns[0]), meaning.unit, meaning.scope, _tables_of(columns)))
    has_tables = len({column.table for column in tables.columns}) > 1
    shown = rows if has_tables else [row[:-1] for row in rows]
    paragraphs = [text_table(_HEADINGS if has_tables else _HEADINGS[:-1], shown)] if rows else []
    warnings = "\n".join(f"warning: {warning}" for warning in reading_warnings(tables))
    return "\n\n".join(filter(None, [*paragraphs, warnings]))


def reading_warnings(tables: TablesOfFile) -> Iterator[str]:
    """Yield which columns hold numbers that no check uses, and which tables have no results."""
    unused = [column for column in tables.columns if column.unused_numbers]
    for reason, columns in grouped(unused, lambda column: column.unused_numbers).items():
        headers = ", ".join(dict.fromkeys(column.header for column in columns))
        yield f"numbers that are not checked: {headers}: {reason}"
    if tables.tables_without_results:
        yield f"no column of results: {'; '.join(tables.tables_without_results)}"
    if tables.uncompared:
        yield f"no number depends on another one, and none can be checked: {'; '.join(tables.uncompared)}"


def columns_content(tables: TablesOfFile) -> dict[str, Any]:
    """Return how each column of each table was read, and the warnings, for JSON."""
    columns = []
    for column in tables.columns:
        meaning = column.meaning
        declared = {"unit": meaning.unit, "scope": meaning.scope, "why_not_checked": column.unused_numbers}
        columns.append({"table": column.table, "column": column.header, "read_as": read_as(column), **declared})
    return {"columns": columns, "warnings": list(reading_warnings(tables))}


def read_as(column: ColumnReading) -> str:
    """Return what a column is read as, in words."""
    meaning = column.meaning
    if meaning.use is Use.METRIC:
        return f"{meaning.name} ({meaning.label})" if meaning.label else meaning.name
    if meaning.use is Use.CONDITION:
        is_own = meaning.name in (column.header, "parallel", "micro batch") and not column.is_canonical
        return "condition" if is_own else meaning.name
    if meaning.use is Use.NONE:
        return str(meaning.use)
    if meaning.use is Use.BASELINE:
        return f"{meaning.name} of the baseline"
    return f"{meaning.name} of the runs" if meaning.use is Use.SUMMARY else "one run"


def _tables_of(columns: Sequence[ColumnReading]) -> str:
    names = list(dict.fromkeys(column.table.partition(" (")[0].removeprefix("table ") for column in columns))
    return first_of(names, _MOST_TABLES, ", ")
