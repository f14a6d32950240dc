"""Runs that differ from the others of their configuration by more than chance sets any run of a study apart."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dlperf_study.metrics.statistics import ROUNDING_DEVIATION, Estimate, Sample, are_equal, distinguishable

#: A run that differs from the others of its configuration by a smaller share is never odd.
SMALLEST_ODD = 0.05


@dataclass(frozen=True)
class OddRun:
    """A run that the other runs do not explain: its sample, its position in it, and the mean of the other runs."""

    sample: int
    position: int
    mean_of_others: float


def odd_runs(samples: Sequence[Sample]) -> list[OddRun]:
    """Return the runs of several configurations that differ from the others of their configuration by more than chance.

    The logarithm of each run is compared with those of the other runs of its configuration: its externally studentized
    residual has a t distribution with two degrees of freedom fewer than runs. All runs are tested together, after Holm,
    so of studies whose runs are alike at most 5 % have such a run. A difference below 5 % is none that matters.
    Runs of fewer than three, and those whose other runs are equal, are not tested. Samples must be above 0.
    Source: Cook and Weisberg, "Residuals and influence in regression" (1982), 2.2.2.
    """
    runs, differences = [], []
    for sample_index, sample in enumerate(samples):
        for position, difference in enumerate(_differences_from_other_runs(sample.logarithms)):
            mean = float(np.log(sample.values[position])) - difference.mean
            runs.append(OddRun(sample_index, position, math.exp(mean)))
            differences.append(difference)
    odd = []
    is_different = distinguishable(list(map(Estimate.p_value, differences)))
    for run, difference, differs in zip(runs, differences, is_different, strict=True):
        if differs and abs(difference.mean) > math.log1p(SMALLEST_ODD):
            odd.append(run)
    return odd


def _differences_from_other_runs(sample: Sample) -> Iterator[Estimate]:
    """Yield by how much each run differs from the mean of the others, with the error of one further run of theirs."""
    count = sample.values.size - 1
    for position, value in enumerate(sample.values if count > 1 else ()):
        other_values = np.delete(sample.values, position)
        deviation = 0.0 if are_equal(other_values) else float(other_values.std(ddof=1))
        error = max(deviation, sample.resolution * ROUNDING_DEVIATION) * math.sqrt(1 + 1 / count)
        yield Estimate(float(value - other_values.mean()), error or None, count - 1)
