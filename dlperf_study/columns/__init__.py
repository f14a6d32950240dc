"""Every column of the dataset: its name, label, unit, type, definition and tables."""

from dlperf_study.columns import measured, planned, published
from dlperf_study.columns.column import DATASET_TABLES, Column, Dtype, Table

__all__ = ["COLUMNS", "DATASET_TABLES", "PRODUCTS", "Column", "Dtype", "Table", "columns_of"]

#: Every column by name, in the order of the tables.
COLUMNS = {
    column.name: column
    for column in (
        *published.CELL,
        *published.NUMBER,
        *planned.IDENTITY,
        *planned.PARAMETERS,
        *measured.OUTCOME,
        *planned.PLAN,
        *measured.RATES,
        *measured.COMPARISON,
        *measured.TIMES,
        *measured.INGESTED,
        *measured.MODEL,
        *measured.ENVIRONMENT,
        *measured.STEPS,
        *measured.DIAGNOSTICS,
        *published.WHO,
        *published.COUNTERPARTS,
    )
}

#: Columns that are the product of two others, in the order in which they can be computed.
PRODUCTS = {"world_size": ("nodes", "devices_per_node"), "global_batch": ("batch_per_device", "world_size")}


def columns_of(table: Table) -> tuple[Column, ...]:
    """Return the columns of a table, in order."""
    return tuple(column for column in COLUMNS.values() if table in column.tables)
