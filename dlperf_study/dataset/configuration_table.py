"""The table of configurations: one row per entry of the plan, summarised over its completed runs."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.core.arrays import Floats
from dlperf_study.core.errors import BaselineError, Diagnostic, Severity
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.metrics.columns import Metric, Source, Summary, TableName, summarised, values_of
from dlperf_study.metrics.comparison import (
    PARTS,
    RATIOS,
    Throughputs,
    Verdict,
    differences,
    explaining_part,
    of_itself,
    ratio_as_measured,
    rounds_of,
    samples_of,
    step_samples,
    throughput_ratio,
    verdicts,
    widest_equality,
)
from dlperf_study.metrics.pace import with_pace
from dlperf_study.metrics.pipeline_bubble import bubble_columns
from dlperf_study.metrics.scaling import efficiency_factors, factor_samples, scaling_columns
from dlperf_study.metrics.statistics import (
    Estimate,
    Sample,
    interval_columns,
    is_precise,
    later_half,
    quotient_interval,
)
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import Outcome
from dlperf_study.study.parameter import TOKENS
from dlperf_study.study.plan import Entry, Plan
from dlperf_study.study.program import OWN_PROGRAM

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
    throughputs, rate = throughputs_of(runs, plan), rate_column(completed, plan)
    measurements = _measurements(completed, throughputs)
    kinds_of_device = _kinds_of_device(runs)
    speedups = _ratios(plan, plan.entries if plan.has_speedups else (), "baseline", throughputs)
    relative_throughputs = _ratios(plan, plan.entries, "reference", throughputs)
    decided = _verdicts(plan, {"baseline": speedups.logarithms, "reference": relative_throughputs.logarithms})
    parts = _StepParts(plan, completed, uneven, throughputs)
    bubbles = bubble_columns(plan.entries, completed)
    entries, rows = plan.by_identity, []
    for identity, entry in entries.items():
        row = _planned_columns(entry) | measurements.get(identity, {"runs_completed": 0})
        row["device"] = kinds_of_device.get(identity, plan.device or None)
        if speedup := speedups.logarithms.get(identity):
            baseline, devices = entries[entry.baseline_identity].configuration, entry.configuration.world_size
            row |= _denominator_columns("baseline", rate, measurements[entry.baseline_identity])
            row |= _as_measured_columns(entry, "baseline", throughputs)
            row |= scaling_columns(speedup.factor, speedup.factor_interval(), devices, baseline.world_size)
            row |= _verdict_columns("baseline", decided["baseline"].get(identity))
            row |= _ratio_columns(parts.factors(entry))
        if relative_throughput := relative_throughputs.logarithms.get(identity):
            verdict = decided["reference"].get(identity)
            row |= _denominator_columns("reference", rate, measurements[str(entry.reference_identity)])
            row |= _as_measured_columns(entry, "reference", throughputs)
            row |= _ratio_columns({"relative_throughput": relative_throughput})
            row |= _verdict_columns("reference", verdict)
            row |= parts.columns(entry, verdict.word if verdict else None)
        rows.append(row | bubbles.get(identity, {}) | separate.get(identity, {}))
    return frame_of_rows(TableName.CONFIGURATIONS, rows), [*speedups.diagnostics, *relative_throughputs.diagnostics]


def _kinds_of_device(runs: pd.DataFrame) -> dict[Any, str | None]:
    """Return whether each configuration ran on CPUs or on GPUs, by identity; None for one that ran on both."""
    kinds = runs.dropna(subset=["device"]).groupby("identity")["device"].unique()
    return {identity: levels[0] if len(levels) == 1 else None for identity, levels in kinds.items()}


def rate_column(rows: pd.DataFrame, plan: Plan) -> str:
    """Return the column that ratios of runs or configurations are of.

    Tokens/s if the study says so or these are all that is known, or if a user's program counts tokens in each: then it
    says so of its work.
    """
    has_samples, has_tokens = rows["throughput"].notna(), rows["token_throughput"].notna()
    counts_tokens = (rows["framework"] == OWN_PROGRAM).all() and has_tokens[has_samples].all()
    is_in_tokens = has_tokens.any() and (plan.rate == TOKENS or counts_tokens or not has_samples.any())
    return "token_throughput" if is_in_tokens else "throughput"


def throughputs_of(runs: pd.DataFrame, plan: Plan) -> Throughputs:
    """Return the throughputs of the completed runs, in samples/s, or in tokens/s if no run has others, by identity."""
    completed = runs[runs["outcome"] == Outcome.COMPLETED]
    goal = None if plan.precision is None else math.log1p(plan.precision)
    rates, rounds = completed[rate_column(completed, plan)].dropna(), rounds_of(completed, plan)
    samples = samples_of(rates, completed["identity"], rounds, goal)
    return with_pace(samples, rates, completed, rounds)


def _measurements(completed: pd.DataFrame, throughputs: Throughputs) -> dict[Any, dict[Any, Any]]:
    """Return the number of runs and the summary of each metric with its interval, by identity.

    A mean of some runs is none where those without a value would change it: runs without an overlap are those that hid
    the most. Where the throughput ended measuring, the error of all that these runs measured is that of their later
    half.
    """
    completed = completed.sort_values("round", kind="stable")
    by_identity: dict[Any, dict[Any, Any]] = {}
    metrics = summarised(*Summary)
    values_of_runs = completed[list(metrics)].to_numpy(np.float64, na_value=np.nan)
    for identity, positions in completed.groupby("identity").indices.items():
        values = dict(zip(metrics, values_of_runs[positions].T, strict=True))
        measured_values = {name: column[~np.isnan(column)] for name, column in values.items()}
        columns: dict[Any, Any] = {"runs_completed": len(positions)}
        sample = throughputs.get(identity)
        ended_measuring = sample is not None and sample.ended_measuring
        later_values = {name: later_half(column) for name, column in values.items()} if ended_measuring else {}
        for name, metric in metrics.items():
            is_partial = metric.only_if_all and measured_values[name].size < measured_values[metric.only_if_all].size
            if measured_values[name].size and not is_partial:
                columns |= _summary_columns(metric, measured_values[name], later_values.get(name))
        columns |= _quotient_columns(values["computation_seconds"], values["exposed_seconds"])
        by_identity[identity] = columns
    return by_identity


def _summary_columns(metric: Metric, values: Floats, later: Floats | None) -> dict[str, float]:
    """Return the summary of the values of some runs, with its interval if it is a mean.

    ``later``: of runs that ended measuring, the values of their later half, NaN where not measured.
    """

    def estimated(values: Floats, transformed: Callable[[Floats], Floats] = np.asarray) -> Estimate:
        if later is None:
            return Estimate.of(transformed(values))
        return Estimate.of_later_half(transformed(values), transformed(later[~np.isnan(later)]))

    match metric.summary:
        case Summary.GEOMETRIC:
            rate = estimated(values, np.log)
            return {metric.name: rate.factor, **interval_columns(metric.name, rate.factor_interval())}
        case Summary.MEAN:
            estimate = estimated(values)
            columns = {metric.name: estimate.mean, **interval_columns(metric.name, estimate.interval())}
            return {name: float(np.clip(value, *metric.limits)) for name, value in columns.items()}
        case Summary.POSITIVE_MEAN:
            estimate = estimated(values)
            return {metric.name: estimate.mean, **interval_columns(metric.name, estimate.positive_interval())}
        case Summary.FACT:
            return {metric.name: round(float(np.median(values)), metric.decimals)}
        case _:
            return {metric.name: int(values.max())}


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


@dataclass(frozen=True)
class _Ratios:
    """The logarithms of the ratios of configurations to their baselines or references, by identity.

    ``diagnostics``: one for each configuration whose denominator has no runs.
    """

    logarithms: Mapping[str, Estimate]
    diagnostics: Sequence[Diagnostic]


def _ratios(plan: Plan, entries: Iterable[Entry], role: Denominator, throughputs: Throughputs) -> _Ratios:
    """Return the ratios of the entries that were measured."""
    ratios, diagnostics = {}, []
    for entry in entries:
        identity = entry.configuration.identity
        if identity not in throughputs or entry.denominator(role) is None:
            continue
        try:
            ratios[identity] = throughput_ratio(entry, role, throughputs)
        except BaselineError as error:
            diagnostics.append(Diagnostic(RATIOS[role], str(error), Severity.ERROR, identity))
    return _Ratios(ratios, diagnostics)


def _verdicts(
    plan: Plan, ratios: Mapping[Denominator, Mapping[str, Estimate]]
) -> dict[Denominator, dict[str, Verdict]]:
    """Return the verdicts of each role by identity; all those of the study are made together.

    A configuration with the same baseline and reference is compared once.
    """
    pairs: dict[Denominator, dict[str, str]] = {role: {} for role in ratios}
    compared: dict[str, Estimate] = {}
    for role, entry in product(ratios, plan.entries):
        identity, denominator_identity = entry.configuration.identity, entry.denominator(role)
        if identity in ratios[role] and identity != denominator_identity:
            pairs[role][identity] = f"{identity} / {denominator_identity}"
            compared[pairs[role][identity]] = ratios[role][identity]
    decided = verdicts(compared, widest_equality(plan))
    return {role: {identity: decided[pair] for identity, pair in of_role.items()} for role, of_role in pairs.items()}


def _planned_columns(entry: Entry) -> dict[str, Any]:
    configuration = entry.configuration
    return {
        "identity": configuration.identity,
        **entry.parameters,
        "world_size": configuration.world_size,
        "global_batch": configuration.global_batch,
        **values_of(Source.ENTRY, entry),
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


def _ended_measuring(plan: Plan, throughputs: Throughputs) -> set[str]:
    """Return the identities of which the throughput, or a ratio of it, became precise enough to end measuring."""
    ended = set()
    for entry in plan.entries if plan.precision is not None else ():
        identity = entry.configuration.identity
        denominators = {str(entry.baseline_identity), str(entry.reference_identity)} - {identity}
        if identity in throughputs:
            rates = throughputs[identity].logarithms
            series = [rates.in_order]
            series += [rates.within_rounds(throughputs[name].logarithms) for name in denominators & {*throughputs}]
            if any(is_precise(values, math.log1p(plan.precision or 0.0)) for values in series):
                ended.add(identity)
    return ended


def _marked(
    parts: Mapping[str, Mapping[str, Sample]], ended: Collection[str], throughputs: Throughputs
) -> dict[str, dict[str, Sample]]:
    """Return samples by part and identity, of which those of configurations that ended measuring are marked.

    With the rounds of their rates: which half of these a value is from, runs without it tell too.
    """
    marked: dict[str, dict[str, Sample]] = {}
    for part, samples in parts.items():
        marked[part] = {}
        for name, sample in samples.items():
            rounds = throughputs[name].rounds if name in throughputs else None
            marked[part][name] = replace(sample, has_ended=name in ended, run_rounds=rounds)
    return marked


def _as_measured_columns(entry: Entry, role: Denominator, throughputs: Throughputs) -> dict[str, Any]:
    """Return a ratio as it was measured, of one that is at one pace of the machine; a denominator has none."""
    ratio = ratio_as_measured(entry, role, throughputs)
    return _ratio_columns({f"{RATIOS[role]}_as_measured": ratio}) if ratio else {}


class _StepParts:
    """How much longer the parts of a step take than those of the reference, and what they make of an efficiency."""

    def __init__(
        self, plan: Plan, completed: pd.DataFrame, uneven: Collection[str | None], throughputs: Throughputs
    ) -> None:
        rounds, ended = rounds_of(completed, plan), _ended_measuring(plan, throughputs)
        self._seconds = _marked(step_samples(completed, rounds), ended, throughputs)
        self._factors = _marked(factor_samples(completed, rounds), ended, throughputs)
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
