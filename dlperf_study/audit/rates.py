"""Throughputs of a table as points of scaling curves, with what is known of their runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlperf_study.analysis.scaling import CurvePoint, CurveStep
from dlperf_study.analysis.statistics import MINIMUM_RUNS, Estimate, Sample, log_ratio
from dlperf_study.audit.result_cell import ResultCell, values_of


@dataclass(frozen=True)
class Rate:
    """A throughput as a point of a scaling curve, the estimate of its logarithm, and its runs if there are 3."""

    cell: ResultCell
    point: CurvePoint
    logarithm: Estimate
    runs: Sample | None = None


def curve_step(fewer: Rate, more: Rate) -> CurveStep:
    """Return the step from one rate to that of more devices.

    Runs that were measured in rounds are compared within these; a rate without its runs is independent of any other.
    """
    if fewer.runs and more.runs:
        return CurveStep(fewer.point, more.point, log_ratio(more.runs, fewer.runs))
    return CurveStep(fewer.point, more.point, more.logarithm.minus(fewer.logarithm))


def _sample(runs: Sequence[ResultCell]) -> Sample | None:
    """Return the rates of at least 3 runs, with their rounds if they are of a measured study; else None.

    Only the runs of a measured study have an order; those that were measured in blocks or by hand are in no round.
    """
    rates = np.array(values_of(runs))
    if rates.size < MINIMUM_RUNS or rates.min() <= 0:
        return None
    # A source may drop the last zeros: 80 next to 79.9 is 80.0.
    resolution = min(run.printed.resolution for run in runs)
    if all(run.get("order") is None for run in runs):
        return Sample(rates, resolution=resolution)
    rounds = [run.get("round") for run in runs]
    return Sample(rates, np.array(rounds, dtype=np.float64), resolution)


def _printed_logarithm(cell: ResultCell) -> Estimate:
    """Return the estimate of the logarithm of a rate whose runs are unknown, from its interval if it has one."""
    low, high = cell.get("low"), cell.get("high")
    if low is None or high is None or not 0 < low <= high:
        return Estimate(math.log(cell.value))
    runs = cell.get("runs_completed") or cell.get("runs")
    return Estimate.of_printed(cell.value, low, high, runs, cell.printed.resolution / cell.value)


def rate_of(cell: ResultCell, cells_of_runs: Sequence[ResultCell]) -> Rate:
    """Return a positive throughput with the estimate of its runs, else of the printed interval, else without."""
    runs = _sample(cells_of_runs)
    logarithm = runs.logarithms.estimate if runs else _printed_logarithm(cell)
    return Rate(cell, CurvePoint(cell.world_size or 0, cell.value), logarithm, runs)
