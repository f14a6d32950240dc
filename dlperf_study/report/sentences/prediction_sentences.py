"""Sentences on sizes that were not measured: what the next one gives, and what can't be predicted."""

import math
from collections.abc import Iterator, Sequence

from dlperf_study.core.wording import counted, first_of
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.statistics import bounded
from dlperf_study.prediction.intervals import COVERAGE
from dlperf_study.prediction.prediction import Prediction, predictions_of, refused_curves
from dlperf_study.report.formatting import MOST_NAMED, THIN_SPACE, value_text
from dlperf_study.report.predictions import own_cases, study_predictions
from dlperf_study.report.sentences.names import PERCENT, answer


def prediction_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield what the first series give on their next size, how the last size was predicted, and what is refused."""
    results = study_predictions(dataset)
    predicted = list(predictions_of(results))
    for prediction in predicted[:MOST_NAMED]:
        curve, size = prediction.curve, prediction.sizes[0]
        rate = value_text(bounded(size.rate, size.rate_interval), f" {curve.rate_unit}")
        efficiency = bounded(size.efficiency, size.efficiency_interval)
        printed = answer(value_text(efficiency, f"{THIN_SPACE}%", size=PERCENT))
        claim = f"{100 * COVERAGE:g} % intervals" if size.rate_interval else f"no interval: {size.reason}"
        devices = f" ({counted(size.devices, 'device')})" if size.devices != size.units else ""
        where = f"{counted(size.units, curve.unit)}{devices}"
        reference = f"relative to {counted(prediction.reference.devices, 'device')}"
        yield f"{curve.label} would give {rate} on {where}, an efficiency of {printed} {reference}; {claim}."
    yield from _back_test(dataset, predicted)
    for reason, curves in refused_curves(results).items():
        labels = first_of(list(dict.fromkeys(curve.label for curve in curves)), MOST_NAMED, "; ")
        yield f"{answer('Nothing is predicted')} of {labels}: {reason}."


def _back_test(dataset: Dataset, predictions: Sequence[Prediction]) -> Iterator[str]:
    """Yield by how much the largest measured sizes of predicted curves were missed from the smaller ones."""
    predicted = {(prediction.curve.identity, prediction.curve.unit) for prediction in predictions}
    cases = [case for case in own_cases(dataset) if (case.curve.identity, case.curve.unit) in predicted]
    errors = [math.expm1(case.log_error) for case in cases]
    if len(errors) == 1:
        yield f"From its smaller sizes, the largest measured one would have been predicted {_percent(errors[0])}."
    elif errors:
        ends = f"{_percent(min(errors))} to {_percent(max(errors))}"
        yield f"From their smaller sizes, the largest of {len(errors)} series would have been predicted {ends}."


def _percent(error: float) -> str:
    """Return an error as a sentence says it: ``1.3 % too high``."""
    return f"{abs(100 * error):.1f}{THIN_SPACE}% too {'high' if error >= 0 else 'low'}"
