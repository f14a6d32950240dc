"""Speedup, efficiency and its factors, scaling curves, and diagnostics about curves that rise too fast or fall."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter

import pandas as pd

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.core.wording import rounded
from dlperf_study.metrics.comparison import (
    RATIO_INTERVAL,
    Samples,
    equal_within_metric,
    rounds_missing_metric,
    samples_of,
    verdict_metric,
)
from dlperf_study.metrics.computation import divided_model, trained_alone
from dlperf_study.metrics.metric import RATIO_PAGES, SCALING, C, Gap, Metric, Shown, no_ratio_to
from dlperf_study.metrics.parameters import settings_of, varying
from dlperf_study.metrics.statistics import Estimate, Interval, Sample, interval_columns, log_ratio, significant
from dlperf_study.study.configuration import FIELD_NAMES, OF_WHOLE_PROGRAM
from dlperf_study.study.study import BATCH_OF_SCALING

#: A rise of more than this many times linear is not explained by a cache, input workers or a busy machine.
IMPOSSIBLE_GAIN = 2.0
#: By how much of linear a rate may exceed it before that is said of rates without intervals.
LARGEST_EXCESS_WITHOUT_INTERVAL = 0.03
#: Parameters that may change along a scaling curve; one that varies at the same number of devices splits the curve.
_ALONG_CURVE = ("servers", "nodes", "devices_per_node")
#: Parameters that do not change what is measured.
_WITHOUT_EFFECT = ("repeats", *OF_WHOLE_PROGRAM)
#: Possible explanations of a curve that rises faster than its devices, and of one that falls.
ABOVE_LINEAR = (
    "a smaller share per device fits a cache",
    "more servers or more input workers came along",
    "the smaller configuration was measured on a busy machine or takes another path through the framework",
)
FALLING = (
    "more processes than cores",
    "a link or a server that all share",
    "a slower link between nodes than inside one",
)


def efficiency(speedup: float, devices: int, baseline_devices: int) -> float:
    """Return speedup × baseline devices / devices; 1 is linear scaling."""
    return speedup * baseline_devices / devices


def factor_samples(runs: pd.DataFrame, rounds: pd.Series | None) -> dict[str, dict[str, Sample]]:
    """Return what the efficiency of each completed run grows with, by factor; ``rounds``: see ``samples_of``.

    Only of runs in which computation was measured.
    """
    measured = runs.dropna(subset=["computation_seconds", "load_balance"])
    work = _work_of_device(measured)
    mean_computation = measured["computation_seconds"] * measured["load_balance"]
    with_input = measured["computation_seconds"] + measured["input_seconds"]
    factors = {
        "computation_factor": work / mean_computation,
        "balance_factor": measured["load_balance"],
        "input_factor": measured["computation_seconds"] / with_input,
        "communication_factor": with_input / measured["step_seconds"],
        "factored_efficiency": work / measured["step_seconds"],
    }
    samples: dict[str, dict[str, Sample]] = {}
    for name, values in factors.items():
        samples[name] = samples_of(values, runs["identity"], rounds)
    return samples


def _work_of_device(runs: pd.DataFrame) -> pd.Series:
    """Return what a device trains in a step of each run: its batch, or what a program without one counts."""
    batch = runs["batch_per_device"].astype(float)
    if (batch > 0).all():
        return batch
    rate = runs["throughput"].astype(float).fillna(runs["token_throughput"].astype(float))
    return batch.where(batch > 0, rate * runs["step_seconds"] / runs["world_size"])


def efficiency_factors(factors: Mapping[str, Samples], identity: str, baseline_identity: str) -> dict[str, Estimate]:
    """Return the logarithms of four factors and of their product, the efficiency, each relative to the baseline.

    ``factors``: from ``factor_samples``.
    ``computation_factor``: computation per sample and device, mean over ranks, of the baseline / of these runs.
    ``balance_factor``: mean / slowest rank's computation. ``input_factor``: slowest rank's computation / computation +
    input wait. ``communication_factor``: computation + input wait / step.
    Balance and communication are 1 for a baseline on one device without a server. Source: multiplicative factors of
    the POP Centre of Excellence; here for weak and strong scaling. None of them where the computation of either was
    not measured.
    """
    ratios: dict[str, Estimate] = {}
    for name, samples in factors.items():
        if identity not in samples or baseline_identity not in samples:
            return {}
        ratios[name] = log_ratio(samples[identity], samples[baseline_identity])
    return ratios


def scaling_columns(speedup: float, interval: Interval | None, devices: int, baseline_devices: int) -> dict[str, float]:
    """Return speedup and efficiency, each with the bounds of its interval where there is one."""
    speedups = {"speedup": speedup, **interval_columns("speedup", interval)}
    columns = dict(speedups)
    for name, value in speedups.items():
        columns[name.replace("speedup", "efficiency")] = efficiency(value, devices, baseline_devices)
    return columns


def series_factors(configurations: pd.DataFrame, scaling: str) -> list[str]:
    """Return the columns that separate scaling curves: all parameters except those that change along a curve.

    Of the two batches it is the constant one: per device under weak scaling, global under strong scaling.
    """
    constant_batch, _ = BATCH_OF_SCALING[scaling]
    parameters = (*FIELD_NAMES, *settings_of(configurations))
    factors = [name for name in parameters if name not in (*_ALONG_CURVE, *_WITHOUT_EFFECT)]
    factors[factors.index("batch_per_device")] = constant_batch
    # Comparing rows takes a thousand times longer than counting levels, and most columns have one.
    several = [name for name in _ALONG_CURVE if configurations[name].nunique() > 1]
    compared = ["world_size", *(varying(configurations, factors) if several else ())]
    for name in several:
        if configurations.duplicated(compared).any():
            factors.append(name)
            compared.append(name)
    return factors


def curve_numbers(configurations: pd.DataFrame, factors: Sequence[str]) -> pd.Series:
    """Return the number of the scaling curve of each configuration, from 0 as they appear, by the index.

    ``factors``: what separates curves, from ``series_factors``.
    """
    # To group by the many that have one level would take most of the time.
    separating = varying(configurations, factors)
    if not separating:
        return pd.Series(0, configurations.index)
    return configurations.groupby(separating, sort=False, dropna=False).ngroup()


def differences_from_baseline(configurations: pd.DataFrame, scaling: str) -> dict[str, list[str]]:
    """Return the parameters by which a baseline is not on the curve of its configuration, by identity.

    A speedup over such a baseline is also that of these parameters, and no measure of how a curve scales. A
    configuration without a baseline is left out.
    """
    factors = [name for name in series_factors(configurations, scaling) if name not in _ALONG_CURVE]
    factors = varying(configurations, factors)
    rows = configurations.set_index("identity")
    baselines = rows["baseline_identity"][rows["baseline_identity"].isin(rows.index)]
    differences: dict[str, list[str]] = {str(identity): [] for identity in baselines.index}
    for name in factors:
        levels = pd.Series(pd.factorize(rows[name], use_na_sentinel=False)[0], rows.index)
        is_different = levels[baselines.index].to_numpy() != levels[baselines].to_numpy()
        for identity in baselines.index[is_different]:
            differences[str(identity)].append(name)
    return differences


@dataclass(frozen=True)
class CurvePoint:
    """One point of a scaling curve: its devices, and its rate, in samples/s or in tokens/s."""

    devices: int
    throughput: float


@dataclass(frozen=True)
class CurveStep:
    """Two points of a curve that follow each other, and the estimated logarithm of the ratio of their rates."""

    fewer: CurvePoint
    more: CurvePoint
    log_ratio: Estimate

    @property
    def devices_ratio(self) -> float:
        """How many times the devices."""
        return self.more.devices / self.fewer.devices

    @property
    def gain(self) -> float:
        """The rise of the rate / the rise of its devices; 1 is linear."""
        return self.more.throughput / self.fewer.throughput / self.devices_ratio

    @property
    def null(self) -> float:
        """The logarithm of the nearest ratio of rates that needs no explanation: from 1 to that of the devices."""
        return min(max(self.log_ratio.mean, 0.0), math.log(self.devices_ratio))


def unexplained_steps(steps: Sequence[CurveStep]) -> list[bool]:
    """Return which steps rise faster than their devices or fall by more than their runs explain.

    All of them together are right with a probability of at least 95 %. A step of points without intervals is never one.
    """
    return significant([step.log_ratio for step in steps], [step.null for step in steps])


def curve_diagnostics(
    configurations: pd.DataFrame, throughputs: Mapping[str, Sample], scaling: str, rate: str = "throughput"
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for every step of a curve that rises faster than its devices, or falls.

    ``rate``: the column of the rate that ``throughputs`` are of.
    """
    steps = list(_curve_steps(configurations, throughputs, scaling, rate))
    unexplained = unexplained_steps([step for _, step in steps])
    for (identity, step), is_unexplained in zip(steps, unexplained, strict=True):
        yield from _step_diagnostics(identity, step, is_unexplained, rate)


def _curve_steps(
    configurations: pd.DataFrame, throughputs: Mapping[str, Sample], scaling: str, rate: str
) -> Iterator[tuple[str, CurveStep]]:
    """Yield each step of each curve to more devices, with the identity of the configuration that it leads to."""
    measured = configurations[configurations[rate].notna()]
    points = measured[["identity", "world_size", rate]].sort_values("world_size", kind="stable")
    points.insert(0, "curve", curve_numbers(measured, series_factors(measured, scaling)))
    # The rows of each curve as a frame of their own would take most of the time of a large dataset.
    rows = points.sort_values("curve", kind="stable").itertuples(index=False, name=None)
    for _, curve in groupby(rows, key=itemgetter(0)):
        for (_, fewer_identity, *fewer), (_, identity, *more) in pairwise(curve):
            if more[0] > fewer[0]:
                ratio = log_ratio(throughputs[identity], throughputs[fewer_identity])
                yield identity, CurveStep(CurvePoint(*fewer), CurvePoint(*more), ratio)


def _step_diagnostics(identity: str, step: CurveStep, is_unexplained: bool, rate: str) -> Iterator[Diagnostic]:
    gain, change = step.gain, _change_text(step, rate)
    if gain > IMPOSSIBLE_GAIN:
        message = f"{gain:.3g} times linear: {change}. No cache explains that: one of the two rates is wrong"
        yield Diagnostic("speedup", message, Severity.ERROR, identity=identity)
    elif is_unexplained and step.log_ratio.mean > 0:
        yield Diagnostic("speedup", f"above linear: {change}. {_explanations(ABOVE_LINEAR)}", identity=identity)
    elif step.log_ratio.error is None and gain > 1 + LARGEST_EXCESS_WITHOUT_INTERVAL:
        message = (
            f"above linear: {change}; without intervals of both, chance may explain it. {_explanations(ABOVE_LINEAR)}"
        )
        yield Diagnostic("speedup", message, Severity.NOTE, identity=identity)
    elif is_unexplained:
        yield Diagnostic(rate, f"falls: {change}. {_explanations(FALLING)}", identity=identity)


def _change_text(step: CurveStep, rate: str) -> str:
    """Return how the rate changes from one number of devices to the next."""
    fewer, more = step.fewer, step.more
    unit = "samples/s" if rate == "throughput" else "tokens/s"
    rates = f"{rounded(fewer.throughput)} to {rounded(more.throughput)} {unit}"
    return f"from {fewer.devices} to {more.devices} devices it goes from {rates}"


def _explanations(explanations: tuple[str, ...]) -> str:
    return f"Possible explanations: {', '.join(explanations[:-1])}, or {explanations[-1]}."


def _not_measured_of_both(gap: Gap) -> str:
    if not gap.has("efficiency"):
        return ""
    return (
        trained_alone(gap)
        or divided_model(gap)
        or "computation without exchange was not measured of it and of its baseline"
    )


_FACTORED = Metric(
    "factored_efficiency",
    "Product of factors",
    "its four factors multiplied: the efficiency in the rounds that measured the parts of a step",
    C,
    interval=RATIO_INTERVAL,
    missing=(_not_measured_of_both,),
    compared_with="baseline",
    of_itself="1",
    neutral=1.0,
)


def _factor(part: str, definition: str) -> Metric:
    """Return the metric of one of the four factors of an efficiency."""
    return Metric(
        f"{part}_factor",
        f"{part.capitalize()} factor",
        f"{definition}; one of four factors of the efficiency",
        C,
        interval=RATIO_INTERVAL,
        missing=(_not_measured_of_both,),
        compared_with="baseline",
        of_itself="1",
        neutral=1.0,
    )


_FACTORS = (
    _factor("computation", "mean computation per sample and device of the baseline / of this configuration"),
    _factor("balance", "mean / slowest rank's computation, relative to the baseline's"),
    _factor("input", "slowest rank's computation / computation + input wait, relative to the baseline's"),
    _factor("communication", "computation + input wait / step, relative to the baseline's"),
)
#: The columns of the factors of an efficiency.
FACTORS = tuple(metric.name for metric in _FACTORS)

METRICS = (
    Metric(
        "baseline_throughput",
        "Baseline throughput",
        "throughput of the declared baseline",
        C,
        unit="samples/s",
        interval="of the baseline",
        missing=(no_ratio_to("baseline"),),
        shown=Shown.DENOMINATOR,
        pages=(SCALING,),
    ),
    Metric(
        "speedup",
        "Speedup",
        "throughput / throughput of the declared baseline",
        C,
        unit="×",
        interval=RATIO_INTERVAL,
        missing=(no_ratio_to("baseline"),),
        compared_with="baseline",
        of_itself="1",
        neutral=1.0,
        pages=RATIO_PAGES,
    ),
    Metric(
        "efficiency",
        "Efficiency",
        "speedup × baseline devices / devices",
        C,
        interval=RATIO_INTERVAL,
        missing=(no_ratio_to("baseline"),),
        compared_with="baseline",
        of_itself="1",
        neutral=1.0,
        pages=RATIO_PAGES,
    ),
    _FACTORED,
    *_FACTORS,
    verdict_metric("baseline_verdict", "Against baseline", "baseline"),
    equal_within_metric("speedup", "Speedup", "baseline"),
    rounds_missing_metric("speedup", "Speedup"),
)
