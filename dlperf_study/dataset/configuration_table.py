"""The table of configurations: one row per entry of the plan, summarised over its completed runs."""

import math
from collections.abc import Collection, Iterable, Mapping, Set
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.core.arrays import Floats, Integers
from dlperf_study.core.errors import BaselineError, Diagnostic, Severity
from dlperf_study.dataset.tables import GrowingFrame
from dlperf_study.dataset.target_ci import correct_for_looks, corrected_looks, looks_that_ended_measuring
from dlperf_study.metrics import comparison, pipeline_bubble, run_status, scaling
from dlperf_study.metrics.columns import Metric, Source, Summary, TableName, compute_values, summarised
from dlperf_study.metrics.statistics import Estimate, interval_columns
from dlperf_study.study.grid import Denominator
from dlperf_study.study.parameter import TOKENS
from dlperf_study.study.plan import Entry, Plan
from dlperf_study.study.program import OWN_PROGRAM

#: Steps are the same work if their tokens, from throughputs and durations, differ by less than this share.
SAME_WORK = 0.01
#: The column of what may be said of the ratio to a baseline or reference.
SIGNIFICANCES: dict[Denominator, str] = {"baseline": "baseline_significance", "reference": "significance"}


def configurations_table(
    plan: Plan, runs: pd.DataFrame, separate: Mapping[str, dict[str, Any]], uneven: Collection[str | None] = ()
) -> tuple[pd.DataFrame, list[Diagnostic]]:
    """Return the table, and a diagnostic per ratio without denominator.

    ``separate`` has the columns of runs that are not counted, by identity: of NCCL's report, and of the
    trials of batches, or those that the metadata of logs state; ``uneven`` the identities of configurations of
    which a rank computed much slower than the others.
    """
    counted, throughputs = run_status.select_counted(runs), counted_throughputs(runs, plan)
    column, looks = throughput_column(counted, plan), corrected_looks(throughputs)
    measurements = Measurements(run_status.select_completed(runs), counted, looks)
    kinds = _kinds_of_device(runs)
    speedups, speedup_diagnostics = _ratios(plan.entries if plan.has_speedups else (), "baseline", throughputs)
    relative_throughputs, diagnostics = _ratios(plan.entries, "reference", throughputs)
    ratios: dict[Denominator, Mapping[str, Estimate]] = {"baseline": speedups, "reference": relative_throughputs}
    significances = _significances(plan, ratios, run_status.disturbed_configurations(runs))
    parts = StepParts(plan, counted, uneven, looks)
    bubble_of = pipeline_bubble.bubbles(plan.entries, counted, comparison.assign_rounds(counted, plan), looks)
    entries, table = plan.by_id, GrowingFrame(TableName.CONFIGURATIONS)
    for configuration_id, entry in entries.items():
        row = _planned_columns(entry) | measurements.columns(configuration_id)
        row["device"] = kinds.get(configuration_id, plan.device or None)
        if speedup := speedups.get(configuration_id):
            baseline, devices = entries[entry.baseline_id].configuration, entry.configuration.world_size
            summary = measurements.summary(entry.baseline_id, column)
            row |= scaling.scaling_columns(speedup.factor, speedup.factor_interval(), devices, baseline.world_size)
            row |= _comparison_columns("baseline", summary, significances.get(("baseline", configuration_id)))
        if relative_throughput := relative_throughputs.get(configuration_id):
            significance = significances.get(("reference", configuration_id))
            row["relative_throughput"] = relative_throughput.factor
            row |= interval_columns("relative_throughput", relative_throughput.factor_interval())
            row |= _comparison_columns("reference", measurements.summary(str(entry.reference_id), column), significance)
            row |= parts.columns(entry, significance.word if significance else None)
        if bubble := bubble_of.get(configuration_id):
            row |= bubble.columns
            if bubble.no_interval:
                diagnostics.append(Diagnostic("bubble_share", bubble.no_interval, Severity.NOTE, configuration_id))
        table.add(row | separate.get(configuration_id, {}))
    return table.frame, [*speedup_diagnostics, *diagnostics]


def _kinds_of_device(runs: pd.DataFrame) -> dict[Any, str | None]:
    """Return each configuration's kind of device by identity; None for both."""
    kinds = runs.dropna(subset=["device"]).groupby("configuration_id")["device"].unique()
    return {configuration_id: values[0] if len(values) == 1 else None for configuration_id, values in kinds.items()}


def throughput_column(rows: pd.DataFrame, plan: Plan) -> str:
    """Return the column that ratios of runs or configurations are of.

    Tokens/s if the study says so or these are all that is known, or if a user's program counts tokens in each: then it
    says so of its work.
    """
    has_samples, has_tokens = rows["throughput"].notna(), rows["token_throughput"].notna()
    counts_tokens = (rows["framework"] == OWN_PROGRAM).all() and has_tokens[has_samples].all()
    is_in_tokens = has_tokens.any() and (plan.throughput_unit == TOKENS or counts_tokens or not has_samples.any())
    if is_in_tokens:
        return "token_throughput"
    return "throughput"


def counted_throughputs(runs: pd.DataFrame, plan: Plan) -> comparison.Throughputs:
    """Return the throughputs of completed runs, by identity."""
    counted = run_status.select_counted(runs)
    throughputs = counted[throughput_column(counted, plan)]
    samples = comparison.collect_samples(
        throughputs, counted["configuration_id"], comparison.assign_rounds(counted, plan)
    )
    return correct_for_looks(samples, looks_that_ended_measuring(plan, samples))


class Measurements:
    """The metrics of configurations, summarised on demand to save memory."""

    def __init__(self, completed: pd.DataFrame, counted: pd.DataFrame, looks: int) -> None:
        self._metrics = summarised(*Summary)
        self._columns = {name: position for position, name in enumerate(self._metrics)}
        self._completed: dict[Any, int] = completed["configuration_id"].value_counts().to_dict()
        in_order = counted.sort_values("round", kind="stable")
        self._values = in_order[list(self._metrics)].to_numpy(np.float64, na_value=np.nan)
        self._positions: Mapping[Any, Integers] = in_order.groupby("configuration_id").indices
        self._looks = looks

    def columns(self, configuration_id: str) -> dict[str, Any]:
        """Return a configuration's number of runs and summarised metrics."""
        columns: dict[str, Any] = {
            "runs_completed": self._completed.get(configuration_id, 0),
            "runs_counted": len(self._positions.get(configuration_id, ())),
        }
        if columns["runs_counted"]:
            for name in self._metrics:
                columns |= self.summary(configuration_id, name)
        return columns

    def summary(self, configuration_id: str, name: str) -> dict[str, float]:
        """Return the summary of one metric of a configuration.

        A mean of some runs is none where those without a value would change it: runs without an overlap are those that
        hid the most.
        """
        metric, measured = self._metrics[name], self.values(configuration_id, name)
        if not measured.size or measured.size < self.values(configuration_id, metric.only_if_all or name).size:
            return {}
        if metric.summary is Summary.FACT:
            return {name: round(float(np.median(measured)), metric.decimals)}
        if metric.summary is Summary.LARGEST:
            return {name: int(measured.max())}
        if measured.mean() < metric.smallest:
            return {}
        return _estimate_columns(metric, self.estimate(configuration_id, name))

    def estimate(self, configuration_id: str, name: str) -> Estimate:
        """Return a metric's mean over its runs; of throughputs, logarithmic."""
        measured = self.values(configuration_id, name)
        if self._metrics[name].summary is Summary.GEOMETRIC:
            measured = np.log(measured)
        return Estimate.from_values(measured, looks=self._looks)

    def values(self, configuration_id: str, name: str) -> Floats:
        """Return a metric's values over the runs of a configuration."""
        values = self._values[self._positions[configuration_id], self._columns[name]]
        measured: Floats = values[~np.isnan(values)]
        return measured


def _estimate_columns(metric: Metric, estimate: Estimate) -> dict[str, float]:
    """Return a mean over runs with its interval."""
    name = metric.name
    match metric.summary:
        case Summary.GEOMETRIC:
            columns = {name: estimate.factor, **interval_columns(name, estimate.factor_interval())}
        case Summary.POSITIVE_MEAN:
            return {name: estimate.mean, **interval_columns(name, estimate.positive_interval())}
        case Summary.SHARE:
            columns = {name: estimate.mean, **interval_columns(name, estimate.share_interval())}
        case _:
            columns = {name: estimate.mean, **interval_columns(name, estimate.interval())}
    low, high = metric.limits
    # An impossible throughput is shown as it is: a diagnostic is about it.
    if metric.summary is Summary.GEOMETRIC and not low <= estimate.factor <= high:
        return columns
    return {column: float(np.clip(value, low, high)) for column, value in columns.items()}


def _ratios(
    entries: Iterable[Entry], role: Denominator, throughputs: comparison.Throughputs
) -> tuple[dict[str, Estimate], list[Diagnostic]]:
    """Return the log ratios of measured entries, and why others are missing."""
    ratios, diagnostics = {}, []
    for entry in entries:
        configuration_id = entry.configuration.configuration_id
        if configuration_id not in throughputs or entry.denominator(role) is None:
            continue
        try:
            ratios[configuration_id] = comparison.throughput_ratio(entry, role, throughputs)
        except BaselineError as error:
            diagnostics.append(Diagnostic(comparison.RATIOS[role], str(error), Severity.ERROR, configuration_id))
    return ratios, diagnostics


def _significances(
    plan: Plan, ratios: Mapping[Denominator, Mapping[str, Estimate]], disturbed: Set[str]
) -> dict[tuple[Denominator, str], comparison.Significance]:
    """Return the significance by role and identity, corrected together.

    A configuration with the same baseline and reference is compared once. ``disturbed`` configurations are not tested.
    """
    pairs: dict[tuple[Denominator, str], str] = {}
    compared: dict[str, Estimate] = {}
    untested: set[str] = set()
    for role, entry in product(ratios, plan.entries):
        configuration_id, denominator_id = entry.configuration.configuration_id, str(entry.denominator(role))
        if configuration_id in ratios[role] and configuration_id != denominator_id:
            pair = pairs[role, configuration_id] = f"{configuration_id} / {denominator_id}"
            compared[pair] = ratios[role][configuration_id]
            if not disturbed.isdisjoint((configuration_id, denominator_id)):
                untested.add(pair)
    decided = comparison.significances(compared, comparison.widest_equality(plan), untested)
    return {key: decided[pair] for key, pair in pairs.items()}


def planned_table(plan: Plan) -> pd.DataFrame:
    """Return the table of a plan's configurations before any run: without throughputs."""
    unmeasured = {"throughput": math.nan, "token_throughput": math.nan}
    return pd.DataFrame([_planned_columns(entry) | unmeasured for entry in plan.entries])


def _planned_columns(entry: Entry) -> dict[str, Any]:
    configuration = entry.configuration
    return {
        "configuration_id": configuration.configuration_id,
        **entry.parameters,
        "world_size": configuration.world_size,
        "global_batch": configuration.global_batch,
        **compute_values(Source.ENTRY, entry),
    }


def _comparison_columns(
    role: Denominator, throughput: Mapping[str, float], significance: comparison.Significance | None
) -> dict[str, Any]:
    """Return the throughput of a baseline or reference with its interval, and the significance."""
    columns: dict[str, Any] = {f"{role}_{name}": value for name, value in throughput.items()}
    if significance:
        columns[SIGNIFICANCES[role]] = significance.word
        columns[f"{comparison.RATIOS[role]}_equal_within"] = significance.equal_within
        columns[f"{comparison.RATIOS[role]}_rounds_missing"] = significance.rounds_missing
    return columns


class StepParts:
    """The differences of step parts from the reference."""

    def __init__(self, plan: Plan, completed: pd.DataFrame, uneven: Collection[str | None], looks: int) -> None:
        rounds = comparison.assign_rounds(completed, plan)
        self._seconds = comparison.step_samples(completed, rounds, looks)
        self._runs = completed["configuration_id"].value_counts().to_dict()
        self._entries = plan.by_id
        self._uneven = uneven
        self._throughput = throughput_column(completed, plan)
        tokens = completed["token_throughput"].astype(float) * completed["step_seconds"].astype(float)
        self._tokens_of_step: dict[str, float] = tokens.groupby(completed["configuration_id"]).mean().to_dict()

    def is_same_work(self, entry: Entry) -> bool:
        """Return whether a step does the same work as the reference's."""
        configuration_id, reference_id = entry.configuration.configuration_id, str(entry.reference_id)
        if self._throughput == "token_throughput":
            works = [self._tokens_of_step.get(name, 0.0) for name in (configuration_id, reference_id)]
            return math.isclose(*works, rel_tol=SAME_WORK)
        reference = self._entries[reference_id].configuration
        return entry.configuration.global_batch == reference.global_batch

    def differences(self, entry: Entry) -> dict[str, Estimate]:
        """Return the excess of step parts over the reference's."""
        if not self.is_same_work(entry):
            return {}
        configuration_id = entry.configuration.configuration_id
        parts = comparison.differences(self._seconds, configuration_id, str(entry.reference_id))
        if entry.is_reference:
            return dict.fromkeys(parts, comparison.compare_with_itself(self._runs[configuration_id]))
        return parts

    def columns(self, entry: Entry, decided: str | None) -> dict[str, Any]:
        """Return the differences with intervals, and the deciding part."""
        parts = self.differences(entry)
        is_uneven = entry.configuration.configuration_id in self._uneven or str(entry.reference_id) in self._uneven
        columns: dict[str, Any] = {"largest_difference": comparison.explaining_part(decided, parts, is_uneven)}
        for part in filter(parts.__contains__, comparison.PARTS):
            difference = parts[part]
            name = part.replace("_seconds", "_difference_seconds")
            columns |= {name: difference.mean, **interval_columns(name, difference.interval())}
        return columns
