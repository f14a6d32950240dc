"""Diagnostics about one run, each with its evidence. None of them changes a number."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from dlperf_study.analysis.communication import (
    ERRORS,
    exchange_kind,
    exposed_error_seconds,
    exposed_seconds,
    jitter_seconds,
    overlap,
    rank_computations,
    rank_waiting_seconds,
    shared_cores,
    unexplained_waiting_seconds,
)
from dlperf_study.analysis.steady_state import TOLERANCE, Answer
from dlperf_study.analysis.throughput import (
    drain_resolution_seconds,
    drain_seconds,
    makespan_seconds,
    slowest_training,
)
from dlperf_study.analysis.utilisation import WINOGRAD, device_peak, model_flops_utilisation, severity_above_peak
from dlperf_study.dataset import resource_diagnostics
from dlperf_study.dataset.rounds import REMEDY
from dlperf_study.dataset.run_table import hosts_of, steadiness_of
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.evidence.rank_agreement import NO_EXCHANGE
from dlperf_study.evidence.rank_log_writer import COMPUTATION_AFTER, COMPUTATION_BEFORE, EXCHANGE
from dlperf_study.evidence.run import Run
from dlperf_study.study.job import Outcome
from dlperf_study.study.turn import ROUNDS
from dlperf_study.wording import counted

#: The subject of a diagnostic about a straggler, which makes the computation of a configuration uneven among ranks.
UNEVEN = "load_balance"
#: A rank is a straggler when its computation takes this many times the median of the other ranks', and not by chance.
STRAGGLER = 1.05
#: Cores that other processes may keep busy before a run is diagnosed.
BUSY_CORES = 0.25
#: The clocks of the machines of a cluster may differ by as much.
CLOCKS_APART = timedelta(minutes=1)
#: Share of the window that late updates may take after it.
DRAIN_SHARE = 0.05
#: Possible explanations of a step that waits longer than the exchange takes.
WAITING = "waiting for a slower rank counts as communication here, and can explain that"
OVERHEAD = "no slower rank explains that; hooks, copies and contention may, which the exchange alone does not have"


def run_diagnostics(run: Run, tolerance: float = TOLERANCE) -> list[Diagnostic]:
    """Return every diagnostic about a run, those of its record first; ``tolerance``: see ``steadiness``."""
    checks = (*EVERY_RUN, *COMPLETED_RUN) if run.completed else EVERY_RUN
    diagnostics = list(run.diagnostics)
    for check in checks:
        diagnostics.extend(check(run))
    if run.completed:
        diagnostics.extend(unsteady(run, tolerance))
    return [replace(diagnostic, identity=run.identity, repetition=run.repetition) for diagnostic in diagnostics]


def failed(run: Run) -> Iterator[Diagnostic]:
    """A run that did not complete is not counted; that memory is too small for it is a result."""
    if run.outcome is Outcome.OUT_OF_MEMORY:
        yield Diagnostic("outcome", f"does not fit in memory: {run.reason or 'no reason given'}", Severity.NOTE)
    elif not run.completed:
        yield Diagnostic("outcome", f"{run.outcome}, not counted: {run.reason or 'no reason given'}", Severity.ERROR)


def busy_machine(run: Run) -> Iterator[Diagnostic]:
    """Other processes computed before or during the run, or earlier runs had left some behind."""
    load = run.facts["load"]
    for busy_cores, when in ((load["busy_cores_before"], "before"), (load["busy_cores_during"], "during")):
        busy = busy_cores or 0.0
        if busy > BUSY_CORES:
            yield Diagnostic("busy_cores", f"other processes kept {busy:.2f} cores busy {when} the run")
    if survivors := load["survivors_ended"]:
        yield Diagnostic("survivors_ended", f"ended before it, left by earlier runs: {', '.join(survivors)}")


def out_of_round(run: Run) -> Iterator[Diagnostic]:
    """The run was measured in rounds, but after its own: then no other configuration saw the same machine."""
    if run.facts["order"] == ROUNDS and run.facts["round"] is None:
        yield Diagnostic("round", f"it was measured after its round, when later rounds were done: {REMEDY}")


def other_clock(run: Run) -> Iterator[Diagnostic]:
    """The record says another time than the clocks of the ranks: which runs share a round depends on it."""
    started = datetime.fromisoformat(str(run.facts["started"]))
    earliest = started - CLOCKS_APART
    latest = started + CLOCKS_APART + timedelta(seconds=run.facts["seconds"] or 0.0)
    for log in run.ranks:
        anchor = datetime.fromtimestamp(log.facts["wall_anchor"]["unix_ns"] / 1e9, UTC)
        if not earliest <= anchor <= latest:
            host, time = log.facts["host"], anchor.isoformat(timespec="seconds")
            message = f"run.json says {started.isoformat(timespec='seconds')}, but on {host} it was {time}"
            yield Diagnostic("started", f"{message} when rank {log.rank} began: one of the clocks is wrong")
            return


def too_few_cores(run: Run) -> Iterator[Diagnostic]:
    """Trainers and servers share cores, so that adding devices adds no computing power."""
    cores = run.facts["environment"]["hardware"].get("cores")
    configuration, hosts = run.configuration, len(hosts_of(run))
    processes = (configuration.world_size + configuration.servers) / hosts
    if cores and processes > cores:
        yield Diagnostic("cores", f"{processes:g} trainers and servers on a host of {counted(cores, 'core')}")
    elif cores and configuration.world_size * configuration.threads_per_device / hosts > cores:
        threads = counted(configuration.threads_per_device, "thread")
        yield Diagnostic("cores", f"{processes:g} processes of {threads} on {counted(cores, 'core')}")


def unsteady(run: Run, tolerance: float) -> Iterator[Diagnostic]:
    """The measured window is not steady; one that is too short to tell is a note of the study."""
    result, settled = steadiness_of(run, tolerance)
    if result.answer is not Answer.NOT_STEADY:
        return
    message = f"parts of the window differ by {100 * result.difference:.0f} % of a step"
    if settled is None:
        message += ", and its second half is not shown to be steady either"
        yield Diagnostic("steadiness", f"{message}: what else did the machine do?")
    else:
        remedy = (
            f"it is steady only from step {settled} of {slowest_training(run).steps} on: a longer warm-up would help"
        )
        yield Diagnostic("steadiness", f"{message}; {remedy}")


def stragglers(run: Run) -> Iterator[Diagnostic]:
    """A rank computes slower than the others by more than chance, and they wait for it in every step."""
    computations = rank_computations(run)
    seconds = np.array([computation.mean for computation in computations])
    errors = np.array([computation.error for computation in computations])
    for rank in range(seconds.size if seconds.size > 1 else 0):
        usual = float(np.median(np.delete(seconds, rank)))
        error = float(np.hypot(errors[rank], np.delete(errors, rank).max()))
        if seconds[rank] > STRAGGLER * usual and seconds[rank] - usual > ERRORS * error:
            host, factor = run.ranks[rank].facts["host"], seconds[rank] / usual
            yield Diagnostic(UNEVEN, f"straggler: rank {rank} on {host} computes {factor:.2f} times as long as others")


def negative_communication(run: Run) -> Iterator[Diagnostic]:
    """The step was faster than its computation alone, by more than the spread of the steps explains."""
    exposed = exposed_seconds(run)
    if exposed is not None and exposed < -ERRORS * exposed_error_seconds(run):
        message = f"the step takes {-exposed:.3g} s less than its computation alone"
        yield Diagnostic("exposed_seconds", f"{message}. The machine may have been slower in the windows around it")


def negative_overlap(run: Run) -> Iterator[Diagnostic]:
    """The step waits longer for the exchange than the exchange takes alone."""
    overlapped = overlap(run)
    exchange = run.slowest(EXCHANGE)
    if overlapped is None or exchange is None:
        return
    if overlapped < -ERRORS * exposed_error_seconds(run) / exchange.mean_seconds:
        message = f"the step waits {1 - overlapped:.2f} times as long for the exchange as it takes alone"
        waits_for_ranks = rank_waiting_seconds(run) >= unexplained_waiting_seconds(run)
        yield Diagnostic("overlap", f"{message}: {WAITING if waits_for_ranks else OVERHEAD}")


def meaningless_overlap(run: Run) -> Iterator[Diagnostic]:
    """Computation and exchange share cores, or ranks wait for each other in both: neither tells what is hidden."""
    if exposed_seconds(run) is None or not run.windows(EXCHANGE):
        return
    if reason := shared_cores(run):
        yield Diagnostic("overlap", f"not given: {reason}, so what is hidden slows the computation", Severity.NOTE)
    elif jitter_seconds(run) is None:
        reason = "ranks wait for each other inside their computation, so the waiting for jitter is not known"
        yield Diagnostic("overlap", f"not given: {reason}", Severity.NOTE)


def unmeasured_parts(run: Run) -> Iterator[Diagnostic]:
    """A window of the configuration was not measured."""
    configuration = run.configuration
    before, after = configuration.computation_halves(slowest_training(run).steps)
    parts = (
        ("computation_seconds", "first computation-only", COMPUTATION_BEFORE, before),
        ("computation_seconds", "second computation-only", COMPUTATION_AFTER, after),
        ("exchange_seconds", "exchange-only", EXCHANGE, configuration.exchange_steps),
    )
    for column, kind, name, steps in parts:
        if steps and exchange_kind(run) != NO_EXCHANGE and not run.windows(name):
            yield Diagnostic(column, f"the {kind} window was requested and is missing", Severity.ERROR)


def impossible_utilisation(run: Run) -> Iterator[Diagnostic]:
    """The utilisation is above 1: more FLOPs than the peak of the device."""
    mfu = model_flops_utilisation(run)
    severity = None if mfu is None else severity_above_peak(mfu)
    if severity is not None:
        peak, source = device_peak(run)
        is_wrong = f"the peak of a device, {peak:.4g} FLOP/s (from {source}), or the FLOPs of the model are wrong"
        explanation = is_wrong if severity is Severity.ERROR else f"{WINOGRAD}, or {is_wrong}"
        yield Diagnostic("mfu", f"{mfu:.2f} is above 1: {explanation}", severity)


def late_updates(run: Run) -> Iterator[Diagnostic]:
    """Asynchronous updates were pending when the clock stopped; how long is known to a resolution only."""
    drain, resolution, makespan = drain_seconds(run), drain_resolution_seconds(run), makespan_seconds(run)
    if drain > DRAIN_SHARE * makespan:
        message = f"late updates took {drain:.3g} s of the {makespan:.3g} s that count"
        yield Diagnostic("drain_seconds", f"{message}: the servers are slower than the trainers")
    if resolution > DRAIN_SHARE * makespan:
        message = f"late updates may have taken {resolution:.2g} s more than could be seen"
        share = f"{100 * resolution / makespan:.0f} % of what counts"
        yield Diagnostic("drain_seconds", f"{message}, {share}: a longer window makes that negligible")


def skipped_steps(run: Run) -> Iterator[Diagnostic]:
    """Measured steps updated nothing: gradients overflowed, and loss scaling left the updates out."""
    window = slowest_training(run)
    if window.skipped_steps:
        skipped = f"{window.skipped_steps} of {window.steps} measured steps updated nothing"
        remedy = "a longer warm-up would find the scale before"
        if run.configuration.loss_scaling == "static":
            remedy = f"the constant {run.ranks[0].end.get('loss_scale'):g} is too large"
        yield Diagnostic("skipped_steps", f"{skipped}: their gradients overflowed; {remedy}")


EVERY_RUN = (failed, busy_machine, *resource_diagnostics.OF_EVERY_RUN)
COMPLETED_RUN = (
    out_of_round,
    other_clock,
    too_few_cores,
    stragglers,
    negative_communication,
    negative_overlap,
    meaningless_overlap,
    unmeasured_parts,
    impossible_utilisation,
    late_updates,
    skipped_steps,
    *resource_diagnostics.OF_COMPLETED_RUN,
)
