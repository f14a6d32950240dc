"""The table of configurations: one row per entry of the plan, summarised over its completed runs."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.analysis.scaling import Speedup, Throughputs, efficiency, speedup
from dlperf_study.analysis.statistics import Interval, coverage, median_interval
from dlperf_study.analysis.tables import frame_of_rows
from dlperf_study.columns import Table
from dlperf_study.errors import BaselineError
from dlperf_study.logs.complaint import Complaint, Severity
from dlperf_study.study.outcome import Outcome
from dlperf_study.study.plan import Entry, Plan

#: Columns of the runs whose median over the completed runs stands in this table under the same name.
MEDIANS = [
    "throughput",
    "mean_of_rates",
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


def configurations_table(plan: Plan, runs: pd.DataFrame) -> tuple[pd.DataFrame, list[Complaint]]:
    """Return the table, and a complaint for every speedup that lacks its baseline."""
    completed = runs[runs["outcome"] == Outcome.COMPLETED]
    medians = completed.groupby("identity")[MEDIANS].median().round(COUNTS).to_dict("index")
    throughputs = throughputs_of(completed)
    speedups, complaints = _speedups(plan.entries, throughputs)
    devices = {entry.configuration.identity: entry.configuration.world_size for entry in plan.entries}
    rows = [
        _asked(entry)
        | _summary(medians.get(identity, {}))
        | _throughput(throughputs.get(identity, np.empty(0)))
        | (_scaling(entry, speedups[identity], devices) if identity in speedups else {})
        for entry in plan.entries
        for identity in [entry.configuration.identity]
    ]
    return frame_of_rows(Table.CONFIGURATIONS, rows), complaints


def throughputs_of(completed: pd.DataFrame) -> Throughputs:
    """Return the throughputs of the completed runs, in samples/s, by identity."""
    return {
        str(identity): rates.to_numpy(np.float64) for identity, rates in completed.groupby("identity")["throughput"]
    }


def _speedups(entries: Iterable[Entry], throughputs: Throughputs) -> tuple[dict[str, Speedup], list[Complaint]]:
    speedups, complaints = {}, []
    for entry in entries:
        identity = entry.configuration.identity
        if identity not in throughputs:
            continue
        try:
            speedups[identity] = speedup(entry, throughputs)
        except BaselineError as error:
            complaints.append(Complaint("speedup", str(error), Severity.ERROR, identity))
    return speedups, complaints


def _asked(entry: Entry) -> dict[str, Any]:
    asked = entry.configuration
    return {
        "identity": asked.identity,
        **asked.as_dict(),
        "world_size": asked.world_size,
        "global_batch": asked.global_batch,
        "unsupported_reason": entry.unsupported,
        "baseline_identity": entry.baseline_identity,
        "is_baseline": entry.is_baseline,
        "runs_planned": 0 if entry.unsupported else asked.repeats,
    }


def _summary(medians: dict[Any, Any]) -> dict[str, Any]:
    """Return the medians, and the ratio of two of them."""
    computation, exposed = medians.get("computation_seconds"), medians.get("exposed_seconds")
    return medians | {"computation_to_communication": computation / exposed if computation and exposed else None}


def _throughput(rates: Any) -> dict[str, Any]:
    interval = median_interval(rates)
    return {
        "runs_completed": rates.size,
        "interval_coverage": coverage(rates.size),
        **dict(_bounds("throughput", interval)),
    }


def _scaling(entry: Entry, found: Speedup, devices: dict[str, int]) -> dict[str, Any]:
    sizes = devices[entry.configuration.identity], devices[entry.baseline_identity]
    bounds = dict(_bounds("speedup", found.interval))
    return {
        "baseline_throughput": found.baseline_throughput,
        **dict(_bounds("baseline", found.baseline_interval)),
        "speedup": found.ratio,
        **bounds,
        "efficiency": efficiency(found.ratio, *sizes),
        **{name.replace("speedup", "efficiency"): efficiency(bound, *sizes) for name, bound in bounds.items()},
    }


def _bounds(name: str, interval: Interval | None) -> Iterator[tuple[str, float]]:
    if interval:
        yield f"{name}_low", interval.low
        yield f"{name}_high", interval.high
