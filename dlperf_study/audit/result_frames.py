"""Frames of published numbers, studies and files as audited cells.

A *long* frame has one row per number, with its ``metric`` and ``value``. A *wide* frame has one row per configuration
and a column per metric.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from dlperf_study.audit import quantities
from dlperf_study.audit.published import load
from dlperf_study.audit.published.source import METRICS, derive_sizes
from dlperf_study.audit.result_cell import PrintedNumber, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.core.errors import TableError
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS, PRODUCTS
from dlperf_study.metrics.run_status import select_counted
from dlperf_study.metrics.scaling import curve_numbers, series_factors

VALUE, METRIC = "value", "metric"
#: Metrics that are conditions where they have a column of their own.
_COUNTS = ("batch_per_device", "batches_per_task", "samples_per_task")
#: The columns of a wide frame that hold measurements.
METRIC_COLUMNS = [name for name in METRICS if name not in _COUNTS]
METRIC_COLUMNS += ["relative_throughput", *quantities.EVERYDAY_METRICS]
_BOUNDS = ("low", "high")
_MEASURED = {*METRIC_COLUMNS, *map("{}_low".format, METRIC_COLUMNS), *map("{}_high".format, METRIC_COLUMNS)}
_BASELINES = dict.fromkeys(("speedup", "efficiency"), "baseline_id")
_BASELINES["relative_throughput"] = "reference_id"
_OUR_THROUGHPUTS = {quantities.THROUGHPUT: "throughput", quantities.TOKENS: "token_throughput"}
_OUR_TOKENS = {
    "token_throughput": quantities.TOKENS,
    "token_throughput_low": f"{quantities.TOKENS}_low",
    "token_throughput_high": f"{quantities.TOKENS}_high",
}
#: Columns that say where a number is printed or what it is, and are no conditions of the measurement.
_NO_CONDITIONS = {
    *quantities.SIZES,
    *METRIC_COLUMNS,
    quantities.PARAMETERS_STEP,
    quantities.UNCLEAR_BATCH,
    quantities.STEP_UNIT,
    "repetition",
}
_NO_CONDITIONS |= {"cell", "row", "column", "printed", "before", "after", "value", "unit", "resolution", "scope"}
_NO_CONDITIONS |= {"estimator", "repetitions", "role", "runs", "runs_of", "baseline", "low", "high", "metric", "series"}
_NO_CONDITIONS |= {"configuration_id", "measured_rounds", "runs_in_no_round", "tokens_per_sample", "tokens_per_step"}
_OUR_CONDITIONS = {"source", "table", "library", "library_version", "cpu_model", "communication", "log_format"}
_OUR_CONDITIONS |= {*quantities.CONFIGURATION, "flops_per_sample", "device_peak_flops"}


def read_published_results(names: Iterable[str] | None = None) -> Results:
    """Return the numbers of some or all published sources."""
    return read_results_frame(load(names))


def read_dataset_results(dataset: Dataset) -> Results:
    """Return the configurations and runs of a study, unrounded."""
    rows = dataset.configurations
    series = curve_numbers(rows, series_factors(rows, dataset.plan.scaling))
    peaks = dataset.runs.groupby("configuration_id")["device_peak_flops"].first()
    runs_counted = select_counted(dataset.runs)
    rounds = runs_counted.groupby("configuration_id")["round"].agg(
        lambda rounds: ", ".join(map(str, sorted(rounds.dropna())))
    )
    # Logs have no rounds: none of their runs stands apart.
    is_alone = runs_counted["round"].isna() & (not dataset.plan.ingested_from)
    configurations = rows.assign(
        series="series " + (series + 1).astype(str),
        device_peak_flops=rows["configuration_id"].map(peaks),
        # The numbers of devices and the global batches always agree with their factors.
        inferred=", ".join(PRODUCTS),
        measured_rounds=rows["configuration_id"].map(rounds),
        runs_in_no_round=rows["configuration_id"].map(is_alone.groupby(runs_counted["configuration_id"]).sum()),
    ).rename(columns=_OUR_TOKENS)
    summaries = long_frame(configurations, dataset.plan.study)
    is_throughput = summaries[METRIC].isin(_OUR_THROUGHPUTS)
    summaries["estimator"] = pd.Series(quantities.GEOMETRIC_MEAN, summaries.index).where(is_throughput)
    frames = [summaries]
    for metric, column in _OUR_THROUGHPUTS.items():
        runs = runs_counted[["configuration_id", "repetition", "order", "round", column]].dropna(subset=column)
        throughputs = summaries[summaries[METRIC] == metric].drop(columns=[VALUE, *_BOUNDS], errors="ignore")
        runs = runs.rename(columns={column: VALUE}).merge(throughputs, on="configuration_id")
        key = runs["cell"] + "/" + runs["repetition"].astype(str)
        frames.append(runs.assign(estimator="run", runs_of=runs["cell"], cell=key, looks=dataset.looks))
    return read_results_frame(pd.concat(frames, ignore_index=True))


def long_frame(wide: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return a wide frame as a long one.

    ``configuration_id`` names each row, else its position does. Columns ``x_low`` and ``x_high`` hold the interval of
    ``x``; ``baseline_id`` and ``reference_id`` name the baselines of ratios. Rows with one identity and a
    ``repetition`` are single runs.
    """
    cells: list[dict[str, Any]] = []
    has_runs = "configuration_id" in wide and "repetition" in wide and bool(wide["configuration_id"].duplicated().any())
    for position, fields in enumerate(wide.to_dict("records"), 1):
        row = _drop_missing(fields)
        label = str(row.get("configuration_id", f"row {position}"))
        conditions = {name: value for name, value in row.items() if name not in _MEASURED}
        if has_runs:
            label = f"{label}/{row.get('repetition', position)}"
            conditions["estimator"] = "run"
        for metric in METRIC_COLUMNS:
            if metric not in row:
                continue
            cell = {**conditions, "source": source, "cell": f"{source}/{label}/{metric}", "row": label}
            cell |= {"column": metric, METRIC: metric, VALUE: row[metric]}
            for bound in _BOUNDS:
                if f"{metric}_{bound}" in row:
                    cell[bound] = row[f"{metric}_{bound}"]
            baseline_id = row.get(_BASELINES.get(metric, ""))
            if baseline_id:
                compared = (*quantities.THROUGHPUTS, *quantities.TIMES)
                throughput = next((name for name in compared if name in row), quantities.THROUGHPUT)
                cell["baseline"] = f"{source}/{baseline_id}/{throughput}"
            cells.append(cell)
    columns = None if cells else [*dict.fromkeys([*wide.columns, "cell", METRIC, VALUE])]
    return pd.DataFrame(cells, columns=columns)


def read_results_frame(frame: pd.DataFrame) -> Results:
    """Return the cells of a long frame; values may be missing."""
    for name in (METRIC, VALUE):
        if name not in frame:
            raise TableError(f"column {name} is missing; the columns are {', '.join(map(str, frame.columns))}")
    rows = [derive_sizes(_drop_missing(row)) for row in frame.to_dict("records")]
    conditions = [name for name in map(str, frame.columns) if _is_condition(name, rows)]
    cells = []
    for position, row in enumerate(rows, 1):
        if isinstance(row.get(VALUE), float | int):
            cells.append(_cell(position, row, conditions))
    if repeated := first_repeated([cell.key for cell in cells]):
        raise TableError(f"column cell has {repeated!r} twice; make its names unique")
    return Results(tuple(cells))


def first_repeated(names: Iterable[str]) -> str:
    """Return the first repeated name, or empty."""
    return next((name for name, count in Counter(names).items() if count > 1), "")


def _drop_missing(row: Mapping[Any, Any]) -> dict[str, Any]:
    present = {}
    for name, value in row.items():
        # A test of pandas for each text of a long table takes seconds.
        if value != "" and (isinstance(value, str) or not pd.isna(value)):
            present[str(name)] = value
    return present


def _is_condition(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    if name in _NO_CONDITIONS:
        return False
    if name == "batch_per_device":
        # Under strong scaling all rows have one global batch, and the number of devices determines the batch of each.
        global_batches = {row.get("global_batch") for row in rows}
        return len(global_batches) != 1 or None in global_batches
    if name in COLUMNS:
        return name in _OUR_CONDITIONS
    repeats_devices = all(str(row.get(name)) == f"{row.get('world_size', math.nan):g}" for row in rows)
    return not repeats_devices


def _cell(position: int, row: dict[str, Any], conditions: list[str]) -> ResultCell:
    value = float(row[VALUE])
    printed = f"{value:.6g}"
    if "printed" in row:
        printed = row["printed"]
    if "printed" in row and str(row.get("after", "")).lstrip().startswith("%"):
        printed += "%"
    # Without a series, all conditions together tell one scaling curve from the others.
    series = row.get("series", ", ".join(f"{name} {row[name]}" for name in conditions if name in row))
    return ResultCell(
        key=str(row.get("cell", f"row {position}")),
        metric=str(row[METRIC]),
        value=value,
        text=printed,
        printed=PrintedNumber.from_value(value, row.get("resolution")),
        series=str(series),
        world_size=int(row["world_size"]) if "world_size" in row else None,
        facts=row,
        extra_conditions=tuple(name for name in conditions if name not in COLUMNS),
    )
