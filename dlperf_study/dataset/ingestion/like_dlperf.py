"""The results as DLPerf would have written them from the same logs, by its own rules, for comparison.

For each run: the mean of the throughputs printed at the steps that DLPerf took. Over runs: their mean and median. The
speedup is median / median of ``1n1g``. Each of these is rounded to two decimals before the next is computed from it.
Where DLPerf would have continued with an invalid number, the result here is null, and a message says so.
"""

import json
import shutil
from collections.abc import Iterator

import numpy as np
import pandas as pd

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import counted
from dlperf_study.core.writing import write_atomically
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.logs.formats import all_formats
from dlperf_study.metrics.ingested import NO_EXTRACTOR
from dlperf_study.metrics.parameters import varying
from dlperf_study.study.configuration import FIELD_NAMES
from dlperf_study.study.job import RunStatus

THROUGHPUT = "fixed_window_mean_step_throughput"
BASELINE_CASE = "1n1g"
#: The key of its results; no other parameter is part of it, neither the precision nor the program.
KEY = ["batch_per_device", "model", "case"]
_IN_KEY = ("batch_per_device", "model", "nodes", "devices_per_node")
NOT_IN_KEY = [name for name in FIELD_NAMES if name not in (*_IN_KEY, "study", "repetitions")]
#: Its extractors read one digit of a number of nodes.
_MOST_NODES = 9
_NOTICED_DIFFERENCE = 0.01

Results = dict[str, dict[str, dict[str, float | int | None]]]


def write_like_dlperf(paths: StudyPaths) -> list[str]:
    """Write results files and return messages, or raise RecordError."""
    runs = runs_by_case(Dataset.load(paths))
    extracted = [format_.name for format_ in all_formats() if format_.dlperf_steps]
    is_extracted = runs["log_format"].isin(extracted)
    unextracted = sorted(set(runs.loc[~is_extracted, "log_format"].dropna()))
    if not is_extracted.any():
        names = ", ".join(unextracted) or "logs of no known format"
        raise RecordError(f"--like-dlperf: {names}: {NO_EXTRACTOR}; it extracts results from {', '.join(extracted)}")
    runs = runs[is_extracted | runs["log_format"].isna()]
    messages = []
    if unextracted:
        messages = [f"not in its results: {', '.join(unextracted)}: {NO_EXTRACTOR}"]
    is_single_kind = runs["kind"].nunique() == 1
    shutil.rmtree(paths.like_dlperf, ignore_errors=True)
    for (batch, kind), group in runs.groupby(["batch_per_device", "kind"], sort=False):
        folder = paths.like_dlperf if is_single_kind else paths.like_dlperf / str(kind)
        file = folder / f"bz{batch}_result.json"
        write_atomically(file, json.dumps(dlperf_results(group), indent=4, sort_keys=True) + "\n")
        messages.append(f"as DLPerf would write it: {file}")
    messages += [f"DLPerf's scripts fail here: {defect}" for defect in defects(runs)]
    return messages


def runs_by_case(dataset: Dataset) -> pd.DataFrame:
    """Return every run with its ``case``, ``kind`` and ``counted``."""
    runs = dataset.runs
    cases = runs["nodes"].astype(str) + "n" + runs["devices_per_node"].astype(str) + "g"
    kind_numbers = runs.groupby(NOT_IN_KEY, sort=False, dropna=False).ngroup() + 1
    kinds = kind_numbers.astype(str) + "-" + runs["framework"] + "-" + runs["precision"]
    is_counted = (runs["status"] == RunStatus.COMPLETED) & runs[THROUGHPUT].notna()
    return runs.assign(case=cases, kind=kinds, counted=is_counted)


def dlperf_results(runs: pd.DataFrame) -> Results:
    """Return the results of one batch and kind."""
    results: Results = {}
    for (model, case), group in runs[runs["counted"]].groupby(["model", "case"], sort=False):
        throughputs = [_rounded(throughput) for throughput in group[THROUGHPUT]]
        results.setdefault(str(model), {})[str(case)] = {
            "average_speed": _rounded(float(np.mean(throughputs))),
            "batch_size_per_device": int(group["batch_per_device"].iloc[0]),
            "median_speed": _rounded(float(np.median(throughputs))),
        }
    for cases in results.values():
        baseline = cases.get(BASELINE_CASE, {}).get("median_speed")
        for result in cases.values():
            result["speedup"] = _rounded(float(result["median_speed"] or 0) / baseline) if baseline else None
    return results


def _rounded(number: float) -> float:
    """Return a number rounded like numpy's in its extractors.

    Both are medians of six printed runs of ResNet-50, each with two decimals, and appear so in its result.
    """
    return float(np.round(number, 2))


def defects(runs: pd.DataFrame) -> Iterator[str]:
    """Yield where DLPerf's own extractors would have failed."""
    for (batch, model), group in runs.groupby(KEY[:2], sort=False):
        if BASELINE_CASE not in set(group.loc[group["counted"], "case"]):
            yield f"{model}, batch {batch}: no run of {BASELINE_CASE}, so every speedup would be 1.0; here it is null"
    for (batch, model, case), group in runs.groupby(KEY, sort=False):
        if group["kind"].nunique() > 1:
            names = ", ".join(varying(group, NOT_IN_KEY))
            overwritten = f"runs that differ in {names} have one key and overwrite each other"
            yield f"{model}, batch {batch}, {case}: {overwritten}; here each kind has a file"
    large = runs.loc[runs["nodes"] > _MOST_NODES, "case"].unique()
    if large.size:
        yield f"the name of {', '.join(large)} crashes its extractors, which read one digit of the nodes"
    for (batch, model, case), group in runs.groupby(KEY, sort=False):
        not_counted = group[~group["counted"]]
        if len(not_counted):
            repetitions = ", ".join(map(str, not_counted["repetition"]))
            median = float(np.median(group[THROUGHPUT].where(group["counted"], 0.0)))
            scripts = (
                f"one of its scripts takes what there is of them, the other 0, which makes the median {median:.2f}"
            )
            yield f"{model}, batch {batch}, {case}: not counted: repetition {repetitions}; {scripts}"
    yield from _means_of_throughputs(runs[runs["counted"]])
    sliced_formats = [format_.name for format_ in all_formats() if format_.dlperf_slices_lines]
    several_ranks = runs[runs["log_format"].isin(sliced_formats) & (runs["ranks_seen"] > 1)]
    if len(several_ranks):
        cases = ", ".join(several_ranks["case"].unique())
        yield f"{cases}: several ranks print into one log, and its slice of lines takes the first, cold steps"


def _means_of_throughputs(runs: pd.DataFrame) -> Iterator[str]:
    difference = runs[THROUGHPUT] / runs["throughput"] - 1
    count = int((difference.abs() > _NOTICED_DIFFERENCE).sum())
    if count:
        extent = f"in {counted(count, 'run')}, by up to {difference[difference.abs().idxmax()]:+.1%}"
        rule = "its mean of throughputs over fixed steps differs from the throughput of the steady part"
        yield f"{rule} by more than {_NOTICED_DIFFERENCE:.0%} {extent}"
