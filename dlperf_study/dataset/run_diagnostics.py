"""Diagnostics about one run, each with its evidence. None of them changes a number."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dlperf_study.analysis.communication import (
    computation_windows,
    exchange_kind,
    exposed_noise_seconds,
    overlap,
    rank_waiting_seconds,
    unclipped_exposed_seconds,
    unexplained_waiting_seconds,
)
from dlperf_study.analysis.steady_state import MINIMUM_STEPS, settled_at
from dlperf_study.analysis.throughput import drain_seconds, model_flops_utilisation, slowest_training
from dlperf_study.dataset.run_table import hosts_of
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.evidence.rank_agreement import NO_EXCHANGE
from dlperf_study.evidence.rank_log import COMPUTATION, EXCHANGE, TRAINING
from dlperf_study.evidence.run import Run
from dlperf_study.wording import counted

#: The subject of a diagnostic about a straggler, which makes the computation of a configuration uneven among ranks.
UNEVEN = "load_balance"
#: A rank is a straggler when its computation takes this many times the median of the other ranks'.
STRAGGLER = 1.2
#: Cores that other processes may keep busy before a run is diagnosed.
BUSY_CORES = 0.25
#: Share of the window that late updates may take after it.
DRAIN_SHARE = 0.05
#: Possible explanations of a step that waits longer than the exchange takes.
WAITING = "waiting for a slower rank counts as communication here, and can explain that"
OVERHEAD = "no slower rank explains that; hooks, copies and contention may, which the exchange alone does not have"


def run_diagnostics(run: Run) -> list[Diagnostic]:
    """Return every diagnostic about a run, those of its record first."""
    checks = (*EVERY_RUN, *COMPLETED_RUN) if run.completed else EVERY_RUN
    diagnostics = list(run.diagnostics)
    for check in checks:
        diagnostics.extend(check(run))
    return [replace(diagnostic, identity=run.identity, repetition=run.repetition) for diagnostic in diagnostics]


def failed(run: Run) -> Iterator[Diagnostic]:
    """A run that did not complete is not counted."""
    if not run.completed:
        yield Diagnostic("outcome", f"{run.outcome}, not counted: {run.reason or 'no reason given'}", Severity.ERROR)


def busy_machine(run: Run) -> Iterator[Diagnostic]:
    """Other processes computed before or during the run, or earlier runs had left some behind."""
    load = run.facts["load"]
    for when in ("before", "during"):
        busy = load.get(f"busy_cores_{when}") or 0.0
        if busy > BUSY_CORES:
            yield Diagnostic("busy_cores", f"other processes kept {busy:.2f} cores busy {when} the run")
    survivors = load.get("survivors_ended")
    if survivors:
        yield Diagnostic("survivors_ended", f"ended before it, left by earlier runs: {', '.join(survivors)}")


def too_few_cores(run: Run) -> Iterator[Diagnostic]:
    """Trainers and servers share cores, so that adding devices adds no computing power."""
    cores = run.facts["environment"].get("hardware", {}).get("cores")
    configuration, hosts = run.configuration, len(hosts_of(run))
    processes = (configuration.world_size + configuration.servers) / hosts
    if cores and processes > cores:
        yield Diagnostic("cores", f"{processes:g} trainers and servers on a host of {counted(cores, 'core')}")
    elif cores and configuration.world_size * configuration.threads_per_device / hosts > cores:
        threads = counted(configuration.threads_per_device, "thread")
        yield Diagnostic("cores", f"{processes:g} processes of {threads} on {counted(cores, 'core')}")


def unsteady(run: Run) -> Iterator[Diagnostic]:
    """The measured window has not settled, or is too short to tell."""
    window = slowest_training(run)
    settled = settled_at(window.step_seconds)
    if window.steps < MINIMUM_STEPS:
        message = f"{window.steps} measured steps are too few to test for a steady state; {MINIMUM_STEPS} would do"
        yield Diagnostic("settled_at_step", message)
    elif settled is None:
        yield Diagnostic("settled_at_step", "the step time never settles; more steps would show whether it does")
    elif settled:
        message = f"the step time settles only at step {settled} of {window.steps}; more warm-up steps would help"
        yield Diagnostic("settled_at_step", message)


def stragglers(run: Run) -> Iterator[Diagnostic]:
    """A rank computes much slower than the others, which wait for it in every step."""
    seconds = np.array([window.mean_seconds for window in computation_windows(run)])
    for rank in range(seconds.size if seconds.size > 1 else 0):
        factor = seconds[rank] / np.median(np.delete(seconds, rank))
        if factor > STRAGGLER:
            host = run.ranks[rank].facts["host"]
            yield Diagnostic(UNEVEN, f"rank {rank} on {host} computes {factor:.2f} times as long as the others")


def negative_communication(run: Run) -> Iterator[Diagnostic]:
    """The step was faster than its computation alone, by more than the spread of the steps explains."""
    exposed = unclipped_exposed_seconds(run)
    if exposed is not None and exposed < -exposed_noise_seconds(run):
        message = f"the step takes {-exposed:.3g} s less than its computation alone; shown as 0"
        yield Diagnostic("exposed_seconds", f"{message}. The machine may have slowed down between the windows")


def negative_overlap(run: Run) -> Iterator[Diagnostic]:
    """The step waits longer for the exchange than the exchange takes alone."""
    overlapped = overlap(run)
    if overlapped is not None and overlapped < 0:
        message = f"the step waits {1 - overlapped:.2f} times as long for the exchange as it takes alone"
        waits_for_ranks = rank_waiting_seconds(run) >= unexplained_waiting_seconds(run)
        yield Diagnostic("overlap", f"{message}: {WAITING if waits_for_ranks else OVERHEAD}")


def unknown_overlap(run: Run) -> Iterator[Diagnostic]:
    """The step was not longer than its computation alone, so its overlap is unknown."""
    exposed = unclipped_exposed_seconds(run)
    if exposed is not None and exposed < 0 and run.windows(EXCHANGE):
        message = f"the step takes {-exposed:.3g} s less than its computation alone"
        yield Diagnostic("overlap", f"not known: {message}, so none of the exchange was seen in it")


def unmeasured_parts(run: Run) -> Iterator[Diagnostic]:
    """A window of the configuration was not measured."""
    configuration = run.configuration
    parts = (
        ("computation_seconds", "computation-only", COMPUTATION, configuration.computation_steps),
        ("exchange_seconds", "exchange-only", EXCHANGE, configuration.exchange_steps),
    )
    for column, kind, name, steps in parts:
        if steps and exchange_kind(run) != NO_EXCHANGE and not run.windows(name):
            yield Diagnostic(column, f"the {kind} window was requested and is missing", Severity.ERROR)


def impossible_utilisation(run: Run) -> Iterator[Diagnostic]:
    """The utilisation is above 1: more FLOPs than the peak of the device."""
    mfu = model_flops_utilisation(run)
    if mfu is not None and mfu > 1:
        message = f"{mfu:.2f} is above 1: the peak of the device or the FLOPs of the model are wrong"
        yield Diagnostic("mfu", message, Severity.ERROR)


def infinite_loss(run: Run) -> Iterator[Diagnostic]:
    """The loss is not finite, after which a step may be faster or slower than real training."""
    for log in run.ranks:
        steps = np.flatnonzero(~np.isfinite(log.windows[TRAINING].losses))
        if steps.size:
            message = f"rank {log.rank}: the loss is not finite from measured step {steps[0]} on"
            yield Diagnostic("final_loss", message, Severity.ERROR)


def late_updates(run: Run) -> Iterator[Diagnostic]:
    """Asynchronous updates were pending when the clock stopped, so the throughput counts work that was not done."""
    drain = drain_seconds(run)
    window = slowest_training(run).seconds
    if drain > DRAIN_SHARE * window:
        message = f"late updates took {drain:.3g} s after a window of {window:.3g} s"
        yield Diagnostic("drain_seconds", f"{message}; the throughput counts them as done")


EVERY_RUN = (failed, busy_machine)
COMPLETED_RUN = (
    too_few_cores,
    unsteady,
    stragglers,
    negative_communication,
    negative_overlap,
    unknown_overlap,
    unmeasured_parts,
    impossible_utilisation,
    infinite_loss,
    late_updates,
)
