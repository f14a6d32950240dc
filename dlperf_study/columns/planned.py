"""Columns on what was planned: the parameters of a configuration, its baseline and its reference."""

from dlperf_study.columns.column import (
    ALL,
    FLAG,
    FLOAT,
    INT,
    MAYBE_FLAG,
    MAYBE_INT,
    PUBLISHED,
    RC,
    RCP,
    RS,
    STRING,
    C,
    Column,
    P,
)
from dlperf_study.study import configuration
from dlperf_study.study.parameter import Parameter

IDENTITY = (
    Column("identity", "Configuration", "", STRING, "readable, unique name of the configuration", ALL),
    Column("repetition", "Repetition", "", MAYBE_INT, "which of the configuration's runs", (*RS, *P, *PUBLISHED)),
)

_DTYPES = {str: STRING, int: MAYBE_INT, float: FLOAT, bool: MAYBE_FLAG}
_DTYPES_ALWAYS_KNOWN = _DTYPES | {int: INT, bool: FLAG}


def _column(parameter: Parameter) -> Column:
    """Return the column of a declared parameter."""
    dtypes = _DTYPES_ALWAYS_KNOWN if parameter.always_known else _DTYPES
    tables = RCP if parameter.published else RC
    return Column(parameter.name, parameter.label, parameter.unit, dtypes[parameter.type], parameter.meaning, tables)


PARAMETERS = (
    *(_column(parameter) for parameter in configuration.PARAMETERS.values()),
    Column("world_size", "Devices", "", INT, "nodes × devices per node; one training process each", RCP),
    Column("global_batch", "Global batch", "samples", INT, "batch per device × devices", RCP),
)

PLAN = (
    Column("unsupported_reason", "Unsupported because", "", STRING, "why it can't run here; missing if it can", C),
    Column("baseline_identity", "Baseline", "", STRING, "configuration its speedup is declared against", C),
    Column("is_baseline", "Is baseline", "", FLAG, "it is its own declared baseline", C),
    Column("reference_identity", "Reference", "", STRING, "configuration it is declared to be compared with", C),
    Column("is_reference", "Is reference", "", FLAG, "it is its own declared reference", C),
    Column("runs_planned", "Runs planned", "runs", INT, "repeats; 0 if unsupported", C),
    Column("runs_completed", "Runs completed", "runs", INT, "runs whose outcome is completed", C),
)
