"""Speedup, efficiency and scaling curves, and their diagnostics."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter

import pandas as pd

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.core.wording import counted, rounded
from dlperf_study.metrics import comparison, parameters
from dlperf_study.metrics.metric import RATIO_PAGES, SCALING
from dlperf_study.metrics.statistics import Estimate, Interval, Sample, interval_columns, log_ratio, significant
from dlperf_study.study.configuration import FIELD_NAMES, OF_WHOLE_PROGRAM
from dlperf_study.study.study import BATCH_OF_SCALING

#: A speedup of more than this many times linear makes the batch of one of both doubtful.
MAX_TIMES_LINEAR = 1.3
#: By how much of linear a throughput may exceed it before that is said of throughputs without intervals.
LARGEST_EXCESS_WITHOUT_INTERVAL = 0.03
#: Parameters that may change along a scaling curve; one that varies at the same number of devices splits the curve.
_ALONG_CURVE = ("parameter_servers", "nodes", "devices_per_node")
#: Parameters that do not change what is measured.
_WITHOUT_EFFECT = ("repetitions", *OF_WHOLE_PROGRAM)
ABOVE_LINEAR = (
    "a smaller share per device fits a cache",
    "more parameter servers or input workers were added",
    "the smaller configuration was measured with background load or takes another path through the framework",
)
FALLING = (
    "more processes than cores",
    "a shared interconnect or parameter server",
    "a slower interconnect between nodes than inside a node",
)


def efficiency(speedup: float, devices: int, baseline_devices: int) -> float:
    """Return speedup × baseline devices / devices; 1 is linear scaling."""
    return speedup * baseline_devices / devices


def scaling_columns(speedup: float, interval: Interval | None, devices: int, baseline_devices: int) -> dict[str, float]:
    """Return speedup and efficiency with the bounds of their intervals."""
    speedups = {"speedup": speedup, **interval_columns("speedup", interval)}
    columns = dict(speedups)
    for name, value in speedups.items():
        columns[name.replace("speedup", "efficiency")] = efficiency(value, devices, baseline_devices)
    return columns


def series_factors(configurations: pd.DataFrame, scaling: str) -> list[str]:
    """Return the parameters that separate scaling curves.

    Of the two batches it is the constant one: per device under weak scaling, global under strong scaling.
    """
    constant_batch, _ = BATCH_OF_SCALING[scaling]
    names = pd.Index([*FIELD_NAMES, *parameters.list_settings(configurations)])
    factors = list(names.difference([*_ALONG_CURVE, *_WITHOUT_EFFECT], sort=False))
    factors[factors.index("batch_per_device")] = constant_batch
    # Comparing rows takes a thousand times longer than counting values, and most columns have one.
    several = [name for name in _ALONG_CURVE if configurations[name].nunique() > 1]
    compared = ["world_size", *(parameters.varying(configurations, factors) if several else ())]
    for name in several:
        if configurations.duplicated(compared).any():
            factors.append(name)
            compared.append(name)
    return factors


def curve_numbers(configurations: pd.DataFrame, factors: Sequence[str]) -> pd.Series:
    """Return the number of each configuration's curve, by index."""
    # To group by the many that have one value would take most of the time.
    separating = parameters.varying(configurations, factors)
    if not separating:
        return pd.Series(0, configurations.index)
    return configurations.groupby(separating, sort=False, dropna=False).ngroup()


def differences_from_baseline(configurations: pd.DataFrame, scaling: str) -> dict[str, list[str]]:
    """Return other parameters in which baselines differ, by identity.

    A speedup over such a baseline includes the effect of these parameters. A configuration without a baseline is left
    out.
    """
    factors = pd.Index(series_factors(configurations, scaling)).difference(_ALONG_CURVE, sort=False)
    factors = parameters.varying(configurations, factors)
    rows = configurations.set_index("configuration_id")
    baselines = rows["baseline_id"][rows["baseline_id"].isin(rows.index)]
    differences: dict[str, list[str]] = {str(configuration_id): [] for configuration_id in baselines.index}
    for name in factors:
        values = pd.Series(pd.factorize(rows[name], use_na_sentinel=False)[0], rows.index)
        is_different = values[baselines.index].to_numpy() != values[baselines].to_numpy()
        for configuration_id in baselines.index[is_different]:
            differences[str(configuration_id)].append(name)
    return differences


def doubtful_speedups(configurations: pd.DataFrame, scaling: str) -> Iterator[Diagnostic]:
    """Yield an error for each significant speedup above 1.3 × linear."""
    differences, rows = differences_from_baseline(configurations, scaling), configurations.set_index("configuration_id")
    for configuration_id, speedup in rows[rows["efficiency"] > MAX_TIMES_LINEAR].iterrows():
        devices, baseline_devices = speedup["world_size"], rows["world_size"][speedup["baseline_id"]]
        is_chance = speedup["efficiency_low"] <= 1
        if differences[str(configuration_id)] or devices <= baseline_devices or is_chance:
            continue
        sizes = f"on {devices} devices, over {counted(baseline_devices, 'device')}"
        message = (
            f"the speedup is {speedup['efficiency']:.3g} times linear {sizes}. Is the batch size right, and is each "
            "sample of a step counted once?"
        )
        yield Diagnostic("speedup", message, Severity.ERROR, configuration_id=str(configuration_id))


@dataclass(frozen=True)
class CurvePoint:
    """One point of a scaling curve: devices and throughput."""

    devices: int
    throughput: float


@dataclass(frozen=True)
class CurveStep:
    """Two successive points of a curve, and their logarithmic ratio."""

    fewer: CurvePoint
    more: CurvePoint
    log_ratio: Estimate

    @property
    def devices_ratio(self) -> float:
        """How many times the devices."""
        return self.more.devices / self.fewer.devices

    @property
    def gain(self) -> float:
        """The rise of the throughput / the rise of its devices; 1 is linear."""
        return self.more.throughput / self.fewer.throughput / self.devices_ratio

    @property
    def null(self) -> float:
        """The logarithm of the nearest ratio from 1 to linear."""
        return min(max(self.log_ratio.mean, 0.0), math.log(self.devices_ratio))


def unexplained_steps(steps: Sequence[CurveStep]) -> list[bool]:
    """Return which steps are significantly super-linear or falling."""
    return significant([step.log_ratio for step in steps], [step.null for step in steps])


def curve_diagnostics(
    configurations: pd.DataFrame,
    throughputs: Mapping[str, Sample],
    scaling: str,
    throughput: str = "throughput",
    doubtful: Collection[str | None] = (),
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for every super-linear or falling step."""
    curve_steps = _curve_steps(configurations, throughputs, scaling, throughput)
    steps = [(configuration_id, step) for configuration_id, step in curve_steps if configuration_id not in doubtful]
    unexplained = unexplained_steps([step for _, step in steps])
    for (configuration_id, step), is_unexplained in zip(steps, unexplained, strict=True):
        yield from _step_diagnostics(configuration_id, step, is_unexplained, throughput)


def _curve_steps(
    configurations: pd.DataFrame, throughputs: Mapping[str, Sample], scaling: str, throughput: str
) -> Iterator[tuple[str, CurveStep]]:
    """Yield each step of each curve to more devices, with the identity of the configuration that it leads to."""
    measured = configurations[configurations[throughput].notna()]
    points = measured[["configuration_id", "world_size", throughput]].sort_values("world_size", kind="stable")
    points.insert(0, "curve", curve_numbers(measured, series_factors(measured, scaling)))
    # The rows of each curve as a frame of their own would take most of the time of a large dataset.
    rows = points.sort_values("curve", kind="stable").itertuples(index=False, name=None)
    for _, curve in groupby(rows, key=itemgetter(0)):
        for (_, fewer_identity, *fewer), (_, configuration_id, *more) in pairwise(curve):
            if more[0] > fewer[0]:
                ratio = log_ratio(throughputs[configuration_id], throughputs[fewer_identity])
                yield configuration_id, CurveStep(CurvePoint(*fewer), CurvePoint(*more), ratio)


def _step_diagnostics(
    configuration_id: str, step: CurveStep, is_unexplained: bool, throughput: str
) -> Iterator[Diagnostic]:
    fewer, more, gain = step.fewer, step.more, step.gain
    unit = "samples/s" if throughput == "throughput" else "tokens/s"
    throughputs = f"{rounded(fewer.throughput)} to {rounded(more.throughput)} {unit}"
    change = f"from {fewer.devices} to {more.devices} devices it changes from {throughputs}"
    if is_unexplained and step.log_ratio.mean > 0:
        yield Diagnostic(
            "speedup", f"above linear: {change}. {_explanations(ABOVE_LINEAR)}", configuration_id=configuration_id
        )
    elif step.log_ratio.error is None and gain > 1 + LARGEST_EXCESS_WITHOUT_INTERVAL:
        message = (
            f"above linear: {change}; without intervals of both, chance may explain it. {_explanations(ABOVE_LINEAR)}"
        )
        yield Diagnostic("speedup", message, Severity.NOTE, configuration_id=configuration_id)
    elif is_unexplained:
        yield Diagnostic(
            throughput, f"throughput regression: {change}. {_explanations(FALLING)}", configuration_id=configuration_id
        )


def _explanations(explanations: tuple[str, ...]) -> str:
    return f"Possible explanations: {', '.join(explanations[:-1])}, or {explanations[-1]}."


METRICS = (
    comparison.denominator_metric("baseline", "throughput", pages=(SCALING,)),
    comparison.ratio_metric(
        "speedup",
        "Speedup",
        "throughput / throughput of the declared baseline",
        "baseline",
        pages=RATIO_PAGES,
        unit="×",
    ),
    comparison.ratio_metric(
        "efficiency", "Efficiency", "speedup × baseline devices / devices; 1 is linear", "baseline", pages=RATIO_PAGES
    ),
    *comparison.outcome_metrics("baseline", "speedup", "Speedup", "baseline_significance"),
)
