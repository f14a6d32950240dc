"""Which measurement would narrow the interval of a predicted size most: a table, and lines for a terminal."""

from collections.abc import Iterator

from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.prediction.intervals import COVERAGE
from dlperf_study.prediction.narrowing import compute_half_width, narrowings
from dlperf_study.prediction.prediction import PredictedSize, Prediction, select_predictions
from dlperf_study.report.formatting import listed
from dlperf_study.report.predictions import study_predictions
from dlperf_study.report.tables.table import Cell, Heading, Table

_SHARE = f"{100 * COVERAGE:g} %"
_CAPTION = (
    f"Half-widths of intervals of {_SHARE}, upwards, as they are now and as they would be about. A further size is "
    "taken to give what is predicted, with the error of the largest measured one; more runs to have the mean and "
    "deviation of those there are."
)


def further_measurements(dataset: Dataset) -> Table:
    """Return for each predicted size of a study what measuring more would make of its interval, the best first."""
    rows, groups = [], []
    for prediction in select_predictions(study_predictions(dataset)):
        for size in prediction.sizes:
            now = compute_half_width(prediction.curve, size.units)
            for result in narrowings(prediction, size):
                half_widths = (Cell(_percent(now)), Cell(_percent(result.half_width)))
                rows.append((Cell(_name(prediction, size)), Cell(result.measurement), *half_widths))
                groups.append(prediction.curve.title)
    headings = (
        Heading("Size"),
        Heading("After measuring"),
        Heading("Now", "+%", numeric=True),
        Heading("Then", "+%", numeric=True),
    )
    empty = "No further measurement within reach would narrow an interval."
    title = "What to measure next"
    return Table("further-measurements", title, _CAPTION, headings, tuple(rows), empty=empty, groups=tuple(groups))


def narrowing_lines(prediction: Prediction) -> Iterator[str]:
    """Yield for each size that was not measured what would narrow its interval most, or give it one."""
    for size in prediction.sizes:
        results = narrowings(prediction, size)
        if not results:
            continue
        now, name = compute_half_width(prediction.curve, size.units), _name(prediction, size)
        options = listed(f"{result.measurement} (+{_percent(result.half_width)} %)" for result in results)
        if now is None:
            yield f"to give {name} an interval of {_SHARE}, measure {options}"
        else:
            yield f"to narrow the {_SHARE} interval of {name}, now +{_percent(now)} %, measure {options}"


def _name(prediction: Prediction, size: PredictedSize) -> str:
    return counted(size.units, prediction.curve.unit)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}"
