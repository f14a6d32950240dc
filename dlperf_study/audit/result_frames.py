"""From a frame to the cells that are audited.

A *long* frame has one row a number, with its ``metric`` and ``value``, as ``published.load()`` returns it. A *wide* one
has one row a configuration and a column for each metric, as the table of configurations of a study.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dlperf_study.analysis.scaling import series_factors
from dlperf_study.audit.result_cell import CONFIGURATION, SIZES, THROUGHPUT, Printed, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.columns import COLUMNS, PRODUCTS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.errors import TableError
from dlperf_study.published import load
from dlperf_study.published.source import METRICS
from dlperf_study.published.source_lines import with_derived_sizes
from dlperf_study.study.job import Outcome

#: What a frame must tell of each number.
VALUE, METRIC = "value", "metric"
#: Metrics that are conditions where they have a column of their own.
_COUNTS = ("batch_per_device", "batches_per_task", "samples_per_task")
#: The columns of a wide frame that hold what was measured.
METRIC_COLUMNS = (*(name for name in METRICS if name not in _COUNTS), "relative_throughput")
#: The ends of an interval; its columns are named for it and for them.
_ENDS = ("low", "high")
_MEASURED = {*METRIC_COLUMNS, *(f"{metric}_{end}" for metric in METRIC_COLUMNS for end in _ENDS)}
#: What a ratio is a ratio to, in a wide frame: the column with the identity of its partner.
_PARTNERS = {
    "speedup": "baseline_identity",
    "efficiency": "baseline_identity",
    "relative_throughput": "reference_identity",
}
#: Columns that say where a number stands or what it is, not what was measured: they tell no series apart.
_NO_CONDITIONS = {
    *("cell", "row", "column", "printed", "before", "after", "value", "unit", "resolution", "scope", "estimator"),
    *("repetition", "repeats", "role", "runs", "runs_of", "baseline", "low", "high", "metric", "series", "identity"),
    *(*SIZES, *METRIC_COLUMNS),
}
#: Columns of ours that tell series apart besides the parameters of a configuration.
_TELLING = (
    *("source", "table", "library", "library_version", "cpu_model", "exchange", "log_format"),
    *("flops_per_sample", "device_peak_flops"),
)


def results_of_frame(frame: pd.DataFrame) -> Results:
    """Return the cells of a long frame; a row whose value is missing was printed without a number.

    Raises:
        TableError: a column is missing, or a key stands there twice.

    """
    for name in (METRIC, VALUE):
        if name not in frame:
            raise TableError(f"column {name} is missing; the columns are {', '.join(map(str, frame.columns))}")
    rows = [with_derived_sizes(_present(row)) for row in frame.to_dict("records")]
    numbers = [(position, row) for position, row in enumerate(rows, 1) if isinstance(row.get(VALUE), float | int)]
    conditions = [name for name in map(str, frame.columns) if _is_condition(name, rows)]
    results = Results(tuple(_cell(position, row, conditions) for position, row in numbers))
    if len(results.by_key) < len(results.cells):
        raise TableError("column cell has a key twice, and no diagnostic could say which cell it is about")
    return results


def _is_condition(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a column tells series apart; most of ours, as what else was measured of a run, do not."""
    if name == "batch_per_device" and _is_strong_scaling(rows):
        return False
    if name in COLUMNS:
        return name in (*CONFIGURATION, *_TELLING) and name not in _NO_CONDITIONS
    return name not in _NO_CONDITIONS and not _counts_devices(name, rows)


def _is_strong_scaling(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether all rows share one global batch: its shares follow from the devices, and tell no series apart."""
    return len({row.get("global_batch") for row in rows}) == 1 and "global_batch" in rows[0]


def _counts_devices(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a column repeats the number of devices in every row, by a name of its own as ``GPUs``."""
    return all(str(row.get(name)) == f"{row.get('world_size', math.nan):g}" for row in rows)


def long_frame(wide: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return a wide frame as a long one; each row is named by its ``identity``, or by its position.

    A column ``x_low`` or ``x_high`` holds the interval of ``x``; ``baseline_identity`` and ``reference_identity``
    name the rows that the ratios of a row are relative to.
    """
    rows = (_present(row) | {"source": source} for row in wide.to_dict("records"))
    cells = [cell for position, row in enumerate(rows, 1) for cell in _cells_of_row(position, row)]
    return pd.DataFrame(cells, columns=None if cells else [*dict.fromkeys([*wide.columns, "cell", METRIC, VALUE])])


def _cells_of_row(position: int, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    label = str(row.get("identity", f"row {position}"))
    conditions = {name: value for name, value in row.items() if name not in _MEASURED}
    for metric in METRIC_COLUMNS:
        if metric in row:
            ends = {end: row[f"{metric}_{end}"] for end in _ENDS if f"{metric}_{end}" in row}
            partner = row.get(_PARTNERS.get(metric, ""))
            baseline = {"baseline": _key(row["source"], str(partner), "throughput")} if partner else {}
            cell = {"cell": _key(row["source"], label, metric), "row": label, "column": metric}
            yield {**conditions, **cell, METRIC: metric, VALUE: row[metric], **ends, **baseline}


def _key(source: str, label: str, metric: str) -> str:
    return f"{source}/{label}/{metric}"


def _cell(position: int, row: dict[str, Any], conditions: list[str]) -> ResultCell:
    value, resolution = float(row[VALUE]), row.get("resolution")
    return ResultCell(
        key=str(row.get("cell", f"row {position}")),
        metric=str(row[METRIC]),
        value=value,
        text=_text(row, value),
        printed=Printed.of(value, resolution),
        series=str(row["series"]) if "series" in row else _series(row, conditions),
        world_size=int(row["world_size"]) if "world_size" in row else None,
        facts=row,
        own_conditions=tuple(name for name in conditions if name not in COLUMNS),
    )


def _text(row: Mapping[str, Any], value: float) -> str:
    """Return a number as a reader saw it."""
    percent = "%" if str(row.get("after", "")).lstrip().startswith("%") else ""
    return f"{row['printed']}{percent}" if "printed" in row else f"{value:.6g}"


def _series(row: Mapping[str, Any], conditions: list[str]) -> str:
    """Return what tells a line of points from another where the table has no word for it: all its conditions."""
    return ", ".join(f"{name} {row[name]}" for name in conditions if name in row)


def _present(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in row.items() if not pd.isna(value) and value != ""}


# The published results as the checks see them.


def results_of_sources(names: Iterable[str] | None = None) -> Results:
    """Return the numbers of some published sources, or of all; raises PublishedError for one that is not there."""
    return results_of_frame(load(names))


# The results of a study of our own as the checks see them.


def results_of_dataset(dataset: Dataset) -> Results:
    """Return the configurations of a study, and the runs they summarise; none of these numbers is rounded."""
    summaries = long_frame(_configurations(dataset), dataset.plan.study)
    return results_of_frame(pd.concat([summaries, _runs(dataset, summaries)], ignore_index=True))


def _configurations(dataset: Dataset) -> pd.DataFrame:
    """Return the table of configurations with the series of each, the peak of its devices, and what is no measurement.

    Devices and global batch were reckoned from the parameters: held against these they would always be right.
    """
    rows = dataset.configurations
    lines = rows.groupby(series_factors(rows, dataset.plan.scaling), sort=False, dropna=False).ngroup()
    peaks = dataset.runs.groupby("identity")["device_peak_flops"].first()
    return rows.assign(
        series="series " + (lines + 1).astype(str),
        device_peak_flops=rows["identity"].map(peaks),
        inferred=", ".join(PRODUCTS),
    )


def _runs(dataset: Dataset, summaries: pd.DataFrame) -> pd.DataFrame:
    """Return the throughput of each completed run, with all that is said of its configuration."""
    completed = dataset.runs[dataset.runs["outcome"] == Outcome.COMPLETED]
    runs = completed[["identity", "repetition", THROUGHPUT]].rename(columns={THROUGHPUT: VALUE})
    rates = summaries[summaries[METRIC] == THROUGHPUT].drop(columns=[VALUE, "low", "high"], errors="ignore")
    joined = runs.merge(rates, on="identity")
    key = joined["cell"] + "/" + joined["repetition"].astype(str)
    return joined.assign(estimator="run", runs_of=joined["cell"], cell=key)
