"""The rows of one ingested run in the tables of runs and steps, and its diagnostics."""

from collections.abc import Iterator, Set
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.core.wording import counted
from dlperf_study.dataset import tables
from dlperf_study.dataset.ingestion.job_throughputs import Throughputs, listed_levels, named_windows
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
    if run.throughputs:
        row |= _throughput_columns(metadata, run.throughputs, bool(run.refusal))
    return row


def _throughput_columns(metadata: LogMetadata, throughputs: Throughputs, is_refused: bool) -> dict[str, Any]:
    """Return the columns about printed lines, and a counted run's measurements."""
    window = throughputs.steady.window
    columns: dict[str, Any] = {
        "printed_throughput": throughputs.printed,
        "merge_rule": throughputs.rule,
        "printed_lines": throughputs.throughput.size,
        "steady_lines": int(window.kept.sum()),
        "steady_window": "; ".join(window.reasons),
    }
    if throughputs.steady.behaviour:
        columns["behaviour"] = str(throughputs.steady.behaviour)
    if len(throughputs.steady.levels) > 1:
        columns["throughput_levels"] = listed_levels(throughputs)
    if throughputs.fixed_steps:
        columns["fixed_window"] = f"{throughputs.fixed_steps[0]} to {throughputs.fixed_steps[1] - 1}"
    if is_refused:
        return columns
    losses, steadiness = throughputs.loss[~np.isnan(throughputs.loss)], throughputs.steady.steadiness
    settled_at_step = None
    if steadiness.is_steady:
        settled_at_step = int(throughputs.step[np.argmax(window.kept)])
    if not throughputs.counts_tokens:
        columns |= _sample_columns(metadata.global_batch, throughputs)
    columns["token_throughput"] = window.wall_throughput * throughputs.tokens
    columns["device_token_throughput"] = columns["token_throughput"] / metadata.job_size.devices
    columns["step_variation"] = step_variation(1 / throughputs.throughput[window.kept])
    columns |= compute_values(
        Source.STEADINESS, steady_state.WindowSteadiness(steadiness, settled_at_step, throughputs.throughput.size)
    )
    if losses.size:
        columns["final_loss"] = float(losses[-1])
    return columns


def _sample_columns(global_batch: int, throughputs: Throughputs) -> dict[str, Any]:
    """Return the columns of a run whose samples are counted."""
    window = throughputs.steady.window
    columns: dict[str, Any] = {
        "throughput": window.wall_throughput,
        "mean_step_throughput": window.mean_step_throughput,
    }
    columns["step_seconds"] = columns["broken_down_step_seconds"] = global_batch / window.wall_throughput
    if throughputs.wall and throughputs.wall.obstacle:
        columns["wall_obstacle"] = throughputs.wall.obstacle
    elif throughputs.wall:
        columns["wall_throughput"] = throughputs.wall.throughput
    columns["fixed_window_clock_throughput"] = throughputs.fixed_clock_throughput
    if throughputs.fixed:
        columns["fixed_window_throughput"] = throughputs.fixed.wall_throughput
        columns["fixed_window_mean_step_throughput"] = throughputs.fixed.mean_step_throughput
    return columns


def step_rows(entry: Entry, metadata: LogMetadata, run: PrintedRun) -> Iterator[pa.Table]:
    """Yield a run's throughputs as rows of steps, ROWS_AT_ONCE each."""
    throughputs = run.throughputs
    assert throughputs
    window_names, window_masks = zip(*named_windows(throughputs), strict=True)
    for start in range(0, throughputs.throughput.size, tables.ROWS_AT_ONCE):
        piece = slice(start, start + tables.ROWS_AT_ONCE)
        yield tables.step_rows(
            entry.configuration.configuration_id,
            run.repetition,
            rank=np.full(throughputs.throughput[piece].size, WHOLE_JOB),
            window=(np.argmax([mask[piece] for mask in window_masks], axis=0), window_names),
            step=throughputs.step[piece],
            seconds=(np.nan if throughputs.counts_tokens else metadata.global_batch) / throughputs.throughput[piece],
            loss=throughputs.loss[piece],
        )


def run_diagnostics(entry: Entry, run: PrintedRun) -> Iterator[Diagnostic]:
    """Yield every diagnostic about a run."""
    diagnostics = list(run.diagnostics)
    if run.refusal:
        diagnostics.insert(0, Diagnostic("status", f"not counted: {run.refusal}", Severity.ERROR))
    elif run.throughputs:
        diagnostics += _throughput_diagnostics(run.throughputs, {diagnostic.subject for diagnostic in diagnostics})
    for diagnostic in diagnostics:
        yield replace(diagnostic, configuration_id=entry.configuration.configuration_id, repetition=run.repetition)


def _throughput_diagnostics(throughputs: Throughputs, subjects: Set[str]) -> Iterator[Diagnostic]:
    """Yield doubts about throughputs; ``subjects`` have a diagnostic already."""
    reasons = "; ".join(throughputs.steady.window.reasons)
    if throughputs.steady.steadiness.answer is steady_state.Answer.NOT_STEADY:
        yield Diagnostic("steadiness", f"no steady state: {reasons}")
    elif throughputs.steady.steadiness.answer is steady_state.Answer.INCONCLUSIVE:
        yield Diagnostic("steadiness", f"inconclusive whether there is a steady state: {reasons}")
    if throughputs.steady.startup > max(1, throughput_series.LONG_STARTUP * throughputs.throughput.size):
        startup = f"{throughputs.steady.startup} of {throughputs.throughput.size} lines left out as start-up"
        yield Diagnostic("steadiness", f"{startup}; the other lines may not represent the run")
    with_all, without = throughputs.steady.throughput_of_all, throughputs.steady.window.wall_throughput
    if abs(without / with_all - 1) > LEFT_OUT_TOLERANCE:
        lines = int(np.count_nonzero(~throughputs.steady.window.kept)) - throughputs.steady.startup
        numbers = f"{without:.6g} {throughputs.unit} without {counted(lines, 'line')}, {with_all:.6g} with them"
        yield Diagnostic("throughput", f"{numbers}: {reasons}")
    if throughputs.wall and throughputs.wall.misfit and BY_CLOCK not in subjects:
        yield Diagnostic(BY_CLOCK, f"no throughput by the clock: {throughputs.wall.misfit}", Severity.NOTE)
    if throughputs.counts_tokens:
        remedy = "state tokens_per_sample to get samples/s and step times"
        yield Diagnostic("token_throughput", f"the throughput is in tokens/s; {remedy}", Severity.NOTE)
    elif throughputs.fixed:
        yield from _fixed_window_diagnostics(throughputs.fixed)


def _fixed_window_diagnostics(window: throughput_series.ThroughputWindow) -> Iterator[Diagnostic]:
    lines = int(window.kept.sum())
    if not lines or not window.is_full:
        yield Diagnostic("fixed_window_mean_step_throughput", f"DLPerf's window is not full: {window.reasons[0]}")
    elif lines < _FEWEST_LINES:
        message = f"DLPerf's window has only {counted(lines, 'line')} of this log"
        yield Diagnostic("fixed_window_mean_step_throughput", message)
