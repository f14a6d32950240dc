"""Curves with rates that a test chooses."""

import math

from dlperf_study.metrics.statistics import Estimate
from dlperf_study.prediction.curves import WEAK, Curve, CurvePoint, Unit


def curve(
    throughputs,
    unit=Unit.NODE,
    devices_per_unit=8,
    scaling=WEAK,
    error=None,
    freedom=2.0,
    within_node=(),
    laboratory="",
):
    """Return a curve with a throughput for each number of units."""

    def point(units, devices, throughput):
        return CurvePoint(units, devices, Estimate(math.log(throughput), error, freedom))

    points = tuple(point(units, units * devices_per_unit, throughput) for units, throughput in throughputs.items())
    inside = tuple(point(1, devices, throughput) for devices, throughput in within_node)
    return Curve(
        "made up",
        "test",
        unit,
        points,
        scaling=scaling,
        within_node=inside,
        configuration_id="abc",
        laboratory=laboratory,
    )
