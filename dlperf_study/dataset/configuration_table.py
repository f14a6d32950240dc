"""The table of configurations: one row per entry of the plan, summarised over its completed runs."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.analysis.comparison import (
    PARTS,
    RATIOS,
    Throughputs,
    Verdict,
    differences,
    explaining_part,
    of_itself,
    rounds_of,
    samples_of,
    step_samples,
    throughput_ratio,
    verdicts,
    widest_equality,
)
from dlperf_study.analysis.scaling import efficiency_factors, factor_samples, scaling_columns
from dlperf_study.analysis.statistics import Estimate, interval_columns, quotient_interval
from dlperf_study.arrays import Floats
from dlperf_study.columns import TableName
from dlperf_study.columns.memory import PEAKS
from dlperf_study.columns.resources import SAMPLED_PEAKS
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.errors import BaselineError
from dlperf_study.plan.plan import Entry, Plan
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import Outcome

#: Rates of the runs: this table has the exponential of the mean of their logarithms, with its interval.
RATES = (
    *("throughput", "token_throughput", "mean_of_rates", "fixed_window_throughput", "fixed_window_mean_of_rates"),
    *("input_rate", "bus_bandwidth", "exchange_bandwidth", "sum_of_rank_rates", "mfu"),
)
#: Other columns of the runs: this table has their mean, with its interval.
MEANS = (
    *("compile_seconds", "step_seconds", "computation_seconds", "input_seconds", "exposed_seconds", "jitter_seconds"),
    *("exchange_seconds", "exchange_latency_seconds"),
    *("step_p50_seconds", "step_p95_seconds", "step_p99_seconds"),
    *("overlap", "load_balance"),
    *("energy_per_sample", "mean_power", "gpu_utilisation", "sm_clock", "memory_clock", "clock_limited_share"),
)
#: Facts of the network. All runs must have the same; where they don't, the median stands for them.
FACTS = {"parameters": 0, "gradient_bytes": 0, "flops_per_sample": 9}
#: Columns of the runs of which this table has the largest.
LARGEST = tuple(column.name for column in (*PEAKS, *SAMPLED_PEAKS))
#: The column of what may be said of the ratio to a baseline or reference.
VERDICTS: dict[Denominator, str] = {"baseline": "baseline_verdict", "reference": "verdict"}


def configurations_table(
    plan: Plan, runs: pd.DataFrame, separate: Mapping[str, dict[str, Any]], uneven: Collection[str | None] = ()
) -> tuple[pd.DataFrame, list[Diagnostic]]:
    """Return the table, and a diagnostic for every ratio without a measured baseline or reference.

    ``separate`` has the columns of runs that are not counted, by identity: of the traced run, of NCCL's report, and of
    the trials of batches, or those that the metadata of logs state; ``uneven`` the identities of configurations of
    which a rank computed much slower than the others.
    """
    completed = runs[runs["outcome"] == Outcome.COMPLETED]
    measurements, throughputs, rate = _measurements(completed), throughputs_of(runs, plan), rate_column(completed)
    kinds_of_device = _kinds_of_device(runs)
    speedups, missing_baselines = _ratios(plan.entries if plan.has_speedups else (), "baseline", throughputs)
    relative_throughputs, missing_references = _ratios(plan.entries, "reference", throughputs)
    baseline_verdicts = _verdicts(plan, "baseline", speedups)
    reference_verdicts = _verdicts(plan, "reference", relative_throughputs)
    parts = _StepParts(plan, completed, uneven)
    entries, rows = plan.by_identity, []
    for identity, entry in entries.items():
        row = _planned_columns(entry) | measurements.get(identity, {"runs_completed": 0})
        row["device"] = kinds_of_device.get(identity, plan.device or None)
        if identity in speedups:
            speedup, baseline = speedups[identity], entries[entry.baseline_identity].configuration
            devices = entry.configuration.world_size
            row |= _denominator_columns("baseline", rate, measurements[entry.baseline_identity])
            row |= scaling_columns(speedup.factor, speedup.factor_interval(), devices, baseline.world_size)
            row |= _verdict_columns("baseline", baseline_verdicts.get(identity))
            row |= _ratio_columns(parts.factors(entry))
        if identity in relative_throughputs:
            verdict = reference_verdicts.get(identity)
            row |= _denominator_columns("reference", "throughput", measurements[str(entry.reference_identity)])
            row |= _ratio_columns({"relative_throughput": relative_throughputs[identity]})
            row |= _verdict_columns("reference", verdict)
            row |= parts.columns(entry, verdict.word if verdict else None)
        rows.append(row | separate.get(identity, {}))
    return frame_of_rows(TableName.CONFIGURATIONS, rows), [*missing_baselines, *missing_references]


def _kinds_of_device(runs: pd.DataFrame) -> dict[Any, str | None]:
    """Return whether each configuration ran on CPUs or on GPUs, by identity; None for one that ran on both."""
    kinds = runs.dropna(subset=["device"]).groupby("identity")["device"].unique()
    return {identity: levels[0] if len(levels) == 1 else None for identity, levels in kinds.items()}


def rate_column(rows: pd.DataFrame) -> str:
    """Return the column that ratios of runs or configurations are of: tokens/s if these are all that is known."""
    is_in_tokens = rows["throughput"].isna().all() and rows["token_throughput"].notna().any()
    return "token_throughput" if is_in_tokens else "throughput"


def throughputs_of(runs: pd.DataFrame, plan: Plan) -> Throughputs:
    """Return the throughputs of the completed runs, in samples/s, or in tokens/s if no run has others, by identity."""
    completed = runs[runs["outcome"] == Outcome.COMPLETED]
    return samples_of(completed[rate_column(completed)], completed["identity"], rounds_of(completed, plan))


def _measurements(completed: pd.DataFrame) -> dict[Any, dict[Any, Any]]:
    """Return the number of runs, means of measured columns with their intervals, and peaks, by identity.

    The mean of the overlap only if every run with an exchange window has one: runs without an overlap are those that
    hid the most, so a mean of the others would be too low.
    """
    by_identity: dict[Any, dict[Any, Any]] = {}
    names = [*RATES, *MEANS, *FACTS, *LARGEST]
    numbers = completed[names].to_numpy(np.float64, na_value=np.nan)
    for identity, positions in completed.groupby("identity").indices.items():
        values = dict(zip(names, numbers[positions].T, strict=True))
        known = {name: column[~np.isnan(column)] for name, column in values.items()}
        columns: dict[Any, Any] = {"runs_completed": len(positions)}
        for name in (*RATES, *MEANS):
            is_partial = name == "overlap" and known[name].size < known["exchange_seconds"].size
            if known[name].size and not is_partial:
                columns |= _mean_columns(name, known[name])
        for name, decimals in FACTS.items():
            columns[name] = round(float(np.median(known[name])), decimals) if known[name].size else None
        columns |= {name: int(known[name].max()) for name in LARGEST if known[name].size}
        columns |= _quotient_columns(values["computation_seconds"], values["exposed_seconds"])
        by_identity[identity] = columns
    return by_identity


def _mean_columns(name: str, values: Floats) -> dict[str, float]:
    """Return the mean of a column with its interval; that of a rate from the logarithms."""
    if name in RATES:
        rate = Estimate.of(np.log(values))
        return {name: rate.factor, **interval_columns(name, rate.factor_interval())}
    estimate = Estimate.of(values)
    return {name: estimate.mean, **interval_columns(name, estimate.interval())}


def _quotient_columns(computation: Floats, exposed: Floats) -> dict[str, float]:
    """Return computation / exposed communication with its interval, of runs that have both.

    Seconds of each run, NaN where not measured.
    """
    has_both = ~np.isnan(computation + exposed)
    computation, exposed = computation[has_both], exposed[has_both]
    if not has_both.any() or exposed.mean() <= 0:
        return {}
    name, quotient = "computation_to_communication", float(computation.mean() / exposed.mean())
    return {name: quotient, **interval_columns(name, quotient_interval(computation, exposed))}


def _ratios(
    entries: Iterable[Entry], role: Denominator, throughputs: Throughputs
) -> tuple[dict[str, Estimate], list[Diagnostic]]:
    """Return the logarithms of the ratios of the measured entries, and a diagnostic where the denominator has no runs.

    The ratios are by identity.
    """
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


def _verdicts(plan: Plan, role: Denominator, ratios: Mapping[str, Estimate]) -> dict[str, Verdict]:
    """Return the verdicts by identity; all those on one baseline or reference are made together."""
    compared: dict[str | None, dict[str, Estimate]] = {}
    for entry in plan.entries:
        identity, denominator_identity = entry.configuration.identity, entry.denominator(role)
        if identity in ratios and identity != denominator_identity:
            compared.setdefault(denominator_identity, {})[identity] = ratios[identity]
    decided: dict[str, Verdict] = {}
    for log_ratios in compared.values():
        decided |= verdicts(log_ratios, widest_equality(plan))
    return decided


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


def _denominator_columns(role: Denominator, rate: str, measurements: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the rate of a baseline or reference with its interval."""
    names = (f"{rate}{suffix}" for suffix in ("", "_low", "_high"))
    return {f"{role}_{name}": measurements.get(name) for name in names}


def _verdict_columns(role: Denominator, verdict: Verdict | None) -> dict[str, Any]:
    if verdict is None:
        return {}
    return {VERDICTS[role]: verdict.word, f"{RATIOS[role]}_equal_within": verdict.equal_within}


def _ratio_columns(log_ratios: Mapping[str, Estimate]) -> dict[str, Any]:
    """Return ratios with their intervals, from their logarithms by column."""
    columns: dict[str, Any] = {}
    for name, log_ratio in log_ratios.items():
        columns |= {name: log_ratio.factor, **interval_columns(name, log_ratio.factor_interval())}
    return columns


class _StepParts:
    """How much longer the parts of a step take than those of the reference, and what they make of an efficiency."""

    def __init__(self, plan: Plan, completed: pd.DataFrame, uneven: Collection[str | None]) -> None:
        rounds = rounds_of(completed, plan)
        self._seconds, self._factors = step_samples(completed, rounds), factor_samples(completed, rounds)
        self._runs = completed["identity"].value_counts().to_dict()
        self._entries = plan.by_identity
        self._uneven = uneven

    def factors(self, entry: Entry) -> dict[str, Estimate]:
        """Return the factors of the efficiency of a configuration; those of a baseline are 1."""
        identity = entry.configuration.identity
        factors = efficiency_factors(self._factors, identity, entry.baseline_identity)
        return dict.fromkeys(factors, of_itself(self._runs[identity])) if entry.is_baseline else factors

    def columns(self, entry: Entry, decided: str | None) -> dict[str, Any]:
        """Return the differences with their intervals, and which of them explains the verdict."""
        identity, reference_identity = entry.configuration.identity, str(entry.reference_identity)
        reference = self._entries[reference_identity].configuration
        # Where the global batches differ a step is not the same work.
        is_same_work = entry.configuration.global_batch == reference.global_batch
        parts = differences(self._seconds, identity, reference_identity) if is_same_work else {}
        if entry.is_reference:
            parts = dict.fromkeys(parts, of_itself(self._runs[identity]))
        is_uneven = identity in self._uneven or reference_identity in self._uneven
        columns: dict[str, Any] = {"difference_lies_in": explaining_part(decided, parts, is_uneven)}
        for part in filter(parts.__contains__, PARTS):
            difference = parts[part]
            name = part.replace("_seconds", "_difference_seconds")
            columns |= {name: difference.mean, **interval_columns(name, difference.interval())}
        return columns
