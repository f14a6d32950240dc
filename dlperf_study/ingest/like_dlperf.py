"""The results as DLPerf would have written them, from the same logs and by its own rules, for comparison.

Of each run the mean of the rates printed at the steps it took; over runs their mean and median; the speedup is
median / median of ``1n1g``. Each of these is rounded to two decimals before the next is made of it. Where it went on
with a number that was none, there is null here, and a line says so.
"""

import json
import shutil
from collections.abc import Iterator

import numpy as np
import pandas as pd

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.paths import StudyPaths, write_atomically
from dlperf_study.study.configuration import FIELD_NAMES
from dlperf_study.study.job import Outcome
from dlperf_study.wording import counted

RATE = "fixed_window_mean_of_rates"
ALONE = "1n1g"
#: What its results are filed under; no other parameter is part of it, neither the precision nor the program.
KEY = ["batch_per_device", "model", "case"]
_IN_KEY = ("batch_per_device", "model", "nodes", "devices_per_node")
NOT_IN_KEY = [name for name in FIELD_NAMES if name not in (*_IN_KEY, "study", "repeats")]
#: How many digits of a number of nodes it reads.
MOST_NODES = 9
#: From which difference on its mean of rates is worth a line.
NOTICED = 0.01

Results = dict[str, dict[str, dict[str, float | int | None]]]


def write_like_dlperf(paths: StudyPaths) -> list[str]:
    """Write one file of results per batch and kind of run; return what was written, and what would go wrong."""
    runs = runs_by_case(Dataset.load(paths))
    lines = []
    alone = runs["kind"].nunique() == 1
    shutil.rmtree(paths.like_dlperf, ignore_errors=True)
    for (batch, kind), part in runs.groupby(["batch_per_device", "kind"], sort=False):
        file = paths.like_dlperf / ("" if alone else str(kind)) / f"bz{batch}_result.json"
        write_atomically(file, json.dumps(results_of(part), indent=4, sort_keys=True) + "\n")
        lines.append(f"as DLPerf would write it: {file}")
    return [*lines, *(f"DLPerf's rules would go wrong here: {defect}" for defect in defects(runs))]


def runs_by_case(dataset: Dataset) -> pd.DataFrame:
    """Return every run with its ``case``, as in ``2n8g``, its ``kind``, and whether it is ``counted``.

    Runs are of one kind that agree in every parameter that DLPerf's key does not hold.
    """
    runs = dataset.runs
    cases = runs["nodes"].astype(str) + "n" + runs["devices_per_node"].astype(str) + "g"
    number = runs.groupby(NOT_IN_KEY, sort=False, dropna=False).ngroup() + 1
    kinds = number.astype(str) + "-" + runs["framework"] + "-" + runs["precision"]
    return runs.assign(case=cases, kind=kinds, counted=(runs["outcome"] == Outcome.COMPLETED) & runs[RATE].notna())


def results_of(runs: pd.DataFrame) -> Results:
    """Return the results of one batch and kind: model, case, and four numbers."""
    results: Results = {}
    for (model, case), part in runs[runs["counted"]].groupby(["model", "case"], sort=False):
        rates = [_rounded(rate) for rate in part[RATE]]
        results.setdefault(str(model), {})[str(case)] = {
            "average_speed": _rounded(float(np.mean(rates))),
            "batch_size_per_device": int(part["batch_per_device"].iloc[0]),
            "median_speed": _rounded(float(np.median(rates))),
        }
    for cases in results.values():
        alone = cases.get(ALONE, {}).get("median_speed")
        for numbers in cases.values():
            numbers["speedup"] = _rounded(float(numbers["median_speed"] or 0) / alone) if alone else None
    return results


def _rounded(number: float) -> float:
    """Return a number as its extractors round it, which hold numpy's: 352.715 becomes 352.72, 644.665 becomes 644.66.

    Both are medians of six printed runs of ResNet-50, each with two decimals, and stand so in its result.
    """
    return float(np.round(number, 2))


def defects(runs: pd.DataFrame) -> Iterator[str]:
    """Yield where DLPerf's own extractors would have gone on with a wrong number, or stopped."""
    yield from _without_baseline(runs)
    yield from _overwritten(runs)
    large = runs.loc[runs["nodes"] > MOST_NODES, "case"].unique()
    if large.size:
        yield f"the name of {', '.join(large)} makes its extractors crash: they read one digit of the nodes"
    yield from _stopped_early(runs)
    yield from _means(runs[runs["counted"]])
    several = runs[runs["log_format"].eq("plsc_2020") & (runs["ranks_seen"] > 1)]
    if len(several):
        cases = ", ".join(several["case"].unique())
        yield f"{cases}: several ranks print into one log, and its slice of lines then takes the first, cold steps"


def _without_baseline(runs: pd.DataFrame) -> Iterator[str]:
    for (batch, model), part in runs.groupby(KEY[:2], sort=False):
        if ALONE not in set(part.loc[part["counted"], "case"]):
            yield f"{model}, batch {batch}: no run of {ALONE}, so every speedup would be 1.0; here it is null"


def _overwritten(runs: pd.DataFrame) -> Iterator[str]:
    for (batch, model, case), part in runs.groupby(KEY, sort=False):
        if part["kind"].nunique() > 1:
            differing = [name for name in NOT_IN_KEY if part[name].nunique(dropna=False) > 1]
            said = f"runs that differ in {', '.join(differing)} have one key and overwrite each other"
            yield f"{model}, batch {batch}, {case}: {said}; here each kind has a file"


def _stopped_early(runs: pd.DataFrame) -> Iterator[str]:
    for (batch, model, case), part in runs.groupby(KEY, sort=False):
        refused = part[~part["counted"]]
        if len(refused):
            numbers = ", ".join(map(str, refused["repetition"]))
            median = float(np.median(part[RATE].where(part["counted"], 0.0)))
            yield (
                f"{model}, batch {batch}, {case}: not counted: repetition {numbers}; one of its scripts takes "
                f"what there is of them, the other 0, which makes the median {median:.2f}"
            )


def _means(runs: pd.DataFrame) -> Iterator[str]:
    larger = runs[RATE] / runs["throughput"] - 1
    far = runs[larger.abs() > NOTICED]
    if len(far):
        worst = larger[larger.abs().idxmax()]
        yield (
            f"its mean of rates over fixed steps is off the rate of the steady part by more than {NOTICED:.0%} in "
            f"{counted(len(far), 'run')}, by up to {worst:+.1%}"
        )
