"""What is predicted of sizes that were not measured: a table of a study's curves, and the same as text."""

from collections.abc import Iterator, Sequence

from dlperf_study.core.wording import counted
from dlperf_study.dataset.cells import bounded_value
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.statistics import bounded
from dlperf_study.prediction.curves import Curve, Unit
from dlperf_study.prediction.intervals import COVERAGE, Case, interval, tested_score
from dlperf_study.prediction.node_ring import predicted_log_rate
from dlperf_study.prediction.prediction import Prediction, Refusal, refused_curves, select_predictions
from dlperf_study.report.formatting import MINUS, format_bounded, integer, listed
from dlperf_study.report.predictions import own_cases, study_predictions
from dlperf_study.report.tables.further_measurements import narrowing_lines
from dlperf_study.report.tables.table import Cell, Heading, Table, as_text

_SHARE = f"{100 * COVERAGE:g} %"
METHOD = (
    "Predicted by the ring of nodes (devices, inside one node): what a step waits for grows with (m − 1)/m of m nodes, "
    "from the smallest and the largest measured size. Nothing is fitted."
)
INTERVALS = (
    f"{_SHARE} intervals: from published series of other laboratories, predicted in the same way; each laboratory "
    "weighs the same, and the error of the measured rates is added."
)
_NO_ERROR = "The measured rates have no interval, as of fewer than three runs: what runs differ by is not in these."
_ONE_RUN = "fewer than three runs: no interval"
_NOTHING = "No series has a second size, so nothing can be predicted."


def predictions(dataset: Dataset) -> Table:
    """Return what is predicted of sizes that a study has not measured, as far as claims reach."""
    return prediction_table(study_predictions(dataset))


def not_predicted(dataset: Dataset) -> Table:
    """Return the series of a study of which nothing is predicted, and which point each needs."""
    headings = (Heading("Series"), Heading("Not predicted"))
    rows = []
    for result in study_predictions(dataset):
        if isinstance(result, Refusal):
            rows.append((Cell(f"{result.curve.title}, {_measured(result.curve)}"), Cell(result.reason)))
    empty = "Every series is predicted."
    return Table("not-predicted", "What can't be predicted", "", headings, tuple(rows), empty=empty)


def back_test(dataset: Dataset) -> Table:
    """Return the largest size of each series of a study that has three, as its smaller ones predict it."""
    rows = [_case_row(dataset, case) for case in own_cases(dataset)]
    unit = COLUMNS[dataset.rate].unit
    headings = (
        Heading("Series"),
        Heading("From"),
        Heading("Size"),
        Heading("Predicted", unit, numeric=True, interval=True),
        Heading("Measured", unit, numeric=True, interval=True),
        Heading("Error", "%", numeric=True),
    )
    caption = f"Intervals of predictions are {_SHARE}, those of measured rates 95 %."
    empty = "No series has three sizes, of which the largest could be predicted from the others."
    title = "The largest size, predicted from the smaller ones"
    return Table("back-test", title, caption, headings, tuple(rows), empty=empty)


def _case_row(dataset: Dataset, case: Case) -> tuple[Cell, ...]:
    """Return the largest size of a series as the ring of nodes predicts it, as it was measured, and the error."""
    curve, target = case.curve, case.target
    log_rate = predicted_log_rate(curve, target.units)
    score = tested_score(curve, target.units)
    reason = score if isinstance(score, str) else ""
    bounds = None if isinstance(score, str) else interval(curve, score, log_rate)
    predicted = Cell.of(bounded(log_rate.factor, bounds), reason)
    measured = bounded_value(dataset.configuration_rows[curve.identity], dataset.rate)
    return (
        Cell(curve.title),
        Cell(listed(str(point.units) for point in curve.points)),
        Cell(counted(target.units, curve.unit)),
        predicted,
        Cell.of(measured, _ONE_RUN),
        Cell(f"{100 * (log_rate.factor / target.rate - 1):+.1f}".replace("-", MINUS)),
    )


def prediction_table(results: Sequence[Prediction | Refusal]) -> Table:
    """Return the predicted sizes of all curves that can be predicted, a group for each."""
    rows, groups = [], []
    for prediction in select_predictions(results):
        for size in prediction.sizes:
            name, devices = Cell(counted(size.units, prediction.curve.unit)), Cell(integer(size.devices))
            rate = Cell.of(bounded(size.rate, size.rate_interval), size.reason)
            efficiency = Cell.of(bounded(size.efficiency, size.efficiency_interval), size.reason)
            rows.append((name, devices, rate, efficiency))
            groups.append(prediction.curve.title)
    rate_unit = listed(sorted({prediction.curve.rate_unit for prediction in select_predictions(results)}))
    headings = (
        Heading("Size"),
        Heading("Devices", numeric=True),
        Heading("Throughput", rate_unit, numeric=True, interval=True),
        Heading("Efficiency", numeric=True, interval=True),
    )
    title, caption = "Sizes that were not measured", f"{_SHARE} intervals. {METHOD}"
    notes = tuple(_notes(results))
    return Table("predictions", title, caption, headings, tuple(rows), notes, _NOTHING, tuple(groups))


def describe(results: Sequence[Prediction | Refusal]) -> str:
    """Return predictions and refusals as text for the command line; series that one reason refuses are listed once."""
    parts = []
    for prediction in select_predictions(results):
        title = f"{prediction.curve.title}: {_measured(prediction.curve)}"
        lines = [title, as_text(prediction_table([prediction])), *_reasons(prediction), *narrowing_lines(prediction)]
        parts.append("\n".join(lines))
    for reason, curves in refused_curves(results).items():
        series = (f"  {curve.title}, {_measured(curve)}" for curve in curves)
        parts.append("\n".join([f"not predicted: {reason}", *series]))
    if any(select_predictions(results)):
        parts.append(f"{METHOD}\n{INTERVALS}")
    return "\n\n".join(parts)


def _reasons(prediction: Prediction) -> Iterator[str]:
    """Yield why sizes have no interval, those of one reason together."""
    sizes: dict[str, list[int]] = {}
    for size in prediction.sizes:
        if size.reason:
            sizes.setdefault(size.reason, []).append(size.units)
    for reason, units in sizes.items():
        yield f"{listed(map(str, units))} {_plural(prediction.curve.unit, units)}: {reason}"


def _measured(curve: Curve) -> str:
    """Return which sizes of a curve were measured, and the rate of the largest."""
    sizes = listed(str(point.units) for point in curve.points)
    devices = f" of {counted(curve.devices_per_unit, 'device')}" if curve.unit == Unit.NODE else ""
    units = _plural(curve.unit, [point.units for point in curve.points])
    rate = format_bounded(curve.last.rate)[0]
    largest = f" on {curve.points[-1].units}" if len(curve.points) > 1 else ""
    return f"measured on {sizes} {units}{devices}, {rate} {curve.rate_unit}{largest}"


def _plural(unit: Unit, units: Sequence[int]) -> str:
    return str(unit) if list(units) == [1] else f"{unit}s"


def _notes(results: Sequence[Prediction | Refusal]) -> Iterator[str]:
    """Yield what efficiencies are relative to, the largest size with an interval, and what intervals leave out."""
    for prediction in select_predictions(results):
        curve = prediction.curve
        name = "" if len(results) == 1 else f"{curve.title}: "
        reach = "No larger size has an interval."
        if prediction.largest_tested != curve.last.units:
            reach = f"The largest size with an interval: {counted(prediction.largest_tested, curve.unit)}."
        yield f"{name}Efficiency is relative to {counted(prediction.reference.devices, 'device')}. {reach}"
        has_intervals = any(size.rate_interval for size in prediction.sizes)
        used = (curve.points[0], curve.last) if curve.identity else ()
        if has_intervals and any(point.log_rate.error is None for point in used):
            yield f"{name}{_NO_ERROR}"
