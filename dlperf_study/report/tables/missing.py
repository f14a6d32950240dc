"""Why a value is missing: every dash in a table says it."""

from typing import Any

from dlperf_study.analysis.comparison import UNDECIDED
from dlperf_study.analysis.statistics import MINIMUM_RUNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.context import completed_runs
from dlperf_study.report.formatting import human, is_missing
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import Outcome
from dlperf_study.wording import counted

#: The columns that are missing where the partner has no completed run.
_NEED_PARTNER: dict[str, Denominator] = {
    **dict.fromkeys(("baseline_throughput", "speedup", "efficiency"), "baseline"),
    **dict.fromkeys(("reference_throughput", "relative_throughput"), "reference"),
}
DIFFERENCES = ("step_difference_seconds", "computation_difference_seconds", "exposed_difference_seconds")
EXCHANGE_COLUMNS = {
    "exposed_seconds",
    "exchange_seconds",
    "overlap",
    "bus_bandwidth",
    "computation_to_communication",
    "gradient_bytes",
}
#: The columns that come from the traced run.
TRACED_COLUMNS = ("traced_step_seconds", "negotiation_seconds", "all_reduce_seconds")
_OTHERWISE = {
    "mfu": "the device's peak or the model's FLOPs are not known",
    "bus_bandwidth": "defined for an all-reduce only",
    "overlap": "there was no pure communication to compare with",
    "computation_to_communication": "no communication was exposed",
}


def why_missing(dataset: Dataset, row: Any, column: str) -> str:
    """Return why a row of the configurations holds no value in ``column``."""
    if not row.runs_completed:
        return why_not_measured(dataset, row)
    if column in _NEED_PARTNER:
        return _why_no_partner(dataset, row, _NEED_PARTNER[column])
    if column in DIFFERENCES or column == "difference_lies_in":
        return _why_no_difference(dataset, row, column)
    if column in TRACED_COLUMNS:
        return _why_no_trace(dataset, row)
    if column == "overlap" and not is_missing(row.exchange_seconds):
        return "a step took no longer than its computation alone: what is hidden can't be told from noise"
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


def why_no_interval(row: Any, role: Denominator | None = None) -> str:
    """Return why a measured value, or what compares it with a partner, has no interval."""
    if row.runs_completed < MINIMUM_RUNS or role is None:
        return f"{counted(int(row.runs_completed), 'completed run')}: an interval needs {MINIMUM_RUNS}"
    return f"its {role} has fewer than {MINIMUM_RUNS} completed runs: no interval"


def _why_no_partner(dataset: Dataset, row: Any, role: Denominator) -> str:
    partner = _partner(dataset, row, role)
    if partner is None:
        return f"no {role} is declared"
    return f"its {role} {partner.identity} has no value: {why_not_measured(dataset, partner)}"


def _why_no_difference(dataset: Dataset, row: Any, column: str) -> str:
    if is_missing(row.relative_throughput):
        return _why_no_partner(dataset, row, "reference")
    partner = _partner(dataset, row, "reference")
    if partner is not None and partner.global_batch != row.global_batch:
        return "its reference has another global batch, so a step is other work"
    if row.verdict == UNDECIDED and column not in DIFFERENCES:
        return "neither is faster, as far as these runs tell"
    if is_missing(row.verdict) and column not in DIFFERENCES:
        return why_no_interval(row, "reference")
    return "it was not measured of both"


def _why_no_trace(dataset: Dataset, row: Any) -> str:
    about = dataset.diagnostics[dataset.diagnostics["subject"] == "trace"]
    return "; ".join(about.loc[about["identity"] == row.identity, "message"]) or "no traced run was found"


def _partner(dataset: Dataset, row: Any, role: Denominator) -> Any:
    """Return the row of a declared partner, which is always in the plan, or None where none is declared."""
    identity, rows = getattr(row, f"{role}_identity"), dataset.configurations
    return None if is_missing(identity) else next(rows[rows["identity"] == identity].itertuples())


def _exchanges_nothing(dataset: Dataset, row: Any) -> bool:
    runs = completed_runs(dataset)
    return set(runs.loc[runs["identity"] == row.identity, "exchange"]) == {"none"}


def _ends(runs: Any) -> list[tuple[str, str]]:
    ended = runs[runs["outcome"] != Outcome.COMPLETED]
    return [
        (outcome, "" if is_missing(reason) else reason)
        for outcome, reason in zip(ended.outcome, ended.reason, strict=True)
    ]
