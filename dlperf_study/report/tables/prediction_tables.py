"""What is predicted of sizes that were not measured: a table of a study's curves, and the same as text."""

from collections.abc import Iterator, Sequence

from dlperf_study.core.wording import counted
from dlperf_study.dataset.cells import bounded_value
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.statistics import bounded
from dlperf_study.prediction.curves import Curve, Unit
from dlperf_study.prediction.intervals import COVERAGE, Case, interval, tested_score
from dlperf_study.prediction.narrowing import compute_half_width, narrowings
from dlperf_study.prediction.node_ring import predicted_log_rate
from dlperf_study.prediction.prediction import PredictedSize, Prediction, Refusal, refused_curves, select_predictions
from dlperf_study.report.formatting import MINUS, format_bounded, integer, listed
from dlperf_study.report.predictions import own_cases, study_predictions
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
_FURTHER_CAPTION = (
    f"Half-widths of intervals of {_SHARE}, upwards, as they are now and as they would be about. A further size is "
    "taken to give what is predicted, with the error of the largest measured one; more runs to have the mean and "
    "deviation of those there are."
)
_ONE_RUN = "fewer than three runs: no interval"
_NOTHING = "No series has a second size, so nothing can be predicted."


def predictions(dataset: Dataset) -> Table:
    """Return the predictions of sizes that a study has not measured."""
    return prediction_table(study_predictions(dataset))


def not_predicted(dataset: Dataset) -> Table:
    """Return the series without predictions, and why."""
    headings = (Heading("Series"), Heading("Not predicted"))
    rows = []
    for result in study_predictions(dataset):
        if isinstance(result, Refusal):
            rows.append((Cell(f"{result.curve.title}, {_measured(result.curve)}"), Cell(result.reason)))
    empty = "Every series is predicted."
    return Table("not-predicted", "What can't be predicted", "", headings, tuple(rows), empty=empty)


def back_test(dataset: Dataset) -> Table:
    """Return the largest size of each series, predicted from smaller ones."""
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
    curve, target = case.curve, case.target
    log_rate = predicted_log_rate(curve, target.units)
    score = tested_score(curve, target.units)
    reason = ""
    if isinstance(score, str):
        reason = score
    bounds = None
    if not isinstance(score, str):
        bounds = interval(curve, score, log_rate)
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
    """Return the predicted sizes of all curves, a group for each."""
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
    """Return predictions and refusals as text for the command line."""
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
    """Return the measured sizes of a curve and the largest's throughput."""
    sizes = listed(str(point.units) for point in curve.points)
    devices = ""
    if curve.unit == Unit.NODE:
        devices = f" of {counted(curve.devices_per_unit, 'device')}"
    units = _plural(curve.unit, [point.units for point in curve.points])
    rate = format_bounded(curve.last.rate)[0]
    largest = ""
    if len(curve.points) > 1:
        largest = f" on {curve.points[-1].units}"
    return f"measured on {sizes} {units}{devices}, {rate} {curve.rate_unit}{largest}"


def _plural(unit: Unit, units: Sequence[int]) -> str:
    if list(units) == [1]:
        return str(unit)
    return f"{unit}s"


def _notes(results: Sequence[Prediction | Refusal]) -> Iterator[str]:
    """Yield notes on efficiency, the largest tested size, and errors left out."""
    for prediction in select_predictions(results):
        curve = prediction.curve
        name = "" if len(results) == 1 else f"{curve.title}: "
        reach = "No larger size has an interval."
        if prediction.largest_tested != curve.last.units:
            reach = f"The largest size with an interval: {counted(prediction.largest_tested, curve.unit)}."
        yield f"{name}Efficiency is relative to {counted(prediction.reference.devices, 'device')}. {reach}"
        has_intervals = any(size.rate_interval for size in prediction.sizes)
        errors = (curve.points[0].log_rate.error, curve.last.log_rate.error)
        if curve.identity and has_intervals and None in errors:
            yield f"{name}{_NO_ERROR}"


def further_measurements(dataset: Dataset) -> Table:
    """Return what further measurements would narrow each prediction's interval to."""
    rows, groups = [], []
    for prediction in select_predictions(study_predictions(dataset)):
        for size in prediction.sizes:
            now = compute_half_width(prediction.curve, size.units)
            for result in narrowings(prediction, size):
                half_widths = (Cell(_percent(now)), Cell(_percent(result.half_width)))
                rows.append((Cell(_size_name(prediction, size)), Cell(result.measurement), *half_widths))
                groups.append(prediction.curve.title)
    headings = (
        Heading("Size"),
        Heading("After measuring"),
        Heading("Now", "+%", numeric=True),
        Heading("Then", "+%", numeric=True),
    )
    empty = "No further measurement within reach would narrow an interval."
    title = "What to measure next"
    return Table(
        "further-measurements", title, _FURTHER_CAPTION, headings, tuple(rows), empty=empty, groups=tuple(groups)
    )


def narrowing_lines(prediction: Prediction) -> Iterator[str]:
    """Yield for each predicted size what would narrow its interval most."""
    for size in prediction.sizes:
        results = narrowings(prediction, size)
        if not results:
            continue
        now, name = compute_half_width(prediction.curve, size.units), _size_name(prediction, size)
        options = listed(f"{result.measurement} (+{_percent(result.half_width)} %)" for result in results)
        if now is None:
            yield f"to give {name} an interval of {_SHARE}, measure {options}"
        else:
            yield f"to narrow the {_SHARE} interval of {name}, now +{_percent(now)} %, measure {options}"


def _size_name(prediction: Prediction, size: PredictedSize) -> str:
    return counted(size.units, prediction.curve.unit)


def _percent(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.0f}"
