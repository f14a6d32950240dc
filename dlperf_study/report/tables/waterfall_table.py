"""The table of what each cause adds to the ideal step of a configuration."""

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.statistics import Estimate, Interval
from dlperf_study.metrics.waterfall import CAUSES
from dlperf_study.report.formatting import Unit, unit_of
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.report.waterfalls import waterfalls

TITLE = "From ideal to measured"
#: What the rows of a waterfall are called, from the first to the last.
STEPS = ("Ideal step", *CAUSES.values(), "Measured step")
_CAPTION = "The ideal step and what each cause adds to it, with 95 % intervals; together they are the measured step."
_NOTES = (
    "Ideal: the step of the baseline, for as much work of a device; in the runs that measured the parts of both.",
    "Scaling of computation: mean over ranks − that of the baseline, as where devices share memory or power.",
    "Load imbalance: by how much the slowest rank computes longer than the mean.",
    "Exposed exchange: what of the exchange is exposed, without the waiting for jitter and the drain.",
    "The ideal step and all causes add up to the measured step.",
)
NOTHING = "Of no configuration and its baseline the parts of a step were measured."
_NO_INTERVAL = "fewer than three common rounds: no interval"


def causes(dataset: Dataset) -> Table:
    """Return the ideal and the measured step of each configuration, with what each cause adds."""
    unit, labels = step_unit(dataset), configuration_labels(dataset)
    times = [Heading(name, unit.symbol, numeric=True, interval=True) for name in STEPS]
    rows = []
    for identity, steps in waterfalls(dataset).items():
        causes_of_step = [_cell(cause, cause.interval(), unit) for cause in steps.causes.values()]
        ideal, measured = (_cell(step, step.positive_interval(), unit) for step in (steps.ideal, steps.measured))
        rows.append((Cell(labels[identity]), ideal, *causes_of_step, measured))
    return Table("causes", TITLE, _CAPTION, (Heading("Configuration"), *times), tuple(rows), _NOTES, NOTHING)


def step_unit(dataset: Dataset) -> Unit:
    """Return the unit in which steps and their parts are printed."""
    return unit_of("broken_down_step_seconds", dataset.configurations["broken_down_step_seconds"])


def _cell(estimate: Estimate, interval: Interval | None, unit: Unit) -> Cell:
    if interval is None:
        # What no run has at all is nothing, and needs no interval.
        return Cell.of((estimate.mean / unit.size, None, None), _NO_INTERVAL if estimate.mean else "")
    return Cell.of((estimate.mean / unit.size, interval.low / unit.size, interval.high / unit.size), "")
