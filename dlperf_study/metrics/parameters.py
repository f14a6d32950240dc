"""Identity, parameters, sizes and diagnostics of a configuration."""

import json
from collections.abc import Iterable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from dlperf_study.metrics import metric
from dlperf_study.records.rank_agreement import PROGRAM
from dlperf_study.study.configuration import PARAMETERS

if TYPE_CHECKING:
    import pandas as pd

_DTYPES = {
    str: metric.Dtype.STRING,
    int: metric.Dtype.OPTIONAL_INTEGER,
    float: metric.Dtype.FLOAT,
    bool: metric.Dtype.OPTIONAL_FLAG,
}
_DTYPES_ALWAYS_KNOWN = _DTYPES | {int: metric.Dtype.INTEGER, bool: metric.Dtype.FLAG}

_PARAMETERS = [
    metric.Metric(
        entry.name,
        entry.label,
        entry.meaning,
        metric.RCP if entry.published else metric.RC,
        unit=entry.unit,
        dtype=(_DTYPES_ALWAYS_KNOWN if entry.always_known else _DTYPES)[entry.type],
    )
    for entry in PARAMETERS.values()
]


#: What the plan says of a configuration.
_planned = partial(metric.text, tables=metric.C, source=metric.Source.ENTRY)


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
    metric.recorded(
        "configuration_id",
        "Configuration",
        "readable, unique name of the configuration",
        lambda run: run.configuration_id,
        tables=metric.ALL,
    ),
    metric.recorded(
        "repetition",
        "Repetition",
        "number of the run of its configuration",
        lambda run: run.repetition,
        tables=(*metric.RS, *metric.D, *metric.P),
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
    *_PARAMETERS,
    metric.recorded(
        "world_size",
        "Devices",
        "nodes × devices per node; one training process each",
        lambda run: run.configuration.world_size,
        tables=metric.RCP,
        dtype=metric.Dtype.INTEGER,
    ),
    metric.recorded(
        "global_batch",
        "Global batch",
        "batch per device × data-parallel ranks",
        lambda run: run.configuration.global_batch,
        tables=metric.RCP,
        unit="samples",
        dtype=metric.Dtype.INTEGER,
    ),
    _planned(
        "unsupported_reason",
        "Unsupported because",
        "why the configuration is not supported here; else missing",
        value=attrgetter("unsupported"),
    ),
    _planned(
        "baseline_id",
        "Baseline",
        "declared baseline of the speedup",
        value=attrgetter("baseline_id"),
    ),
    _planned(
        "is_baseline",
        "Is baseline",
        "whether the configuration is its own declared baseline",
        value=attrgetter("is_baseline"),
        dtype=metric.Dtype.FLAG,
    ),
    _planned(
        "reference_id",
        "Reference",
        "declared reference of the comparison",
        value=attrgetter("reference_id"),
    ),
    _planned(
        "is_reference",
        "Is reference",
        "whether the configuration is its own declared reference",
        value=attrgetter("is_reference"),
        dtype=metric.Dtype.FLAG,
    ),
    _planned(
        "runs_planned",
        "Runs planned",
        "planned runs; 0 if unsupported",
        value=lambda entry: 0 if entry.unsupported else entry.configuration.repetitions,
        unit="runs",
        dtype=metric.Dtype.INTEGER,
    ),
    metric.Metric(
        "runs_completed",
        "Runs completed",
        "runs whose status is completed",
        metric.C,
        unit="runs",
        dtype=metric.Dtype.INTEGER,
        shown=metric.Shown.PLAIN,
    ),
    metric.whole_number(
        "runs_counted",
        "Runs counted",
        "completed runs that the numbers use: runs without background load, or all completed runs if "
        "fewer than three are without",
        metric.C,
        unit="runs",
        shown=metric.Shown.PLAIN,
    ),
    metric.text(
        "problem",
        "Problem",
        "errors among the diagnostics, which make a number of this configuration doubtful; missing without errors",
        metric.C,
        subject=PROGRAM,
        pages=metric.THROUGHPUT_PAGES,
    ),
    metric.Metric(
        "subject",
        "Subject",
        "subject of the diagnostic: a column, a file or a window",
        metric.D,
        dtype=metric.Dtype.STRING,
    ),
    metric.text(
        "severity",
        "Severity",
        "error: the number is missing or wrong; warning: read with care; note: worth knowing",
        metric.D,
    ),
    metric.text("message", "Diagnostic", "measured values and possible explanations", metric.D),
)
