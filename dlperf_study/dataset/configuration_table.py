"""The table of configurations: one row per entry of the plan, summarised over its completed runs."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.analysis.comparison import Ratio, Throughputs, differences, explaining_part, throughput_ratio, verdict
from dlperf_study.analysis.scaling import scaling_columns
from dlperf_study.analysis.statistics import coverage, interval_columns, median_interval
from dlperf_study.columns import Table
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.errors import BaselineError
from dlperf_study.plan.plan import Entry, Plan
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import Outcome

#: Columns of the runs whose median over the completed runs stands in this table under the same name.
MEDIANS = [
    "throughput",
    "mean_of_rates",
    "fixed_window_throughput",
    "fixed_window_mean_of_rates",
    "step_seconds",
    "computation_seconds",
    "exposed_seconds",
    "exchange_seconds",
    "overlap",
    "bus_bandwidth",
    "load_balance",
    "mfu",
    "parameters",
    "gradient_bytes",
    "flops_per_sample",
]
#: Those that count something: whole numbers even between two runs that disagree.
COUNTS = {"parameters": 0, "gradient_bytes": 0}
#: The column of the ratio to a partner.
RATIOS: dict[Denominator, str] = {"baseline": "speedup", "reference": "relative_throughput"}


def configurations_table(
    plan: Plan, runs: pd.DataFrame, traces: Mapping[str, dict[str, float]], uneven: Collection[str | None] = ()
) -> tuple[pd.DataFrame, list[Diagnostic]]:
    """Return the table, and a diagnostic for every ratio that lacks its baseline or its reference.

    ``traces`` holds the columns that a traced run adds, by identity; ``uneven`` the identities of which a rank
    computed much slower than the others.
    """
    completed = runs[runs["outcome"] == Outcome.COMPLETED]
    medians = _medians(completed)
    throughputs = throughputs_of(completed)
    speedups, lacking_baseline = _ratios(plan.entries, "baseline", throughputs)
    ratios, lacking_reference = _ratios(plan.entries, "reference", throughputs)
    devices = {entry.configuration.identity: entry.configuration.world_size for entry in plan.entries}
    rows = [
        _asked(entry)
        | _summary(medians.get(identity, {}))
        | _throughput(throughputs.get(identity, np.empty(0)))
        | (_scaling(entry, speedups[identity], devices) if identity in speedups else {})
        | (_comparison(entry, ratios[identity], completed, uneven) if identity in ratios else {})
        | traces.get(identity, {})
        for entry in plan.entries
        for identity in [entry.configuration.identity]
    ]
    return frame_of_rows(Table.CONFIGURATIONS, rows), [*lacking_baseline, *lacking_reference]


def _medians(completed: pd.DataFrame) -> dict[Any, dict[Any, Any]]:
    """Return the medians of the runs by identity; of the overlap only if every run that exchanged alone has one.

    Runs without an overlap are those that hid the most, so a median of the others would be too low.
    """
    runs = completed.groupby("identity")
    medians, counts = runs[MEDIANS].median().round(COUNTS), runs[["overlap", "exchange_seconds"]].count()
    medians["overlap"] = medians["overlap"].where(counts["overlap"] == counts["exchange_seconds"])
    found: dict[Any, dict[Any, Any]] = medians.to_dict("index")
    return found


def throughputs_of(completed: pd.DataFrame) -> Throughputs:
    """Return the throughputs of the completed runs, in samples/s, by identity."""
    return {
        str(identity): rates.to_numpy(np.float64) for identity, rates in completed.groupby("identity")["throughput"]
    }


def _ratios(
    entries: Iterable[Entry], role: Denominator, throughputs: Throughputs
) -> tuple[dict[str, Ratio], list[Diagnostic]]:
    """Return the ratios of the measured entries that have a partner, and a diagnostic where its runs are missing."""
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


def _asked(entry: Entry) -> dict[str, Any]:
    asked = entry.configuration
    return {
        "identity": asked.identity,
        **entry.parameters,
        "world_size": asked.world_size,
        "global_batch": asked.global_batch,
        "unsupported_reason": entry.unsupported,
        "baseline_identity": entry.baseline_identity,
        "is_baseline": entry.is_baseline,
        "reference_identity": entry.reference_identity,
        "is_reference": entry.is_reference,
        "runs_planned": 0 if entry.unsupported else asked.repeats,
    }


def _summary(medians: dict[Any, Any]) -> dict[str, Any]:
    """Return the medians, and the ratio of two of them."""
    computation, exposed = medians.get("computation_seconds"), medians.get("exposed_seconds")
    return medians | {"computation_to_communication": computation / exposed if computation and exposed else None}


def _throughput(rates: Any) -> dict[str, Any]:
    return {
        "runs_completed": rates.size,
        "interval_coverage": coverage(rates.size),
        **interval_columns("throughput", median_interval(rates)),
    }


def _scaling(entry: Entry, found: Ratio, devices: dict[str, int]) -> dict[str, Any]:
    sizes = devices[entry.configuration.identity], devices[entry.baseline_identity]
    return {
        "baseline_throughput": found.denominator_throughput,
        **interval_columns("baseline", found.denominator_interval),
        **scaling_columns(found.value, found.interval, *sizes),
    }


def _comparison(entry: Entry, found: Ratio, completed: pd.DataFrame, uneven: Collection[str | None]) -> dict[str, Any]:
    decided = None if entry.is_reference else verdict(found.interval)
    pair = entry.configuration.identity, str(entry.reference_identity)
    parts = differences(*(completed[completed["identity"] == identity] for identity in pair))
    names = {part: part.replace("_seconds", "_difference_seconds") for part in parts}
    return {
        "reference_throughput": found.denominator_throughput,
        "relative_throughput": found.value,
        **interval_columns("relative_throughput", found.interval),
        "verdict": decided,
        **{names[part]: difference.seconds for part, difference in parts.items()},
        **{name: end for part in parts for name, end in interval_columns(names[part], parts[part].interval).items()},
        "difference_lies_in": explaining_part(decided, parts, any(identity in uneven for identity in pair)),
    }
