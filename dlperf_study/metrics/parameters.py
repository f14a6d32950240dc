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
        "unique, readable name",
        lambda run: run.configuration_id,
        tables=metric.ALL,
    ),
    metric.recorded(
        "repetition",
        "Repetition",
        "run number within its configuration, from 1",
        lambda run: run.repetition,
        tables=(*metric.RS, *metric.D, *metric.P),
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
    *_PARAMETERS,
    metric.recorded(
        "world_size",
        "Devices",
        "nodes × devices per node",
        lambda run: run.configuration.world_size,
        tables=metric.RCP,
        dtype=metric.Dtype.INTEGER,
    ),
    metric.recorded(
        "global_batch",
        "Global batch",
        "local batch size × data-parallel groups",
        lambda run: run.configuration.global_batch,
        tables=metric.RCP,
        unit="samples",
        dtype=metric.Dtype.INTEGER,
    ),
    _planned(
        "unsupported_reason",
        "Unsupported because",
        "why it cannot run here",
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
        "it is its own baseline",
        value=attrgetter("is_baseline"),
        dtype=metric.Dtype.FLAG,
    ),
    _planned(
        "reference_id",
        "Reference",
        "declared comparison baseline (reference)",
        value=attrgetter("reference_id"),
    ),
    _planned(
        "is_reference",
        "Is reference",
        "it is its own reference",
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
        "completed runs",
        metric.C,
        unit="runs",
        dtype=metric.Dtype.INTEGER,
        shown=metric.Shown.PLAIN,
    ),
    metric.whole_number(
        "runs_counted",
        "Runs counted",
        "runs in the statistics: undisturbed completed runs, or all completed runs if these are fewer than three",
        metric.C,
        unit="runs",
        shown=metric.Shown.PLAIN,
    ),
    metric.text(
        "problem",
        "Problem",
        "errors that make its numbers doubtful",
        metric.C,
        subject=PROGRAM,
        pages=metric.THROUGHPUT_PAGES,
    ),
    metric.Metric(
        "subject",
        "Subject",
        "affected column, file or window",
        metric.D,
        dtype=metric.Dtype.STRING,
    ),
    metric.text(
        "severity",
        "Severity",
        "error: missing or wrong number; warning: read with care; note: worth knowing",
        metric.D,
    ),
    metric.text("message", "Diagnostic", "measured values and possible causes", metric.D),
)
