"""The rows of one ingested run in the tables of runs and steps, and its diagnostics."""

from collections.abc import Iterator, Set
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.core.wording import counted
from dlperf_study.dataset import tables
from dlperf_study.dataset.ingestion.job_rates import Rates, listed_levels, named_windows
from dlperf_study.dataset.ingestion.run_reader import PrintedRun
from dlperf_study.dataset.ingestion.self_comparison import BY_CLOCK
from dlperf_study.logs.metadata import LogMetadata
from dlperf_study.metrics import steady_state, throughput_series
from dlperf_study.metrics.columns import Source, compute_values
from dlperf_study.metrics.step_times import step_variation
from dlperf_study.study.job import RunStatus
from dlperf_study.study.plan import Entry

#: The rank of a series of the whole job.
WHOLE_JOB = -1
#: The mean of fewer lines says little.
_FEWEST_LINES = 3
#: By how much leaving out lines may change a throughput without a warning.
LEFT_OUT_TOLERANCE = 0.01
_EXTRA_COLUMNS = ("device", "device_name", "interconnect", "library", "library_version")


def run_row(entry: Entry, metadata: LogMetadata, run: PrintedRun) -> dict[str, Any]:
    """Return the columns of one run; without measurements if refused."""
    configuration = entry.configuration
    row = {
        "configuration_id": configuration.configuration_id,
        "repetition": run.repetition,
        **entry.parameters,
        "world_size": configuration.world_size,
        "global_batch": metadata.global_batch,
        "status": str(RunStatus.FAILED if run.refusal else RunStatus.COMPLETED),
        "reason": run.refusal,
        "ranks_expected": metadata.job_size.world_size,
        "ranks_seen": run.ranks_seen,
        "log_format": run.format or None,
        **{name: getattr(metadata.extras, name) for name in _EXTRA_COLUMNS},
    }
    if run.rates:
        row |= _rate_columns(metadata, run.rates, bool(run.refusal))
    return row


def _rate_columns(metadata: LogMetadata, rates: Rates, is_refused: bool) -> dict[str, Any]:
    """Return the columns about printed lines, and a counted run's measurements."""
    window = rates.steady.window
    columns: dict[str, Any] = {
        "printed_throughput": rates.printed,
        "merge_rule": rates.rule,
        "printed_lines": rates.rate.size,
        "steady_lines": int(window.kept.sum()),
        "steady_window": "; ".join(window.reasons),
    }
    if rates.steady.behaviour:
        columns["behaviour"] = str(rates.steady.behaviour)
    if len(rates.steady.levels) > 1:
        columns["throughput_levels"] = listed_levels(rates)
    if rates.fixed_steps:
        columns["fixed_window"] = f"{rates.fixed_steps[0]} to {rates.fixed_steps[1] - 1}"
    if is_refused:
        return columns
    losses, steadiness = rates.loss[~np.isnan(rates.loss)], rates.steady.steadiness
    settled_at_step = None
    if steadiness.is_steady:
        settled_at_step = int(rates.step[np.argmax(window.kept)])
    if not rates.counts_tokens:
        columns |= _sample_columns(metadata.global_batch, rates)
    columns["token_throughput"] = window.wall_rate * rates.tokens
    columns["device_token_throughput"] = columns["token_throughput"] / metadata.job_size.devices
    columns["step_variation"] = step_variation(1 / rates.rate[window.kept])
    columns |= compute_values(
        Source.STEADINESS, steady_state.WindowSteadiness(steadiness, settled_at_step, rates.rate.size)
    )
    if losses.size:
        columns["final_loss"] = float(losses[-1])
    return columns


def _sample_columns(global_batch: int, rates: Rates) -> dict[str, Any]:
    """Return the columns of a run whose samples are counted."""
    window = rates.steady.window
    columns: dict[str, Any] = {"throughput": window.wall_rate, "mean_step_throughput": window.mean_step_throughput}
    columns["step_seconds"] = columns["broken_down_step_seconds"] = global_batch / window.wall_rate
    if rates.wall and rates.wall.obstacle:
        columns["wall_obstacle"] = rates.wall.obstacle
    elif rates.wall:
        columns["wall_throughput"] = rates.wall.rate
    columns["fixed_window_clock_throughput"] = rates.fixed_clock_rate
    if rates.fixed:
        columns["fixed_window_throughput"] = rates.fixed.wall_rate
        columns["fixed_window_mean_step_throughput"] = rates.fixed.mean_step_throughput
    return columns


def step_rows(entry: Entry, metadata: LogMetadata, run: PrintedRun) -> Iterator[pa.Table]:
    """Yield a run's rates as rows of steps, ROWS_AT_ONCE each."""
    rates = run.rates
    assert rates
    window_names, window_masks = zip(*named_windows(rates), strict=True)
    for start in range(0, rates.rate.size, tables.ROWS_AT_ONCE):
        piece = slice(start, start + tables.ROWS_AT_ONCE)
        yield tables.step_rows(
            entry.configuration.configuration_id,
            run.repetition,
            rank=np.full(rates.rate[piece].size, WHOLE_JOB),
            window=(np.argmax([mask[piece] for mask in window_masks], axis=0), window_names),
            step=rates.step[piece],
            seconds=(np.nan if rates.counts_tokens else metadata.global_batch) / rates.rate[piece],
            loss=rates.loss[piece],
        )


def run_diagnostics(entry: Entry, run: PrintedRun) -> Iterator[Diagnostic]:
    """Yield every diagnostic about a run."""
    diagnostics = list(run.diagnostics)
    if run.refusal:
        diagnostics.insert(0, Diagnostic("status", f"not counted: {run.refusal}", Severity.ERROR))
    elif run.rates:
        diagnostics += _rate_diagnostics(run.rates, {diagnostic.subject for diagnostic in diagnostics})
    for diagnostic in diagnostics:
        yield replace(diagnostic, configuration_id=entry.configuration.configuration_id, repetition=run.repetition)


def _rate_diagnostics(rates: Rates, subjects: Set[str]) -> Iterator[Diagnostic]:
    """Yield doubts about rates; ``subjects`` have a diagnostic already."""
    reasons = "; ".join(rates.steady.window.reasons)
    if rates.steady.steadiness.answer is steady_state.Answer.NOT_STEADY:
        yield Diagnostic("steadiness", f"no steady state: {reasons}")
    elif rates.steady.steadiness.answer is steady_state.Answer.INCONCLUSIVE:
        yield Diagnostic("steadiness", f"inconclusive whether there is a steady state: {reasons}")
    if rates.steady.startup > max(1, throughput_series.LONG_STARTUP * rates.rate.size):
        startup = f"{rates.steady.startup} of {rates.rate.size} lines left out as start-up"
        yield Diagnostic("steadiness", f"{startup}: are the others representative of the run?")
    with_all, without = rates.steady.rate_of_all, rates.steady.window.wall_rate
    if abs(without / with_all - 1) > LEFT_OUT_TOLERANCE:
        lines = int(np.count_nonzero(~rates.steady.window.kept)) - rates.steady.startup
        numbers = f"{without:.6g} {rates.unit} without {counted(lines, 'line')}, {with_all:.6g} with them"
        yield Diagnostic("throughput", f"{numbers}: {reasons}")
    if rates.wall and rates.wall.misfit and BY_CLOCK not in subjects:
        yield Diagnostic(BY_CLOCK, f"no rate by the clock: {rates.wall.misfit}", Severity.NOTE)
    if rates.counts_tokens:
        remedy = "state tokens_per_sample to compare it with samples/s, and to know the time of a step"
        yield Diagnostic("token_throughput", f"the rate is in tokens/s; {remedy}", Severity.NOTE)
    elif rates.fixed:
        yield from _fixed_window_diagnostics(rates.fixed)


def _fixed_window_diagnostics(window: throughput_series.RateWindow) -> Iterator[Diagnostic]:
    lines = int(window.kept.sum())
    if not lines or not window.is_full:
        yield Diagnostic("fixed_window_mean_step_throughput", f"DLPerf's window is not full: {window.reasons[0]}")
    elif lines < _FEWEST_LINES:
        message = f"DLPerf's window has only {counted(lines, 'line')} of this log"
        yield Diagnostic("fixed_window_mean_step_throughput", message)
