"""The table of configurations: one row per entry of the plan, summarised over its completed runs."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.analysis.comparison import (
    Ratio,
    Throughputs,
    differences,
    explaining_part,
    throughput_ratio,
    verdict,
)
from dlperf_study.analysis.scaling import scaling_columns
from dlperf_study.analysis.statistics import coverage, interval_columns, median_interval
from dlperf_study.arrays import Floats
from dlperf_study.columns import Table
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.errors import BaselineError
from dlperf_study.plan.plan import Entry, Plan
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import Outcome

#: Columns of the runs whose median over the completed runs is a column of the same name in this table.
MEDIANS = [
    *("throughput", "mean_of_rates", "fixed_window_throughput", "fixed_window_mean_of_rates"),
    *("step_seconds", "computation_seconds", "exposed_seconds", "exchange_seconds", "overlap", "bus_bandwidth"),
    *("load_balance", "mfu", "parameters", "gradient_bytes", "flops_per_sample"),
]
#: Medians that are counts: rounded to integers, also between two runs that disagree.
COUNTS = {"parameters": 0, "gradient_bytes": 0}
#: The column of the ratio to a baseline or reference.
RATIOS: dict[Denominator, str] = {"baseline": "speedup", "reference": "relative_throughput"}


def configurations_table(
    plan: Plan, runs: pd.DataFrame, traces: Mapping[str, dict[str, float]], uneven: Collection[str | None] = ()
) -> tuple[pd.DataFrame, list[Diagnostic]]:
    """Return the table, and a diagnostic for every ratio without a measured baseline or reference.

    ``traces`` has the columns of the traced runs, by identity; ``uneven`` the identities of configurations of which a
    rank computed much slower than the others.
    """
    completed = runs[runs["outcome"] == Outcome.COMPLETED]
    medians, throughputs = _medians(completed), throughputs_of(completed)
    speedups, missing_baselines = _ratios(plan.entries, "baseline", throughputs)
    relative_throughputs, missing_references = _ratios(plan.entries, "reference", throughputs)
    devices = {entry.configuration.identity: entry.configuration.world_size for entry in plan.entries}
    rows = []
    for entry in plan.entries:
        identity = entry.configuration.identity
        row = _planned_columns(entry)
        row |= _measured_columns(medians.get(identity, {}), throughputs.get(identity, np.empty(0)))
        if identity in speedups:
            speedup, baseline_devices = speedups[identity], devices[entry.baseline_identity]
            row["baseline_throughput"] = speedup.denominator_throughput
            row |= interval_columns("baseline", speedup.denominator_interval)
            row |= scaling_columns(speedup.value, speedup.interval, devices[identity], baseline_devices)
        if identity in relative_throughputs:
            row |= _comparison_columns(entry, relative_throughputs[identity], completed, uneven)
        rows.append(row | traces.get(identity, {}))
    return frame_of_rows(Table.CONFIGURATIONS, rows), [*missing_baselines, *missing_references]


def throughputs_of(completed: pd.DataFrame) -> Throughputs:
    """Return the throughputs of the completed runs, in samples/s, by identity."""
    groups = completed.groupby("identity")["throughput"]
    return {str(identity): rates.to_numpy(np.float64) for identity, rates in groups}


def _medians(completed: pd.DataFrame) -> dict[Any, dict[Any, Any]]:
    """Return the medians of the runs by identity; of the overlap only if every run with an exchange window has one.

    Runs without an overlap are those that hid the most, so a median of the others would be too low.
    """
    runs = completed.groupby("identity")
    medians, counts = runs[MEDIANS].median().round(COUNTS), runs[["overlap", "exchange_seconds"]].count()
    medians["overlap"] = medians["overlap"].where(counts["overlap"] == counts["exchange_seconds"])
    by_identity: dict[Any, dict[Any, Any]] = medians.to_dict("index")
    return by_identity


def _ratios(
    entries: Iterable[Entry], role: Denominator, throughputs: Throughputs
) -> tuple[dict[str, Ratio], list[Diagnostic]]:
    """Return the ratios of the measured entries by identity, and a diagnostic where the denominator has no runs."""
    ratios, diagnostics = {}, []
    for entry in entries:
        identity = entry.configuration.identity
        if identity not in throughputs or entry.denominator(role) is None:
            continue
        try:
            ratios[identity] = throughput_ratio(entry, role, throughputs)
        except BaselineError as error:
            diagnostics.append(Diagnostic(RATIOS[role], str(error), Severity.ERROR, identity))
    return ratios, diagnostics


def _planned_columns(entry: Entry) -> dict[str, Any]:
    configuration = entry.configuration
    return {
        "identity": configuration.identity,
        **entry.parameters,
        "world_size": configuration.world_size,
        "global_batch": configuration.global_batch,
        "unsupported_reason": entry.unsupported,
        "baseline_identity": entry.baseline_identity,
        "is_baseline": entry.is_baseline,
        "reference_identity": entry.reference_identity,
        "is_reference": entry.is_reference,
        "runs_planned": 0 if entry.unsupported else configuration.repeats,
    }


def _measured_columns(medians: Mapping[Any, Any], rates: Floats) -> dict[str, Any]:
    computation, exposed = medians.get("computation_seconds"), medians.get("exposed_seconds")
    return {
        **medians,
        "computation_to_communication": computation / exposed if computation and exposed else None,
        "runs_completed": rates.size,
        "interval_coverage": coverage(rates.size),
        **interval_columns("throughput", median_interval(rates)),
    }


def _comparison_columns(
    entry: Entry, ratio: Ratio, completed: pd.DataFrame, uneven: Collection[str | None]
) -> dict[str, Any]:
    identity, reference_identity = entry.configuration.identity, str(entry.reference_identity)
    runs = completed[completed["identity"] == identity]
    parts = differences(runs, completed[completed["identity"] == reference_identity])
    decided = None if entry.is_reference else verdict(ratio.interval)
    is_uneven = identity in uneven or reference_identity in uneven
    columns = {
        "reference_throughput": ratio.denominator_throughput,
        "relative_throughput": ratio.value,
        **interval_columns("relative_throughput", ratio.interval),
        "verdict": decided,
        "difference_lies_in": explaining_part(decided, parts, is_uneven),
    }
    for part, difference in parts.items():
        name = part.replace("_seconds", "_difference_seconds")
        columns[name] = difference.seconds
        columns |= interval_columns(name, difference.interval)
    return columns
