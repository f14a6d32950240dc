"""What a study predicts, as a frame and as the text that the command prints."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import pandas as pd

from dlperf_study.core.errors import DlperfStudyError
from dlperf_study.prediction.curves import Unit
from dlperf_study.prediction.prediction import Prediction, Refusal, select_predictions
from dlperf_study.report.tables.prediction_tables import describe, prediction_table
from dlperf_study.study.configuration import MAX_STEPS


def requested_sizes(nodes: Sequence[int], devices: Sequence[int]) -> tuple[Unit | None, list[int]]:
    """Return the requested unit and sizes; raises DlperfStudyError if invalid."""
    sizes = {"nodes": _checked("nodes", nodes), "devices": _checked("devices", devices)}
    if all(sizes.values()):
        raise DlperfStudyError("give either nodes or devices")
    if sizes["devices"]:
        return Unit.DEVICE, sizes["devices"]
    if sizes["nodes"]:
        return Unit.NODE, sizes["nodes"]
    return None, []


def _checked(name: str, sizes: Sequence[int]) -> list[int]:
    """Return sizes as Python's integers, also those of NumPy."""
    if not isinstance(sizes, Sequence) or isinstance(sizes, str):
        raise DlperfStudyError(f"{name} is {sizes!r}; it must be a list of numbers, such as {name}=[8]")
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, Integral) or not 1 <= size <= MAX_STEPS:
            raise DlperfStudyError(f"{name} has {size!r}, which is not a whole number from 1 to {MAX_STEPS}")
    return list(map(int, sizes))


@dataclass(frozen=True)
class StudyPredictions:
    """The predictions and refusals of each series of a study."""

    results: list[Prediction | Refusal]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each size, by ``series`` and ``devices``.

        ``throughput_low_90`` and ``throughput_high_90`` are the bounds of the 90 % interval; missing if there is none,
        with the ``reason``.
        """
        rows = []
        for result in select_predictions(self.results):
            curve = result.curve
            for size in result.sizes:
                row: dict[str, object] = {"series": curve.label, "unit": str(curve.unit), "units": size.units}
                row |= {"devices": size.devices, "throughput": size.throughput, "efficiency": size.efficiency}
                row["reason"] = size.reason
                for name, bounds in (
                    ("throughput", size.throughput_interval),
                    ("efficiency", size.efficiency_interval),
                ):
                    row |= {f"{name}_low_90": bounds and bounds.low, f"{name}_high_90": bounds and bounds.high}
                rows.append(row)
        return pd.DataFrame(rows, columns=_COLUMNS).set_index(["series", "devices"])

    @property
    def refused(self) -> dict[str, str]:
        """The reasons against predictions, by series label."""
        return {result.curve.label: result.reason for result in self.results if isinstance(result, Refusal)}

    def __repr__(self) -> str:
        return describe(self.results)

    def _repr_html_(self) -> str:
        return prediction_table(self.results)._repr_html_()


#: Also of a frame without rows, where no series can be predicted.
_COLUMNS = [
    *("series", "unit", "units", "devices", "throughput", "throughput_low_90", "throughput_high_90"),
    *("efficiency", "efficiency_low_90", "efficiency_high_90", "reason"),
]
