"""Efficiency against the declared baseline, scaling curves, and their points that no law explains."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.logs.complaint import Complaint
from dlperf_study.study.configuration import FIELD_NAMES
from dlperf_study.study.study import BATCH_OF_SCALING

#: What a missing interval is replaced by when two points are compared: this share of the value to each side.
MARGIN = 0.03
#: What may change along a scaling curve; a factor among them that varies at equal devices splits it.
_ALONG = ("servers", "nodes", "devices_per_node")


def efficiency(speedup: float, devices: int, baseline_devices: int) -> float:
    """Return speedup × baseline devices / devices; 1 is linear scaling."""
    return speedup * baseline_devices / devices


def series_factors(configurations: pd.DataFrame, scaling: str) -> list[str]:
    """Return the columns that tell scaling curves apart: all parameters but what changes along a curve.

    Of the two batches it is the one that stays: per device under weak scaling, global under strong.
    """
    kept, _ = BATCH_OF_SCALING[scaling]
    factors = [kept if name == "batch_per_device" else name for name in FIELD_NAMES if name not in _ALONG]
    for name in _ALONG:
        if configurations.duplicated([*factors, "world_size"]).any() and configurations[name].nunique() > 1:
            factors.append(name)
    return factors


def curve_complaints(configurations: pd.DataFrame, scaling: str) -> Iterator[Complaint]:
    """Yield a complaint for every step of a curve that rises faster than its devices, or falls."""
    measured = configurations[configurations["throughput"].notna()]
    ordered = measured.sort_values("world_size", kind="stable")
    points = ordered[["identity", "world_size", "throughput", "throughput_low", "throughput_high"]].to_dict("records")
    for positions in ordered.groupby(series_factors(measured, scaling), sort=False).indices.values():
        for fewer, more in pairwise(positions):
            yield from _step_complaints(points[fewer], points[more])


def _step_complaints(fewer: dict[Any, Any], more: dict[Any, Any]) -> Iterator[Complaint]:
    (few_low, few_high), (more_low, more_high) = _bounds(fewer), _bounds(more)
    devices = more["world_size"] / fewer["world_size"]
    seen = f"from {fewer['world_size']} to {more['world_size']} devices it goes from "
    seen += f"{fewer['throughput']:.4g} to {more['throughput']:.4g} samples/s"
    if more_low > few_high * devices:
        yield Complaint("speedup", f"above linear: {seen}. {_ABOVE_LINEAR}", identity=more["identity"])
    if devices > 1 and more_high < few_low:
        yield Complaint("throughput", f"falls: {seen}. {_FALLING}", identity=more["identity"])


_ABOVE_LINEAR = (
    "It may be innocent: a smaller share per device fits a cache, more servers or more input workers came along, "
    "or the smaller configuration was measured on a busy machine or takes another path through the framework."
)
_FALLING = (
    "It may be innocent: more processes than cores, a link or a server that all share, or a slower link between "
    "nodes than inside one."
)


def _bounds(row: dict[Any, Any]) -> tuple[float, float]:
    """Return the interval of a row's throughput, or a margin around it where there is none."""
    value = row["throughput"]
    known = not np.isnan(row["throughput_low"])
    return (row["throughput_low"], row["throughput_high"]) if known else (value * (1 - MARGIN), value * (1 + MARGIN))
