"""Sentences that several checks say."""

from collections.abc import Iterable

from dlperf_study.analysis.audit.cell import THROUGHPUT, Cell
from dlperf_study.analysis.audit.facts import Peak, Work
from dlperf_study.analysis.audit.limits import needed
from dlperf_study.analysis.audit.results import Rate
from dlperf_study.analysis.scaling import MARGIN


def step(fewer: Rate, more: Rate) -> str:
    """Return a step of a curve in words and numbers."""
    name = "rate" if fewer.cell.metric == THROUGHPUT else fewer.cell.metric
    rise, devices = more.cell.value / fewer.cell.value, more.point.devices / fewer.point.devices
    return (
        f"from {fewer.point.devices} to {more.point.devices} devices the {name} goes from {fewer.cell.text} to "
        f"{more.cell.text}: {rise:.4g} times with {devices:g} times the devices"
    )


def bounds_of(*rates: Rate) -> str:
    """Return what is known of the errors of rates, as the subject of a sentence."""
    kinds = {rate.repeated for rate in rates}
    if kinds == {True}:
        return "the intervals of their runs"
    return f"errors of {MARGIN:.0%}, assumed where no runs are listed,"


def texts(cells: Iterable[Cell]) -> str:
    """Return what was printed in cells, one after the other."""
    return ", ".join(cell.text for cell in cells)


def demand(rate: Cell, work: Work, peak: Peak) -> str:
    """Return what a rate asks of each device, against what that can do."""
    flops = needed(rate, work)
    return (
        f"{rate.text} samples/s on {rate.world_size} × {work.flops / 1e9:.3g} GFLOP ({work.source}) take "
        f"{flops / 1e9:,.0f} GFLOP/s of each, {flops / peak.flops:.3g} times the peak of {peak.flops / 1e9:,.0f} "
        f"({peak.source})"
    )
