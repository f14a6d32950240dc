"""Efficiency, scaling curves, and diagnostics about curves that rise faster than their devices, or fall."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from dlperf_study.analysis.statistics import Interval, interval_columns
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.study.configuration import FIELD_NAMES
from dlperf_study.study.study import BATCH_OF_SCALING
from dlperf_study.wording import rounded

#: The relative error that is assumed for a point without an interval when two points are compared.
MARGIN = 0.03
#: A rise of more than this many times linear is not explained by a cache, input workers or a busy machine.
IMPOSSIBLE_GAIN = 2.0
#: Parameters that may change along a scaling curve; one that varies at the same number of devices splits the curve.
_ALONG_CURVE = ("servers", "nodes", "devices_per_node")
#: Parameters that do not change what is measured.
_WITHOUT_EFFECT = ("repeats",)
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
    factors = [name for name in FIELD_NAMES if name not in (*_ALONG_CURVE, *_WITHOUT_EFFECT)]
    factors[factors.index("batch_per_device")] = constant_batch
    for name in _ALONG_CURVE:
        if configurations.duplicated([*factors, "world_size"]).any() and configurations[name].nunique() > 1:
            factors.append(name)
    return factors


def curve_diagnostics(configurations: pd.DataFrame, scaling: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic for every step of a curve that rises faster than its devices, or falls."""
    measured = configurations[configurations["throughput"].notna()]
    ordered = measured.sort_values("world_size", kind="stable")
    curve = ["world_size", "throughput", "throughput_low", "throughput_high"]
    points = [point(*values) for values in ordered[curve].itertuples(index=False)]
    identities = ordered["identity"].tolist()
    for positions in ordered.groupby(series_factors(measured, scaling), sort=False, dropna=False).indices.values():
        for fewer, more in pairwise(positions):
            yield from _step_diagnostics(identities[more], points[fewer], points[more])


@dataclass(frozen=True)
class CurvePoint:
    """One point of a scaling curve: its devices, its rate in samples/s, and the bounds of the rate."""

    devices: int
    throughput: float
    low: float
    high: float


def gain(fewer: CurvePoint, more: CurvePoint) -> float:
    """Return the rise of a rate / the rise of its devices; 1 is linear."""
    return more.throughput / fewer.throughput * fewer.devices / more.devices


def above_linear(fewer: CurvePoint, more: CurvePoint) -> bool:
    """Return whether a rate rises faster than its devices for all values within its bounds."""
    return more.low > fewer.high * more.devices / fewer.devices


def falls(fewer: CurvePoint, more: CurvePoint) -> bool:
    """Return whether a rate falls as devices are added for all values within its bounds."""
    return more.devices > fewer.devices and more.high < fewer.low


def point(devices: int, throughput: float, low: float | None, high: float | None) -> CurvePoint:
    """Return a point; without an interval its bounds are MARGIN above and below it."""
    if low is None or high is None or np.isnan(low):
        return CurvePoint(devices, throughput, throughput * (1 - MARGIN), throughput * (1 + MARGIN))
    return CurvePoint(devices, throughput, low, high)


def _step_diagnostics(identity: str, fewer: CurvePoint, more: CurvePoint) -> Iterator[Diagnostic]:
    step = f"from {fewer.devices} to {more.devices} devices it goes from "
    step += f"{rounded(fewer.throughput)} to {rounded(more.throughput)} samples/s"
    if gain(fewer, more) > IMPOSSIBLE_GAIN:
        message = f"{gain(fewer, more):.3g} times linear: {step}. No cache explains that: one of the two rates is wrong"
        yield Diagnostic("speedup", message, Severity.ERROR, identity=identity)
    elif above_linear(fewer, more):
        yield Diagnostic("speedup", f"above linear: {step}. {_explanations(ABOVE_LINEAR)}", identity=identity)
    if falls(fewer, more):
        yield Diagnostic("throughput", f"falls: {step}. {_explanations(FALLING)}", identity=identity)


def _explanations(explanations: tuple[str, ...]) -> str:
    return f"Possible explanations: {', '.join(explanations[:-1])}, or {explanations[-1]}."
