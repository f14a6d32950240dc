"""Efficiency against the declared baseline, scaling curves, and their points that no law explains."""

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

#: What a missing interval is replaced by when two points are compared: this share of the value to each side.
MARGIN = 0.03
#: More than this many times linear no cache, input worker or busy machine explains.
IMPOSSIBLE_GAIN = 2.0
#: What may change along a scaling curve; a factor among them that varies at equal devices splits it.
_ALONG = ("servers", "nodes", "devices_per_node")
#: How often something was run says nothing of what was run.
_NOT_ASKED = ("repeats",)


def efficiency(speedup: float, devices: int, baseline_devices: int) -> float:
    """Return speedup × baseline devices / devices; 1 is linear scaling."""
    return speedup * baseline_devices / devices


def scaling_columns(speedup: float, interval: Interval | None, devices: int, baseline_devices: int) -> dict[str, float]:
    """Return speedup and efficiency, each with the bounds of its interval where there is one."""
    speedups = {"speedup": speedup, **interval_columns("speedup", interval)}
    efficiencies = {
        name.replace("speedup", "efficiency"): efficiency(value, devices, baseline_devices)
        for name, value in speedups.items()
    }
    return speedups | efficiencies


def series_factors(configurations: pd.DataFrame, scaling: str) -> list[str]:
    """Return the columns that tell scaling curves apart: all parameters but what changes along a curve.

    Of the two batches it is the one that stays: per device under weak scaling, global under strong.
    """
    kept, _ = BATCH_OF_SCALING[scaling]
    telling = [name for name in FIELD_NAMES if name not in (*_ALONG, *_NOT_ASKED)]
    factors = [kept if name == "batch_per_device" else name for name in telling]
    for name in _ALONG:
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
class Point:
    """One point of a scaling curve: its devices, its rate in samples/s and the bounds between which that lies."""

    devices: int
    throughput: float
    low: float
    high: float


def gain(fewer: Point, more: Point) -> float:
    """Return by which factor a rate rises more than its devices."""
    return more.throughput / fewer.throughput * fewer.devices / more.devices


def above_linear(fewer: Point, more: Point) -> bool:
    """Say whether a rate rises faster than its devices, whatever it is within its bounds."""
    return more.low > fewer.high * more.devices / fewer.devices


def falls(fewer: Point, more: Point) -> bool:
    """Say whether a rate falls as devices are added, whatever it is within its bounds."""
    return more.devices > fewer.devices and more.high < fewer.low


def point(devices: int, throughput: float, low: float | None, high: float | None) -> Point:
    """Return a point, with a margin for its bounds where it has no interval."""
    if low is None or high is None or np.isnan(low):
        return Point(devices, throughput, throughput * (1 - MARGIN), throughput * (1 + MARGIN))
    return Point(devices, throughput, low, high)


def _step_diagnostics(identity: str, fewer: Point, more: Point) -> Iterator[Diagnostic]:
    seen = f"from {fewer.devices} to {more.devices} devices it goes from "
    seen += f"{rounded(fewer.throughput)} to {rounded(more.throughput)} samples/s"
    if gain(fewer, more) > IMPOSSIBLE_GAIN:
        message = f"{gain(fewer, more):.3g} times linear: {seen}. No cache explains that: one of the two rates is wrong"
        yield Diagnostic("speedup", message, Severity.ERROR, identity=identity)
    elif above_linear(fewer, more):
        yield Diagnostic("speedup", f"above linear: {seen}. {_innocent(ABOVE_LINEAR)}", identity=identity)
    if falls(fewer, more):
        yield Diagnostic("throughput", f"falls: {seen}. {_innocent(FALLING)}", identity=identity)


#: What makes a curve rise faster than its devices, or fall, although the numbers are right.
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


def _innocent(explanations: tuple[str, ...]) -> str:
    return f"It may be innocent: {', '.join(explanations[:-1])}, or {explanations[-1]}."
