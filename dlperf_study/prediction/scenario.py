"""What series would give with a change: by the physical model, next to what it gives without."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlperf_study.prediction.curves import Curve, Unit
from dlperf_study.prediction.intervals import obstacle_of_cores
from dlperf_study.prediction.physical_model import StepModel, model_of
from dlperf_study.prediction.prediction import TOO_UNCERTAIN, Refusal, chosen_curves, model_rate
from dlperf_study.prediction.what_if import WhatIfError, changed, check

#: Why fewer processes that share cores have no scenario: the terms of the model are those of the largest size.
_FEWER = "processes of one machine share its cores and its memory, so fewer of them compute faster than the model says"


@dataclass(frozen=True)
class ScenarioSize:
    """One size: the rate by the model without and with the changes, and the ratio of the two."""

    units: int
    devices: int
    rate: float
    changed_rate: float

    @property
    def ratio(self) -> float:
        """How many times as fast it is with the changes."""
        return self.changed_rate / self.rate


@dataclass(frozen=True)
class Scenario:
    """The sizes of one curve with changes; ``left_out``: why a size is not among them, by its units."""

    curve: Curve
    model: StepModel
    changes: Mapping[str, str]
    sizes: tuple[ScenarioSize, ...]
    left_out: Mapping[int, str]


def what_if(
    curves: Sequence[Curve], changes: Mapping[str, str], unit: Unit | None = None, sizes: Sequence[int] = ()
) -> list[Scenario | Refusal]:
    """Return for each series what the changes would give on so many nodes or devices; see ``predict`` for the sizes.

    Without sizes the largest measured one, and twice that where more units can be predicted. Of processes that share
    the cores of a machine, only the largest measured size has an answer. A series whose measurements do not identify
    the model, or not what a change does, is refused with the reason.

    Raises:
        WhatIfError: for a change that does not exist, or a value that it can't have.

    """
    for name, value in changes.items():
        check(name, value)
    results: list[Scenario | Refusal] = []
    for curve in chosen_curves(curves, unit):
        results.append(curve if isinstance(curve, Refusal) else _of_curve(curve, changes, sizes))
    return results


def _of_curve(curve: Curve, changes: Mapping[str, str], sizes: Sequence[int]) -> Scenario | Refusal:
    model = model_of(curve)
    if isinstance(model, str):
        return Refusal(curve, model)
    try:
        changed_model = changed(model, changes)
    except WhatIfError as error:
        return Refusal(curve, str(error))
    beyond = obstacle_of_cores(curve)
    last, count = curve.last.units, curve.devices_per_unit
    predicted, left_out = [], {}
    for units in sorted(set(sizes)) or ([last] if beyond else [last, 2 * last]):
        if beyond and units != last:
            left_out[units] = beyond if units > last else _FEWER
        elif (rate := model_rate(model, curve, units)) is None:
            left_out[units] = TOO_UNCERTAIN
        else:
            predicted.append(ScenarioSize(units, units * count, rate, changed_model.rate(units)))
    return Scenario(curve, model, changes, tuple(predicted), left_out)
