"""Why a value is missing: every dash in a table has its reason."""

from typing import Any

import pandas as pd

from dlperf_study.analysis.comparison import EQUAL, NOT_DISTINGUISHABLE
from dlperf_study.analysis.statistics import MINIMUM_RUNS
from dlperf_study.analysis.steady_state import Answer
from dlperf_study.columns import COLUMNS
from dlperf_study.columns.cpu_limit import CPU_LIMIT
from dlperf_study.columns.memory import LARGEST_BATCH
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.formatting import display_name, is_missing
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import Outcome
from dlperf_study.study.turn import BLOCKS
from dlperf_study.wording import counted

#: The columns that are missing where the baseline or reference has no completed run.
_DENOMINATOR_OF: dict[str, Denominator] = {
    **dict.fromkeys(("baseline_throughput", "baseline_token_throughput", "speedup", "efficiency"), "baseline"),
    **dict.fromkeys(("reference_throughput", "relative_throughput"), "reference"),
}
DIFFERENCES = (
    *("step_difference_seconds", "computation_difference_seconds", "input_difference_seconds"),
    "exposed_difference_seconds",
)
#: Computation / exposed communication.
QUOTIENT = "computation_to_communication"
EXCHANGE_COLUMNS = {
    "exposed_seconds",
    "jitter_seconds",
    "exchange_seconds",
    "exchange_latency_seconds",
    "exchange_bandwidth",
    "overlap",
    "bus_bandwidth",
    QUOTIENT,
    "gradient_bytes",
}
#: The factors of an efficiency.
FACTORS = ("computation_factor", "balance_factor", "input_factor", "communication_factor")
#: What a GPU may not report of its state.
SAMPLED_OF_GPUS = ("gpu_utilisation", "sm_clock", "memory_clock", "gpu_temperature", "clock_limited_share")
ENERGY = ("energy_per_sample", "mean_power")
#: The columns that come from NCCL's own report.
NCCL_COLUMNS = ("nccl_transports", "nccl_path", "nccl_network", "nccl_channels", "nccl_rings", "nccl_trees")
#: The columns that come from the traced run.
TRACED_COLUMNS = ("traced_step_seconds", "negotiation_seconds", "all_reduce_seconds")
#: The columns of a run with a CPU limit, and how a run says that it exchanges nothing.
LIMITED = tuple(column.name for column in CPU_LIMIT)
NO_EXCHANGE = "none"
#: The columns of the search for the largest batch.
SEARCHED_COLUMNS = tuple(column.name for column in LARGEST_BATCH)
#: Why rates and times have no value where logs state tokens, and which these are.
_IN_TOKENS = "its logs state tokens/s, and not how many tokens a sample has"
_OF_SAMPLES = ("throughput", "mean_of_rates", "step_seconds", "wall_throughput", "fixed_window_throughput")
_OTHER_REASONS = {
    **dict.fromkeys(("step_p95_seconds", "step_p99_seconds"), "its windows have too few steps"),
    "peak_allocated_bytes": "its library does not count it on this device",
    "peak_reserved_bytes": "its library does not count it on this device",
    "peak_process_bytes": "the kernel of its host does not count it",
    "peak_device_bytes": "no sample of its training window has it",
    "peak_host_bytes": "no sample was taken in its training window",
    **dict.fromkeys(SAMPLED_OF_GPUS, "its GPUs do not report it, or were not sampled in the training window"),
    "mfu": "the device's peak or the model's FLOPs are not known",
    "bus_bandwidth": "defined for an all-reduce only",
    "jitter_seconds": "ranks wait for each other inside their computation",
    **dict.fromkeys(("exchange_latency_seconds", "exchange_bandwidth"), "exchanges of one size can't tell them apart"),
    "sum_of_rank_rates": "ranks wait for each other in every step: they have one rate",
    "overlap": "there was no pure communication to compare with",
    QUOTIENT: "no communication was exposed",
    "input_seconds": "computation without exchange was not measured",
    "compile_seconds": "it was not compiled",
    "input_rate": "no step waits for its batch",
    **dict.fromkeys(NCCL_COLUMNS, "NCCL did not say it, or there is no report: only several GPUs exchange with NCCL"),
}


def why_missing(dataset: Dataset, row: Any, column: str) -> str:
    """Return why a row of the configurations has no value in ``column``."""
    if column in SEARCHED_COLUMNS and is_missing(row.unsupported_reason):
        has_found = not is_missing(row.largest_batch)
        return (
            "each batch that was tried fits"
            if has_found
            else "the study does not ask for it, or the search is not over"
        )
    if not row.runs_completed:
        return why_not_measured(dataset, row)
    if column in _DENOMINATOR_OF:
        return _why_no_ratio(dataset, row, _DENOMINATOR_OF[column])
    if column in DIFFERENCES or column == "difference_lies_in":
        return _why_no_difference(dataset, row, column)
    if column in TRACED_COLUMNS:
        diagnostics = dataset.diagnostics_of(row.identity)
        of_trace = diagnostics.loc[diagnostics["subject"] == "trace", "message"]
        return "; ".join(of_trace) or "no traced run was found"
    if column in ENERGY:
        obstacles = _completed_runs_of(dataset, row.identity)["energy_obstacle"].dropna()
        return "; ".join(dict.fromkeys(obstacles)) or "not recorded"
    if column == "overlap" and not is_missing(row.exchange_seconds):
        if is_missing(row.jitter_seconds):
            return f"{_OTHER_REASONS['jitter_seconds']}, so the waiting for jitter is not known"
        return "threads that compute and threads that exchange share cores: what one hides slows the other"
    if column in FACTORS and not is_missing(row.efficiency):
        return "computation without exchange was not measured of it and of its baseline"
    exchanges = set(_completed_runs_of(dataset, row.identity)["exchange"])
    if column in EXCHANGE_COLUMNS and exchanges == {NO_EXCHANGE}:
        return "nothing to exchange"
    if column in _OF_SAMPLES and _is_in_tokens(row):
        return _IN_TOKENS
    return _OTHER_REASONS.get(column, "not recorded")


def why_missing_of_run(row: Any, column: str) -> str:
    """Return why a run has no value in ``column``; where that is not known, what the column is."""
    if row.outcome != Outcome.COMPLETED:
        return "the run does not count"
    if column in LIMITED and not row.cpu_limit:
        return "no CPU limit was set"
    if column == "exchange_seconds" and row.exchange == NO_EXCHANGE:
        return "nothing to exchange"
    if column == "further_steps" and row.steadiness == Answer.NOT_STEADY:
        return "the window is not steady: more steps are no help"
    if column == "wall_throughput":
        return "its lines have no times, or these are too coarse or don't fit the printed rates"
    return f"{COLUMNS[column].label}: {COLUMNS[column].definition}."


def _is_in_tokens(row: Any) -> bool:
    """Return whether the rate of a configuration is known in tokens/s only."""
    return is_missing(row.throughput) and not is_missing(row.token_throughput)


def why_not_measured(dataset: Dataset, row: Any) -> str:
    """Return why a configuration has no completed run, or none with a rate in samples/s."""
    if not is_missing(row.unsupported_reason):
        return f"unsupported: {row.unsupported_reason}"
    runs = dataset.runs_of(row.identity)
    not_fitting = runs.loc[runs["outcome"] == Outcome.OUT_OF_MEMORY, "reason"].dropna()
    if len(not_fitting):
        return f"does not fit in memory: {'; '.join(dict.fromkeys(not_fitting))}"
    if _is_in_tokens(row):
        return _IN_TOKENS
    runs = runs[runs["outcome"] != Outcome.COMPLETED]
    failures = []
    for outcome, reason in zip(runs["outcome"], runs["reason"], strict=True):
        failures.append(display_name(outcome) + (f" ({reason})" if not is_missing(reason) else ""))
    return f"no run completed: {'; '.join(dict.fromkeys(failures))}" if failures else "not run yet"


def why_no_interval(dataset: Dataset, row: Any, column: str, denominator: Denominator | None = None) -> str:
    """Return why the value in a column, or its ratio to a baseline or reference, has no interval."""
    if denominator is not None and dataset.plan.order == BLOCKS:
        return "a study in blocks has no interval of a ratio, however many runs it has"
    if row.runs_completed < MINIMUM_RUNS:
        return f"{counted(int(row.runs_completed), 'completed run')}: an interval needs {MINIMUM_RUNS}"
    of_row = _completed_runs_of(dataset, row.identity)
    if denominator is None:
        return _why_no_interval_of_mean(of_row["exposed_seconds" if column == QUOTIENT else column], column)
    of_denominator = _completed_runs_of(dataset, getattr(row, f"{denominator}_identity"))
    if len(of_denominator) < MINIMUM_RUNS:
        return f"its {denominator} has fewer than {MINIMUM_RUNS} completed runs: no interval"
    common_rounds = {*of_row["round"].dropna()} & {*of_denominator["round"].dropna()}
    is_in_rounds = of_row["round"].notna().any() and of_denominator["round"].notna().any()
    if is_in_rounds and len(common_rounds) < MINIMUM_RUNS:
        return (
            f"{counted(len(common_rounds), 'round')} with a run of both it and its {denominator}: an interval of their "
            f"ratio needs {MINIMUM_RUNS}; the ratio itself is of all their runs"
        )
    if len(common_rounds) < MINIMUM_RUNS and not dataset.plan.ingested_from:
        return (
            f"fewer than {MINIMUM_RUNS} rounds have a run of both it and its {denominator}: what a machine does "
            "between blocks of runs can't be told from the configurations"
        )
    return f"runs of it or of its {denominator} are equal, or differ by the same in every round: no interval"


def _completed_runs_of(dataset: Dataset, identity: str) -> pd.DataFrame:
    runs = dataset.runs_of(identity)
    return runs[runs["outcome"] == Outcome.COMPLETED]


def _why_no_interval_of_mean(values: pd.Series, column: str) -> str:
    """Return why the mean of the values of some runs has no interval; that of a quotient, of its denominator."""
    if values.count() < MINIMUM_RUNS:
        return f"fewer than {MINIMUM_RUNS} of its runs have this value: no interval"
    if column == QUOTIENT:
        return "its exposed communication can't be told from 0, so there is no upper bound: no interval"
    return "all its runs have this very value: no interval"


def _why_no_ratio(dataset: Dataset, row: Any, denominator: Denominator) -> str:
    denominator_row = _denominator_row(dataset, row, denominator)
    if denominator_row is None:
        return f"no {denominator} is declared"
    if denominator == "baseline" and not dataset.plan.has_speedups:
        return "no configuration has another one as its baseline"
    reason = why_not_measured(dataset, denominator_row)
    return f"its {denominator} {denominator_row.identity} has no value: {reason}"


def _why_no_difference(dataset: Dataset, row: Any, column: str) -> str:
    if is_missing(row.relative_throughput):
        return _why_no_ratio(dataset, row, "reference")
    reference = _denominator_row(dataset, row, "reference")
    if reference is not None and reference.global_batch != row.global_batch:
        return "its reference has a different global batch, so a step is different work"
    if row.verdict in (NOT_DISTINGUISHABLE, EQUAL) and column not in DIFFERENCES:
        return "neither is faster, as far as these runs tell"
    if is_missing(row.verdict) and column not in DIFFERENCES:
        return why_no_interval(dataset, row, "relative_throughput", "reference")
    return "it was not measured of both"


def _denominator_row(dataset: Dataset, row: Any, denominator: Denominator) -> Any:
    """Return the row of a declared baseline or reference, which is always in the plan; None where none is declared."""
    identity, rows = getattr(row, f"{denominator}_identity"), dataset.configurations
    return None if is_missing(identity) else next(rows[rows["identity"] == identity].itertuples())
