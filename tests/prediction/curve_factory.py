"""Curves with rates that a test chooses."""

import math

from dlperf_study.metrics.statistics import Estimate
from dlperf_study.prediction.curves import WEAK, Curve, CurvePoint, Unit


def curve(
    rates, unit=Unit.NODE, devices_per_unit=8, scaling=WEAK, error=None, freedom=2.0, within_node=(), laboratory=""
):
    """Return a curve with a rate for each number of units."""

    def point(units, devices, rate):
        return CurvePoint(units, devices, Estimate(math.log(rate), error, freedom))

    points = tuple(point(units, units * devices_per_unit, rate) for units, rate in rates.items())
    inside = tuple(point(1, devices, rate) for devices, rate in within_node)
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
