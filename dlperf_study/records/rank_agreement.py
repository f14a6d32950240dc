"""Whether the rank logs of a run fit its configuration and its cluster, and agree with each other."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from dlperf_study.core.errors import Diagnostic, RecordError, Severity
from dlperf_study.core.paths import RunPaths
from dlperf_study.core.wording import counted
from dlperf_study.records import rank_log, run_agreement
from dlperf_study.records.lines import (
    COMMUNICATION_ALONE,
    COMPUTATION_AFTER,
    COMPUTATION_BEFORE,
    INPUT,
    TRAINING,
    WARMUP,
)
from dlperf_study.study.communication import ELEMENT_BYTES, NO_COMMUNICATION, STRATEGIES, UNKNOWN_COMMUNICATION
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.layout import Layout
from dlperf_study.study.precision import COMPUTED_IN, REDUCED_PARAMETERS
from dlperf_study.study.training_parameters import tuning_contradictions

#: What must be equal on every rank; ``REPLICATED_FACTS`` if each rank has the complete network.
EQUAL_FACTS: tuple[str, ...]
EQUAL_FACTS = ("communication", "communication_threads", "communication_library", "gradient_bytes")
EQUAL_FACTS += ("library", "library_version", "code", "computed_in", "cuda")
REPLICATED_FACTS = ("parameters", "flops_per_sample", "hardware_flops_per_sample")
#: The subject of diagnostics about the run of a user's program.
PROGRAM = "program"
#: The usual cause of a loss that is not finite, and what to change in the study.
INFINITE_LOSS_CAUSE = "batch normalisation over few values does that; more images or larger ones help"


def complete_logs(paths: RunPaths, world_size: int) -> tuple[list[rank_log.RankLog], str]:
    """Return the complete rank logs, and why another is incomplete."""
    logs: list[rank_log.RankLog] = []
    problem = ""
    for rank in range(world_size):
        try:
            logs.append(rank_log.read_rank_log(paths.rank_log(rank)))
        except RecordError as error:
            problem = problem or str(error)
            continue
        if logs[-1].is_of_job:
            return logs, ""
    return logs, problem


def contradiction(
    logs: Sequence[rank_log.RankLog], facts: Mapping[str, Any], configuration: Configuration, paths: RunPaths
) -> str:
    """Return why a completed run does not count, or nothing.

    The controller calls it before it records a run as completed, and so does every reader. ``logs`` are those of all
    ranks, in order of rank; ``facts`` is the record.
    """
    try:
        run_agreement.check_record(logs, facts, configuration, paths)
        _check_rank_logs(logs, paths, configuration)
    except RecordError as error:
        return str(error)
    contradictions = [
        _contradictory_number_formats(logs, configuration),
        _contradictory_tuning(logs, configuration),
        _different_devices_or_facts(logs, configuration, facts["cluster"]["device"], facts["code"]),
        _contradictory_communication(logs[0].facts, configuration),
        run_agreement.contradictory_times(logs, facts["seconds"]),
    ]
    if not logs[0].is_of_program:
        # The ranks must have trained one model.
        contradictions.append(run_agreement.different_beginnings(logs))
        contradictions.append(run_agreement.contradictory_parameters(logs, configuration.layout))
        contradictions.append(run_agreement.different_losses(logs, configuration))
        contradictions.append(run_agreement.impossible_ranks(logs))
    contradictions.append(_infinite_losses(logs))
    return next((f"{paths.folder}: {message}" for message in chain.from_iterable(contradictions)), "")


def _check_rank_logs(logs: Sequence[rank_log.RankLog], paths: RunPaths, configuration: Configuration) -> None:
    run = f"{configuration.configuration_id}/{paths.folder.name}"
    for rank, log in enumerate(logs):
        source = str(paths.rank_log(rank))
        if log.facts["run"] != run:
            raise RecordError(f"{source}: is the log of run {log.facts['run']}, not of {run}")
        size = configuration.world_size
        if (log.rank, log.facts["world_size"]) != (rank, size):
            actual = f"rank {log.rank} of {log.facts['world_size']}"
            raise RecordError(f"{source}: is the log of {actual}; expected was {rank} of {size}")
        node, local_rank = divmod(rank, configuration.devices_per_node)
        if (log.facts["node"], log.facts["local_rank"]) != (node, local_rank):
            actual = f"local rank {log.facts['local_rank']} of node {log.facts['node']}"
            raise RecordError(f"{source}: is {actual}; rank {rank} is local rank {local_rank} of node {node}")
        _check_steps(log, configuration.for_run(paths.repetition), source)
    _check_windows(logs, str(paths.folder))
    extra_files = {*paths.folder.glob("rank-*.jsonl")} - {paths.rank_log(log.rank) for log in logs}
    if extra_files:
        names = ", ".join(sorted(file.name for file in extra_files))
        raise RecordError(f"{paths.folder}: {names} does not belong to a rank; the run has {configuration.world_size}")


def _check_windows(logs: Sequence[rank_log.RankLog], source: str) -> None:
    """Check that all ranks measured the same windows and steps."""
    if len({tuple(log.windows) for log in logs}) > 1:
        raise RecordError(f"{source}: the ranks measured different windows")
    for name in logs[0].windows:
        windows = [log.windows[name] for log in logs]
        if len({(window.steps, window.ended_by) for window in windows}) > 1:
            steps = ", ".join(f"{window.steps} {window.ended_by or ''}".strip() for window in windows)
            raise RecordError(f"{source}: the ranks did not agree on the steps of window {name} ({steps})")
        for unit in ("samples", "tokens"):
            counting = [log.rank for log in logs if getattr(log.windows[name], unit) is not None]
            without = [log.rank for log in logs if log.rank not in counting]
            if counting and without:
                raise RecordError(
                    f"{source}: rank {counting[0]} counted the {unit} of window {name}, rank {without[0]} did not"
                )


def _check_steps(log: rank_log.RankLog, configuration: Configuration, source: str) -> None:
    by_time = {WARMUP: configuration.max_warmup_seconds > 0, TRAINING: configuration.measured_seconds > 0}
    for name in by_time:
        if name not in log.windows:
            raise RecordError(f"{source}: has no window {name}")
    before, after = configuration.computation_halves(log.windows[TRAINING].steps)
    requested = {
        WARMUP: configuration.warmup_steps,
        TRAINING: configuration.measured_steps,
        COMPUTATION_BEFORE: before,
        COMPUTATION_AFTER: after,
        INPUT: configuration.input_only_steps,
    }
    for name, window in log.windows.items():
        steps = configuration.communication_only_steps if name.startswith(COMMUNICATION_ALONE) else requested.get(name)
        may_have_more = by_time.get(name, False)
        if steps is None or window.steps < steps or (window.steps > steps and not may_have_more):
            requested_steps = f"at least {steps}" if may_have_more else steps
            raise RecordError(f"{source}: window {name} has {window.steps} steps; requested were {requested_steps}")


def _different_devices_or_facts(
    logs: Sequence[rank_log.RankLog], configuration: Configuration, device: str, controller_code: str
) -> Iterator[str]:
    """Yield facts that must be equal on all ranks and are not."""
    # What a program printed does not say on which device it trained, and earlier versions wrote that it was a CPU.
    devices = {device if log.is_of_job else log.facts["device"] for log in logs}
    if devices != {device}:
        yield f"the ranks trained on {', '.join(sorted(devices))}, but the cluster file has device: {device}"
    hosts_of_nodes = defaultdict[int, set[str]](set)
    for log in logs:
        hosts_of_nodes[log.facts["node"]].add(log.facts["host"])
    for node, hosts in sorted(hosts_of_nodes.items()):
        if len(hosts) > 1:
            yield f"the ranks of node {node} ran on {', '.join(sorted(hosts))}: a node is one host"
    names = EQUAL_FACTS
    if configuration.classifier != "sharded":
        names += REPLICATED_FACTS
    for name in names:
        values = dict.fromkeys(log.facts.get(name) for log in logs)
        if len(values) > 1:
            listed = ", ".join(map(str, values))
            yield f"the ranks have different values of {name} ({listed}): they trained different models"
    if logs[0].facts["code"] != controller_code:
        yield "the ranks ran other benchmark code than the controller of the study"


def _contradictory_number_formats(logs: Sequence[rank_log.RankLog], configuration: Configuration) -> Iterator[str]:
    """Yield how logs contradict the precision and the loss scaling.

    Logs of earlier versions do not say in which number format their rank computed.
    """
    expected = COMPUTED_IN.get(configuration.precision, "no known number format")
    for log in logs:
        computed_in = log.facts.get("computed_in")
        if computed_in is not None and computed_in != expected:
            requested = f"precision is {configuration.precision}, which computes in {expected}"
            yield f"{requested}, but rank {log.rank} computed in {computed_in}"
        if computed_in is not None:
            scale = log.end.get("loss_scale")
            if (scale is None) != (configuration.loss_scaling == "none"):
                ended_with = f"rank {log.rank} ended with {scale or 'no loss scale'}"
                yield f"loss_scaling is {configuration.loss_scaling}, but {ended_with}"
    scales = dict.fromkeys(log.end.get("loss_scale") for log in logs)
    if len(scales) > 1:
        yield f"the ranks ended with different loss scales ({', '.join(map(str, scales))})"
    # Without communication each rank has gradients of its own, and skips steps of its own.
    for name in (WARMUP, TRAINING):
        skipped_steps = [log.windows[name].skipped_steps for log in logs]
        if len(set(skipped_steps)) > 1:
            counts = ", ".join(map(str, skipped_steps))
            yield f"the ranks skipped different numbers of steps of window {name} ({counts})"


def _contradictory_tuning(logs: Sequence[rank_log.RankLog], configuration: Configuration) -> Iterator[str]:
    """Yield how the tuning of ranks differs from the request or each other."""
    tuning_of_ranks: list[dict[str, Any]] = [{**log.facts.get("tuning", {})} for log in logs]
    for log, tuning in zip(logs, tuning_of_ranks, strict=True):
        for message in tuning_contradictions(configuration, tuning):
            yield f"rank {log.rank}: {message}"
        if tuning != tuning_of_ranks[0]:
            first = tuning_of_ranks[0]
            yield f"the library of rank {log.rank} is tuned as {tuning}, but the library of rank 0 as {first}"


def _contradictory_communication(facts: Mapping[str, Any], configuration: Configuration) -> Iterator[str]:
    kind = facts["communication"]
    is_alone = configuration.world_size == 1 and not configuration.parameter_servers
    if kind == UNKNOWN_COMMUNICATION and not is_alone:
        return
    if (kind == NO_COMMUNICATION) != is_alone:
        ranks, servers = counted(configuration.world_size, "rank"), counted(configuration.parameter_servers, "server")
        yield f"communication is {kind} in a run of {ranks} and {servers}"
    strategy = STRATEGIES.get(configuration.strategy)
    if strategy and kind not in (NO_COMMUNICATION, strategy.communication):
        yield f"communication is {kind}, but the strategy is {configuration.strategy}"
    if is_alone or "recorded_by" in facts:
        return
    element = ELEMENT_BYTES[configuration.gradient_compression]
    communicated, most = facts["gradient_bytes"], facts["parameters"] * element
    # With 16 bits a parameter, those of batch norm keep 32.
    least = facts["parameters"] * 2 if configuration.precision in REDUCED_PARAMETERS else most
    # The shard of a classifier is not communicated.
    least = 1 if configuration.classifier == "sharded" else least
    if not least <= communicated <= most:
        network = f"{facts['parameters']} parameters of {element} bytes"
        yield f"gradient_bytes is {communicated}, which doesn't fit {network}: {most}"


def program_diagnostics(logs: Sequence[rank_log.RankLog]) -> Iterator[Diagnostic]:
    """Yield what may be wrong with a run of a user's program."""
    if not logs or not logs[0].is_of_program:
        return
    compared = logs
    if any(log.facts.get("sharded") for log in logs):
        compared = logs[:1]
    if all("parameter_checksum" in log.end for log in logs):
        for message in run_agreement.contradictory_parameters(compared, Layout(data=len(compared))):
            yield Diagnostic(PROGRAM, message, Severity.ERROR)
    else:
        compared = logs[:1]
        yield Diagnostic(PROGRAM, "not checked whether parameters changed: the script does not measure them")
    if logs[0].facts["world_size"] > 1 and len(compared) == 1:
        yield Diagnostic(PROGRAM, "the parameters of its ranks were not compared")
    for obstacle in dict.fromkeys(log.end.get("computation_obstacle") for log in logs):
        if obstacle:
            yield Diagnostic("compute_seconds", f"no compute-only step was measured: {obstacle}", Severity.NOTE)


def _infinite_losses(logs: Sequence[rank_log.RankLog]) -> Iterator[str]:
    for log in logs:
        for window in log.windows.values():
            infinite_steps = np.flatnonzero(~np.isfinite(window.losses))
            if infinite_steps.size:
                step = infinite_steps[0]
                where = f"rank {log.rank}: loss {step} of window {window.name} is {window.losses[step]}"
                yield f"a loss is not finite ({where}): {INFINITE_LOSS_CAUSE}"
