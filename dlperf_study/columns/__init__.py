"""Every column of the dataset: its name, label, unit, type, definition and tables."""

from dlperf_study.columns import cpu_limit, ingested, measured, memory, published, resources, times, tuning
from dlperf_study.columns.column import (
    ALL,
    DATASET_TABLES,
    FLAG,
    FLOAT,
    INT,
    MAYBE_FLAG,
    MAYBE_INT,
    RC,
    RCP,
    RS,
    STRING,
    C,
    Column,
    D,
    Dtype,
    P,
    TableName,
)
from dlperf_study.study.configuration import PARAMETERS

__all__ = ["COLUMNS", "DATASET_TABLES", "PRODUCTS", "Column", "Dtype", "TableName", "columns_of"]

_IDENTITY = (
    Column("identity", "Configuration", "", STRING, "readable, unique name of the configuration", ALL),
    Column("repetition", "Repetition", "", MAYBE_INT, "which of the configuration's runs", (*RS, *D, *P)),
)

_DTYPES = {str: STRING, int: MAYBE_INT, float: FLOAT, bool: MAYBE_FLAG}
_DTYPES_ALWAYS_KNOWN = _DTYPES | {int: INT, bool: FLAG}


_PARAMETERS = [
    Column(
        entry.name,
        entry.label,
        entry.unit,
        (_DTYPES_ALWAYS_KNOWN if entry.always_known else _DTYPES)[entry.type],
        entry.meaning,
        RCP if entry.published else RC,
    )
    for entry in PARAMETERS.values()
]
_SIZES = (
    Column("world_size", "Devices", "", INT, "nodes × devices per node; one training process each", RCP),
    Column("global_batch", "Global batch", "samples", INT, "batch per device × devices", RCP),
)
_PLAN = (
    Column("unsupported_reason", "Unsupported because", "", STRING, "why it can't run here; missing if it can", C),
    Column("baseline_identity", "Baseline", "", STRING, "configuration its speedup is declared against", C),
    Column("is_baseline", "Is baseline", "", FLAG, "it is its own declared baseline", C),
    Column("reference_identity", "Reference", "", STRING, "configuration it is declared to be compared with", C),
    Column("is_reference", "Is reference", "", FLAG, "it is its own declared reference", C),
    Column("runs_planned", "Runs planned", "runs", INT, "repeats; 0 if unsupported", C),
    Column("runs_completed", "Runs completed", "runs", INT, "runs whose outcome is completed", C),
)

#: Every column by name, in the order of the tables.
COLUMNS = {
    column.name: column
    for column in (
        *published.CELL,
        *published.NUMBER,
        *_IDENTITY,
        *_PARAMETERS,
        *_SIZES,
        *measured.OUTCOME,
        *_PLAN,
        *measured.RATES,
        *measured.COMPARISON,
        *times.TIMES,
        *ingested.INGESTED,
        *memory.PEAKS,
        *memory.LARGEST_BATCH,
        *cpu_limit.CPU_LIMIT,
        *resources.RESOURCES,
        *measured.MODEL,
        *measured.PRECISION,
        *tuning.TUNING,
        *measured.ENVIRONMENT,
        *measured.STEPS,
        *measured.DIAGNOSTICS,
        *published.WHO,
        *published.COUNTERPARTS,
    )
}

#: Columns that are the product of two others, in the order in which they can be computed.
PRODUCTS = {"world_size": ("nodes", "devices_per_node"), "global_batch": ("batch_per_device", "world_size")}


def columns_of(table: TableName) -> tuple[Column, ...]:
    """Return the columns of a table, in order."""
    return tuple(column for column in COLUMNS.values() if table in column.tables)
