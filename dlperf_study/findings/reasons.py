"""Why a configuration has no throughput, or no comparison with its baseline or reference."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.comparison import throughput_ratio
from dlperf_study.metrics.statistics import MINIMUM_RUNS, NoInterval
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import SEQUENTIAL, RunStatus


class Reason(StrEnum):
    """Why there is no result; the words are in ``report/words/terms.j2``."""

    NOT_SUPPORTED = "not_supported"
    NO_LOG = "no_log"
    OUT_OF_MEMORY = "out_of_memory"
    NO_COMPLETED_RUN = "no_completed_run"
    NOT_RUN = "not_run"
    TOKENS_ONLY = "tokens_only"
    SAMPLES_ONLY = "samples_only"
    NO_THROUGHPUT = "no_throughput"
    NOT_DECLARED = "not_declared"
    NO_SPEEDUPS = "no_speedups"
    TOO_FEW_RUNS = "too_few_runs"
    TOO_FEW_COMMON_ROUNDS = "too_few_common_rounds"
    SEQUENTIAL_ORDER = "sequential_order"
    EQUAL_RUNS = "equal_runs"
    EQUAL_DIFFERENCES = "equal_differences"
    NOT_IN_TABLE = "not_in_table"


@dataclass(frozen=True)
class NoResult:
    """Why there is no result; ``details``: messages of runs.

    ``role``: the baseline or reference is what lacks it. ``count``: the runs or rounds there are.
    """

    reason: Reason
    details: tuple[str, ...] = ()
    role: Denominator | None = None
    count: int | None = None


def no_throughput(dataset: Dataset, row: Any, role: Denominator | None = None) -> NoResult | None:
    """Return why a configuration has no throughput; None if it has one."""
    if not is_missing(getattr(row, dataset.throughput_column)):
        return None
    if not is_missing(row.unsupported_reason):
        reason = Reason.NO_LOG if dataset.plan.ingested_from else Reason.NOT_SUPPORTED
        return NoResult(reason, (row.unsupported_reason,), role)
    runs = dataset.select_runs(row.configuration_id)
    incomplete = runs[runs["status"] != RunStatus.COMPLETED]
    out_of_memory = runs[runs["status"] == RunStatus.OUT_OF_MEMORY]
    if len(out_of_memory) and not row.runs_completed:
        return NoResult(Reason.OUT_OF_MEMORY, _messages(out_of_memory), role)
    if row.runs_completed:
        reason = Reason.NO_THROUGHPUT
        if not is_missing(row.token_throughput):
            reason = Reason.TOKENS_ONLY
        elif not is_missing(row.throughput):
            reason = Reason.SAMPLES_ONLY
        hints: tuple[str, ...] = ()
        if reason is Reason.NO_THROUGHPUT and dataset.plan.is_program:
            hints = ("set `samples_per_step` or `tokens_per_step` in its study file",)
        return NoResult(reason, hints, role)
    if len(incomplete):
        return NoResult(Reason.NO_COMPLETED_RUN, _messages(incomplete), role)
    return NoResult(Reason.NOT_RUN, (), role)


def _messages(runs: Any) -> tuple[str, ...]:
    """Return the distinct messages of runs, each after how its run ended."""
    messages = []
    for status, message in zip(runs["status"], runs["reason"], strict=True):
        if status == RunStatus.OUT_OF_MEMORY and not is_missing(message):
            messages.append(message)
        elif status != RunStatus.OUT_OF_MEMORY:
            messages.append(status if is_missing(message) else f"{status}: {message}")
    return tuple(dict.fromkeys(messages))


def without_messages(no_result: NoResult) -> NoResult:
    """Return it without the messages of runs."""
    if no_result.reason in (Reason.NOT_SUPPORTED, Reason.NO_LOG):
        return no_result
    return replace(no_result, details=())


def no_ratio(dataset: Dataset, row: Any, role: Denominator) -> NoResult | None:
    """Return why a configuration has no ratio to its baseline or reference; None if both have a throughput."""
    configuration_id = getattr(row, f"{role}_id")
    if is_missing(configuration_id):
        return NoResult(Reason.NOT_DECLARED, role=role)
    if role == "baseline" and not dataset.plan.has_speedups:
        return NoResult(Reason.NO_SPEEDUPS)
    denominator = dataset.configuration_rows[configuration_id]
    return no_throughput(dataset, denominator, role) or no_throughput(dataset, row)


def no_comparison(dataset: Dataset, row: Any, role: Denominator) -> NoResult:
    """Return why the ratio of a configuration to its baseline or reference has no interval."""
    missing = no_ratio(dataset, row, role)
    if missing:
        return missing
    if row.runs_completed < MINIMUM_RUNS and dataset.plan.order != SEQUENTIAL:
        return NoResult(Reason.TOO_FEW_RUNS, count=int(row.runs_completed))
    throughputs, entry = dataset.throughputs, dataset.plan.by_id[row.configuration_id]
    denominator_id = str(entry.denominator(role))
    if not {row.configuration_id, denominator_id} <= throughputs.keys():
        return NoResult(Reason.NOT_IN_TABLE)
    numerator, denominator = throughputs[row.configuration_id], throughputs[denominator_id]
    reason = throughput_ratio(entry, role, throughputs).reason
    if reason is NoInterval.EQUAL_VALUES:
        is_paired = numerator.rounds is not None and denominator.rounds is not None
        return NoResult(Reason.EQUAL_DIFFERENCES if is_paired else Reason.EQUAL_RUNS)
    if reason is NoInterval.FEW_ROUNDS and dataset.plan.order == SEQUENTIAL:
        return NoResult(Reason.SEQUENTIAL_ORDER)
    if reason in (NoInterval.FEW_VALUES, NoInterval.FEW_ROUNDS) and denominator.values.size < MINIMUM_RUNS:
        return NoResult(Reason.TOO_FEW_RUNS, role=role, count=denominator.values.size)
    if reason is NoInterval.FEW_VALUES:
        return NoResult(Reason.TOO_FEW_RUNS, count=numerator.values.size)
    if reason is NoInterval.FEW_ROUNDS:
        return NoResult(Reason.TOO_FEW_COMMON_ROUNDS, count=numerator.within_rounds(denominator).size)
    return NoResult(Reason.NOT_IN_TABLE)
