"""The table of configurations: one row per entry of the plan, summarised over its completed runs."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.core.arrays import Floats, Integers
from dlperf_study.core.errors import BaselineError, Diagnostic, Severity
from dlperf_study.dataset.tables import GrowingFrame
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
from dlperf_study.metrics.outcome import completed_of
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
from dlperf_study.study.parameter import TOKENS
from dlperf_study.study.plan import Entry, Plan
from dlperf_study.study.program import OWN_PROGRAM

#: Steps are the same work if their tokens, from rates and durations, differ by less than this share.
SAME_WORK = 0.01
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
    completed = completed_of(runs)
    throughputs, rate = throughputs_of(runs, plan), rate_column(completed, plan)
    measurements = Measurements(completed, throughputs)
    kinds_of_device = _kinds_of_device(runs)
    speedups = _ratios(plan, plan.entries if plan.has_speedups else (), "baseline", throughputs)
    relative_throughputs = _ratios(plan, plan.entries, "reference", throughputs)
    decided = _verdicts(plan, {"baseline": speedups.logarithms, "reference": relative_throughputs.logarithms})
    parts = StepParts(plan, completed, uneven, throughputs)
    bubbles = bubble_columns(plan.entries, completed, rounds_of(completed, plan))
    entries, table = plan.by_identity, GrowingFrame(TableName.CONFIGURATIONS)
    for identity, entry in entries.items():
        row = _planned_columns(entry) | measurements.columns(identity)
        row["device"] = kinds_of_device.get(identity, plan.device or None)
        if speedup := speedups.logarithms.get(identity):
            baseline, devices = entries[entry.baseline_identity].configuration, entry.configuration.world_size
            row |= _denominator_columns("baseline", measurements.summary(entry.baseline_identity, rate))
            row |= _as_measured_columns(entry, "baseline", throughputs)
            row |= scaling_columns(speedup.factor, speedup.factor_interval(), devices, baseline.world_size)
            row |= _verdict_columns("baseline", decided["baseline"].get(identity))
            row |= _ratio_columns(parts.factors(entry))
        if relative_throughput := relative_throughputs.logarithms.get(identity):
            verdict = decided["reference"].get(identity)
            row |= _denominator_columns("reference", measurements.summary(str(entry.reference_identity), rate))
            row |= _as_measured_columns(entry, "reference", throughputs)
            row |= _ratio_columns({"relative_throughput": relative_throughput})
            row |= _verdict_columns("reference", verdict)
            row |= parts.columns(entry, verdict.word if verdict else None)
        table.add(row | bubbles.get(identity, {}) | separate.get(identity, {}))
    return table.frame, [*speedups.diagnostics, *relative_throughputs.diagnostics]


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
    completed = completed_of(runs)
    goal = None if plan.precision is None else math.log1p(plan.precision)
    rates, rounds = completed[rate_column(completed, plan)].dropna(), rounds_of(completed, plan)
    samples = samples_of(rates, completed["identity"], rounds, goal)
    return with_pace(samples, rates, completed, rounds)


class Measurements:
    """The metrics of configurations over their completed runs, each with its interval.

    They are summarised where they are asked for: those of 25,000 configurations at once take a gigabyte. Where the
    throughput of a configuration ended measuring, the error of all that its runs measured is that of their later half.
    """

    def __init__(self, completed: pd.DataFrame, throughputs: Throughputs) -> None:
        self._metrics = summarised(*Summary)
        self._columns = {name: position for position, name in enumerate(self._metrics)}
        in_order = completed.sort_values("round", kind="stable")
        self._values = in_order[list(self._metrics)].to_numpy(np.float64, na_value=np.nan)
        self._positions: Mapping[Any, Integers] = in_order.groupby("identity").indices
        self._ended = {name for name, sample in throughputs.items() if sample.ended_measuring}

    def columns(self, identity: str) -> dict[str, Any]:
        """Return the number of runs of a configuration, and the summary of each metric that they measured."""
        columns: dict[str, Any] = {"runs_completed": len(self._positions.get(identity, ()))}
        if columns["runs_completed"]:
            for name in self._metrics:
                columns |= self.summary(identity, name)
            parts = (self._runs_of(identity, name) for name in ("computation_seconds", "exposed_seconds"))
            columns |= _quotient_columns(*parts)
        return columns

    def summary(self, identity: str, name: str) -> dict[str, float]:
        """Return the summary of one metric of a configuration; none where no run of it measured the metric.

        A mean of some runs is none where those without a value would change it: runs without an overlap are those that
        hid the most.
        """
        metric, measured = self._metrics[name], self.values(identity, name)
        all_of = self.values(identity, metric.only_if_all) if metric.only_if_all else measured
        if not measured.size or measured.size < all_of.size:
            return {}
        if metric.summary is Summary.FACT:
            return {name: round(float(np.median(measured)), metric.decimals)}
        if metric.summary is Summary.LARGEST:
            return {name: int(measured.max())}
        return _estimate_columns(metric, self.estimate(identity, name))

    def estimate(self, identity: str, name: str) -> Estimate:
        """Return the mean of a metric over the runs that measured it; of a rate, that of its logarithm."""
        transformed: Callable[[Floats], Floats] = np.asarray
        if self._metrics[name].summary is Summary.GEOMETRIC:
            transformed = np.log
        measured = self.values(identity, name)
        if identity not in self._ended:
            return Estimate.of(transformed(measured))
        later = later_half(self._runs_of(identity, name))
        return Estimate.of_later_half(transformed(measured), transformed(later[~np.isnan(later)]))

    def values(self, identity: str, name: str) -> Floats:
        """Return the values of a metric that the runs of a configuration measured."""
        values = self._runs_of(identity, name)
        measured: Floats = values[~np.isnan(values)]
        return measured

    def _runs_of(self, identity: str, name: str) -> Floats:
        """Return the values of a metric that the runs of a configuration measured, NaN for a run that did not."""
        values: Floats = self._values[self._positions[identity], self._columns[name]]
        return values


def _estimate_columns(metric: Metric, estimate: Estimate) -> dict[str, float]:
    """Return a mean over runs with its interval."""
    name = metric.name
    match metric.summary:
        case Summary.GEOMETRIC:
            columns = {name: estimate.factor, **interval_columns(name, estimate.factor_interval())}
            low, high = metric.limits
            return _cut_off(columns, metric) if low <= estimate.factor <= high else columns
        case Summary.POSITIVE_MEAN:
            return {name: estimate.mean, **interval_columns(name, estimate.positive_interval())}
        case Summary.SHARE:
            return _cut_off({name: estimate.mean, **interval_columns(name, estimate.share_interval())}, metric)
        case _:
            return _cut_off({name: estimate.mean, **interval_columns(name, estimate.interval())}, metric)


def _cut_off(columns: Mapping[str, float], metric: Metric) -> dict[str, float]:
    """Return an estimate and the bounds of its interval within what the metric can be."""
    return {name: float(np.clip(value, *metric.limits)) for name, value in columns.items()}


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


def _denominator_columns(role: Denominator, rate: Mapping[str, float]) -> dict[str, Any]:
    """Return the rate of a baseline or reference with its interval."""
    return {f"{role}_{name}": value for name, value in rate.items()}


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


def ended_measuring(plan: Plan, throughputs: Throughputs) -> set[str]:
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


def marked(
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


class StepParts:
    """How much longer the parts of a step take than those of the reference, and what they make of an efficiency."""

    def __init__(
        self, plan: Plan, completed: pd.DataFrame, uneven: Collection[str | None], throughputs: Throughputs
    ) -> None:
        rounds, ended = rounds_of(completed, plan), ended_measuring(plan, throughputs)
        self._seconds = marked(step_samples(completed, rounds), ended, throughputs)
        self._factors = marked(factor_samples(completed, rounds), ended, throughputs)
        self._runs = completed["identity"].value_counts().to_dict()
        self._entries = plan.by_identity
        self._uneven = uneven
        self._rate = rate_column(completed, plan)
        tokens = completed["token_throughput"].astype(float) * completed["step_seconds"].astype(float)
        self._tokens_of_step: dict[str, float] = tokens.groupby(completed["identity"]).mean().to_dict()

    def factors(self, entry: Entry) -> dict[str, Estimate]:
        """Return the factors of the efficiency of a configuration; those of a baseline are 1."""
        identity = entry.configuration.identity
        factors = efficiency_factors(self._factors, identity, entry.baseline_identity)
        return dict.fromkeys(factors, of_itself(self._runs[identity])) if entry.is_baseline else factors

    def is_same_work(self, entry: Entry) -> bool:
        """Return whether a step of a configuration is the same work as a step of its reference."""
        identity, reference_identity = entry.configuration.identity, str(entry.reference_identity)
        if self._rate == "token_throughput":
            works = [self._tokens_of_step.get(name, 0.0) for name in (identity, reference_identity)]
            return math.isclose(*works, rel_tol=SAME_WORK)
        reference = self._entries[reference_identity].configuration
        return entry.configuration.global_batch == reference.global_batch

    def differences(self, entry: Entry) -> dict[str, Estimate]:
        """Return by how much the parts of a step exceed those of the reference; none of steps of different work."""
        identity = entry.configuration.identity
        if not self.is_same_work(entry):
            return {}
        parts = differences(self._seconds, identity, str(entry.reference_identity))
        return dict.fromkeys(parts, of_itself(self._runs[identity])) if entry.is_reference else parts

    def columns(self, entry: Entry, decided: str | None) -> dict[str, Any]:
        """Return the differences with their intervals, and which of them explains the verdict."""
        identity, reference_identity = entry.configuration.identity, str(entry.reference_identity)
        parts = self.differences(entry)
        is_uneven = identity in self._uneven or reference_identity in self._uneven
        columns: dict[str, Any] = {"difference_lies_in": explaining_part(decided, parts, is_uneven)}
        for part in filter(parts.__contains__, PARTS):
            difference = parts[part]
            name = part.replace("_seconds", "_difference_seconds")
            columns |= {name: difference.mean, **interval_columns(name, difference.interval())}
        return columns
