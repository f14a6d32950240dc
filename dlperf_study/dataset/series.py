"""Which configurations form a series: those that differ only in their number of devices."""

from collections.abc import Sequence

import numpy as np

from dlperf_study.core.arrays import Integers
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.metrics.scaling import series_factors


@kept_with_dataset
def varying_factors(dataset: Dataset) -> list[str]:
    """Return the varying parameters that distinguish series."""
    rows = dataset.configurations
    factors = []
    for name in series_factors(rows, dataset.plan.scaling):
        values = rows[name]
        if name == "global_batch":
            # A global batch of 0 is one that can't be shared equally.
            values = values[values > 0]
        if values.nunique() > 1:
            factors.append(name)
    return factors


@kept_with_dataset
def series_numbers(dataset: Dataset) -> Integers:
    """Return each configuration's series number, in the plan's order."""
    factors, rows = varying_factors(dataset), dataset.configurations
    if not factors:
        return np.zeros(len(rows), np.int64)
    of_rows: Integers = rows.groupby(factors, sort=False, dropna=False).ngroup().to_numpy(np.int64)
    return of_rows


def by_series(dataset: Dataset) -> Sequence[Sequence[str]]:
    """Return the identities of each series, fewest devices first."""
    rows, positions = dataset.configurations, series_numbers(dataset)
    order = np.lexsort((rows["world_size"], positions))
    ordered = rows["configuration_id"].to_numpy()[order]
    ends = np.cumsum(np.bincount(positions))
    if len(rows):
        return [list(part) for part in np.split(ordered, ends[:-1])]
    return []
