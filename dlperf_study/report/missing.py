"""Why a value is missing: every dash in a table says it."""

from typing import Any

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.analysis.statistics import MINIMUM_RUNS
from dlperf_study.report.context import completed_runs
from dlperf_study.report.names import counted, human
from dlperf_study.report.numbers import is_missing
from dlperf_study.study.outcome import Outcome

_NEED_BASELINE = {"baseline_throughput", "speedup", "efficiency"}
EXCHANGE_COLUMNS = {
    "exposed_seconds",
    "exchange_seconds",
    "overlap",
    "bus_bandwidth",
    "computation_to_communication",
    "gradient_bytes",
}
_OTHERWISE = {
    "mfu": "the device's peak or the model's FLOPs are not known",
    "bus_bandwidth": "defined for an all-reduce only",
    "computation_to_communication": "no communication was exposed",
    "overlap": "there was no pure communication to compare with",
}


def why_missing(dataset: Dataset, row: Any, column: str) -> str:
    """Return why a row of the configurations holds no value in ``column``."""
    if not row.runs_completed:
        return why_not_measured(dataset, row)
    if column in _NEED_BASELINE:
        return _why_no_baseline(dataset, row)
    if column in EXCHANGE_COLUMNS and _exchanges_nothing(dataset, row):
        return "nothing to exchange"
    return _OTHERWISE.get(column, "not recorded")


def why_not_measured(dataset: Dataset, row: Any) -> str:
    """Return why a configuration has no completed run."""
    if not is_missing(row.unsupported_reason):
        return f"unsupported: {row.unsupported_reason}"
    runs = dataset.runs[dataset.runs["identity"] == row.identity]
    ends = [f"{human(outcome)} ({reason})" if reason else human(outcome) for outcome, reason in _ends(runs)]
    return f"no run completed: {'; '.join(dict.fromkeys(ends))}" if ends else "not run yet"


def why_no_interval(row: Any) -> str:
    """Return why a measured value, or its ratio to the baseline, has no interval."""
    if row.runs_completed < MINIMUM_RUNS:
        return f"{counted(int(row.runs_completed), 'completed run')}: an interval needs {MINIMUM_RUNS}"
    return f"its baseline has fewer than {MINIMUM_RUNS} completed runs: no interval"


def _why_no_baseline(dataset: Dataset, row: Any) -> str:
    if is_missing(row.baseline_identity):
        return "no baseline is declared, so there is no speedup"
    rows = dataset.configurations
    baseline = next(rows[rows["identity"] == row.baseline_identity].itertuples(), None)
    if baseline is None:
        return f"its baseline {row.baseline_identity} is not in the plan"
    return f"its baseline {row.baseline_identity} has no value: {why_not_measured(dataset, baseline)}"


def _exchanges_nothing(dataset: Dataset, row: Any) -> bool:
    runs = completed_runs(dataset)
    return set(runs.loc[runs["identity"] == row.identity, "exchange"]) == {"none"}


def _ends(runs: Any) -> list[tuple[str, str]]:
    ended = runs[runs["outcome"] != Outcome.COMPLETED]
    return [
        (outcome, "" if is_missing(reason) else reason)
        for outcome, reason in zip(ended.outcome, ended.reason, strict=True)
    ]
