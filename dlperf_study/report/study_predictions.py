"""The predictions of a study, with the names that pages give its series."""

from collections.abc import Sequence
from dataclasses import replace

from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.prediction.back_test import largest_left_out
from dlperf_study.prediction.curves import Curve, Unit, curves_of_study
from dlperf_study.prediction.intervals import Case, is_for_ring
from dlperf_study.prediction.prediction import Prediction, Refusal, predict
from dlperf_study.report.formatting import model_name
from dlperf_study.report.series import SEPARATOR, all_series, joined, short_labels


@kept_with_dataset
def study_curves(dataset: Dataset) -> list[Curve]:
    """Return the curves of a study; each is called by its model and what distinguishes its series."""
    series = all_series(dataset.whole or dataset)
    labels: dict[str, str] = {}
    for line, label in zip(series, short_labels(series), strict=True):
        model = model_name(line.rows.iloc[0])
        parts = [part for part in label.split(SEPARATOR) if part != model]
        labels |= dict.fromkeys(line.rows["identity"], joined(model, *parts))
    return [replace(curve, label=labels[curve.identity]) for curve in curves_of_study(dataset)]


def study_predictions(
    dataset: Dataset, unit: Unit | None = None, sizes: Sequence[int] = ()
) -> list[Prediction | Refusal]:
    """Return what each series of a study says of larger sizes, as ``predict`` does."""
    return predict(study_curves(dataset), unit, sizes)


def own_cases(dataset: Dataset) -> list[Case]:
    """Return the largest size of each series of a study that has three, with its smaller ones."""
    return largest_left_out(curve for curve in study_curves(dataset) if is_for_ring(curve))
