"""Identity, parameters, sizes and diagnostics of a configuration."""

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dlperf_study.metrics.metric import ALL, RATE_PAGES, RC, RCP, RS, C, D, Dtype, Metric, P, Shown, Source, recorded
from dlperf_study.records.rank_agreement import PROGRAM
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.plan import Entry

if TYPE_CHECKING:
    import pandas as pd

_DTYPES = {str: Dtype.STRING, int: Dtype.OPTIONAL_INTEGER, float: Dtype.FLOAT, bool: Dtype.OPTIONAL_FLAG}
_DTYPES_ALWAYS_KNOWN = _DTYPES | {int: Dtype.INTEGER, bool: Dtype.FLAG}

_PARAMETERS = [
    Metric(
        entry.name,
        entry.label,
        entry.meaning,
        RCP if entry.published else RC,
        unit=entry.unit,
        dtype=(_DTYPES_ALWAYS_KNOWN if entry.always_known else _DTYPES)[entry.type],
    )
    for entry in PARAMETERS.values()
]


def _planned(
    name: str, label: str, definition: str, value: Callable[[Entry], Any], unit: str = "", dtype: Dtype = Dtype.STRING
) -> Metric:
    """Return the metric of what the plan says of a configuration."""
    return Metric(name, label, definition, C, unit, dtype, value, Source.ENTRY)


def varying(rows: "pd.DataFrame", names: Iterable[str]) -> list[str]:
    """Return the columns with several values; missing counts as one."""
    return [name for name in names if rows[name].nunique(dropna=False) > 1]


def list_settings(rows: "pd.DataFrame") -> list[str]:
    """Return the columns that are settings of a user's program."""
    names: dict[str, None] = {}
    for settings in filter(None, rows["settings"].dropna().unique()):
        names |= dict.fromkeys(json.loads(settings))
    return [name for name in names if name not in PARAMETERS]


METRICS = (
    recorded(
        "identity", "Configuration", "readable, unique name of the configuration", lambda run: run.identity, tables=ALL
    ),
    recorded(
        "repetition",
        "Repetition",
        "which of the configuration's runs",
        lambda run: run.repetition,
        tables=(*RS, *D, *P),
        dtype=Dtype.OPTIONAL_INTEGER,
    ),
    *_PARAMETERS,
    recorded(
        "world_size",
        "Devices",
        "nodes × devices per node; one training process each",
        lambda run: run.configuration.world_size,
        tables=RCP,
        dtype=Dtype.INTEGER,
    ),
    recorded(
        "global_batch",
        "Global batch",
        "batch per device × devices with samples of their own",
        lambda run: run.configuration.global_batch,
        tables=RCP,
        unit="samples",
        dtype=Dtype.INTEGER,
    ),
    _planned(
        "unsupported_reason",
        "Unsupported because",
        "why it can't run here; missing if it can",
        lambda entry: entry.unsupported,
    ),
    _planned(
        "baseline_identity",
        "Baseline",
        "configuration its speedup is declared against",
        lambda entry: entry.baseline_identity,
    ),
    _planned(
        "is_baseline",
        "Is baseline",
        "it is its own declared baseline",
        lambda entry: entry.is_baseline,
        dtype=Dtype.FLAG,
    ),
    _planned(
        "reference_identity",
        "Reference",
        "configuration it is declared to be compared with",
        lambda entry: entry.reference_identity,
    ),
    _planned(
        "is_reference",
        "Is reference",
        "it is its own declared reference",
        lambda entry: entry.is_reference,
        dtype=Dtype.FLAG,
    ),
    _planned(
        "runs_planned",
        "Runs planned",
        "repeats; 0 if unsupported",
        lambda entry: 0 if entry.unsupported else entry.configuration.repeats,
        unit="runs",
        dtype=Dtype.INTEGER,
    ),
    Metric(
        "runs_completed",
        "Runs completed",
        "runs whose outcome is completed",
        C,
        unit="runs",
        dtype=Dtype.INTEGER,
        shown=Shown.PLAIN,
    ),
    Metric(
        "runs_counted",
        "Runs counted",
        "completed runs that the numbers are of: those without background load or, if fewer than three have none, all",
        C,
        unit="runs",
        dtype=Dtype.OPTIONAL_INTEGER,
        shown=Shown.PLAIN,
    ),
    Metric(
        "problem",
        "Problem",
        "what makes a number of this configuration doubtful: errors among the diagnostics; missing without any",
        C,
        dtype=Dtype.STRING,
        subject=PROGRAM,
        pages=RATE_PAGES,
    ),
    Metric("subject", "Subject", "what the diagnostic is about: a column, a file or a window", D, dtype=Dtype.STRING),
    Metric(
        "severity",
        "Severity",
        "error: the number is missing or wrong; warning: read with care; note: worth knowing",
        D,
        dtype=Dtype.STRING,
    ),
    Metric("message", "Diagnostic", "what was measured, and what may explain it", D, dtype=Dtype.STRING),
)
