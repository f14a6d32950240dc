"""Whether what a completed run left fits together: its record, the times of its windows, and the models of its ranks.

The record must fit how processes ended, the nodes and the ranks. Windows are measured in order, one after the other,
within the life of the processes. The ranks must have trained one model, by their parameters and by their losses.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from typing import Any

import numpy as np

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import RunPaths
from dlperf_study.core.wording import counted
from dlperf_study.records import lines, rank_log, run_file
from dlperf_study.study.communication import SYNCHRONOUS
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import PRODUCER, TaskRole
from dlperf_study.study.layout import OF_COPIES, OF_REPLICA, Layout
from dlperf_study.study.validation import parse_object, read_text_file

#: The names of tasks that are one rank each.
_TASK_OF_RANK = re.compile(r"(?:rank|trainer)-(\d+)")
#: What a version ends with that names its build: 2.13.0+cpu, 2.4.2.post112.
_BUILD = re.compile(r"\+.*|\.post\d+$")
#: How long all processes of a run may take to start and to end, in seconds: its timeout counts neither.
START_AND_END_SECONDS = 300.0
#: By how much the clocks of two machines may differ.
CLOCKS_APART = timedelta(minutes=1)
#: What no processor does, by device: FLOP/s of a core, and of a GPU, in any number format.
LARGEST_FLOPS = {"cpu": 1e13, "gpu": 5e16}
#: In this order windows are measured; transfers of more bytes after those of fewer, all after those of a kind or group.
ORDER = [lines.WARMUP, lines.COMPUTATION_BEFORE, lines.TRAINING, lines.COMPUTATION_AFTER]
ORDER += [lines.COMMUNICATION_ALONE, lines.INPUT]
#: Why a run of data parallelism failed whose ranks have parameters of their own.
TRAINED_APART = "the ranks ended with different parameters: their gradients were not communicated"
#: Fewer steps may have equal times by chance, on a clock of microseconds.
MAX_EQUAL_STEPS = 10
#: By how much such ranks of one node may begin their windows apart: a constant, and steps.
MAX_APART_SECONDS, MAX_APART_STEPS = 2.0, 5
#: By how much the losses of ranks that train on the same samples may differ, as a share: by rounding alone.
LOSS_TOLERANCE, LOSS_TOLERANCE_OF_16_BITS = 1e-5, 2e-4


def check_record(
    logs: Sequence[rank_log.RankLog], facts: Mapping[str, Any], configuration: Configuration, paths: RunPaths
) -> None:
    """Raise RecordError if the record contradicts itself or its files.

    ``logs`` are those of all ranks, in order of rank; ``facts`` is the record.
    """
    contradictions = chain(
        _contradictory_outcome(logs, facts, paths),
        _contradictory_exit_codes(facts),
        _contradictory_time(facts, configuration.timeout_seconds),
        _contradictory_request(facts, paths),
        _contradictory_nodes(logs, facts),
        _contradictory_devices(facts, configuration),
        _contradictory_work(logs, facts),
        _impossible_work(logs, facts, configuration),
    )
    for message in contradictions:
        raise RecordError(f"{paths.folder}: {message}")


def _contradictory_outcome(
    logs: Sequence[rank_log.RankLog], facts: Mapping[str, Any], paths: RunPaths
) -> Iterator[str]:
    if facts["reason"]:
        yield f"status is completed in run.json, but reason is {facts['reason']!r}"
    # A round measures the repetition of its own number, once; beside it may be runs that are not measured.
    is_measured = paths.folder.parents[1] == paths.home.folder
    if is_measured and facts["round"] not in (None, facts["repetition"]):
        own_round = facts["repetition"]
        yield f"round is {facts['round']} in run.json, but round {own_round} measures repetition {own_round}"
    expected, logged, ranks = facts["ranks_expected"], facts["ranks_seen"], list(range(len(logs)))
    is_of_job = len(logs) == 1 and logs[0].is_of_job
    if (expected, logged) != (expected if is_of_job else len(ranks), ranks):
        yield f"expects {counted(expected, 'rank')} and saw {logged}, but has the logs of ranks {ranks}"


def _contradictory_exit_codes(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield which trainers of a completed run did not end well."""
    # Servers and producers are ended, not awaited.
    trainers = {
        task: code for task, code in facts["exit_codes"].items() if not task.startswith((TaskRole.SERVER, PRODUCER))
    }
    if failed := ", ".join(f"{task}: {code}" for task, code in trainers.items() if code != 0):
        yield f"status is completed in run.json, but exit codes of trainers are not 0 ({failed})"
    matches = filter(None, map(_TASK_OF_RANK.fullmatch, trainers))
    ranks = sorted(int(match[1]) for match in matches)
    if not trainers or (ranks and ranks != list(range(facts["ranks_expected"]))):
        with_code = ", ".join(trainers) or "none"
        yield f"status is completed in run.json, but not every trainer has an exit code (those of {with_code})"


def _contradictory_time(facts: Mapping[str, Any], timeout_seconds: float) -> Iterator[str]:
    """Yield that a run ends in the future or too late."""
    longest = timeout_seconds + START_AND_END_SECONDS
    if (facts["seconds"] or 0.0) > longest:
        limits = f"the timeout of {timeout_seconds:.0f} s and {START_AND_END_SECONDS:.0f} s to start and to end"
        yield f"it lasted {facts['seconds']:.4g} s, longer than {limits}: run.json was changed"
    end = datetime.fromisoformat(str(facts["started"])).timestamp() + (facts["seconds"] or 0.0)
    if end > (datetime.now(UTC) + CLOCKS_APART).timestamp():
        lasted = f"it lasted {facts['seconds']:.4g} s since {facts['started']}, which is not over yet"
        yield f"{lasted}: set the clock of its first node, or run.json was changed"


def _contradictory_request(facts: Mapping[str, Any], paths: RunPaths) -> Iterator[str]:
    """Yield how the configuration of the ranks differs from the record.

    Nor may it have all parameters; one version wrote both where the record has a digest.
    """
    file, recorded = paths.configuration_file, facts["configuration"]
    if not file.exists():
        return
    requested = parse_object(read_text_file(file), str(file))
    names = recorded.keys() & requested.keys()
    if run_file.DIGEST in facts and requested:
        names = recorded.keys() | requested.keys()
    for name in sorted(names):
        if name not in requested:
            yield f"{name} is missing in {file.name}"
        elif name not in recorded:
            yield f"{name} is missing in run.json"
        elif recorded[name] != requested[name]:
            values = f"{json.dumps(requested[name])} in {file.name}, but {json.dumps(recorded[name])} in run.json"
            yield f"{name} is {values}"


def _contradictory_nodes(logs: Sequence[rank_log.RankLog], facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ranks whose host or library their node did not report."""
    reports = dict(enumerate(facts["nodes"]))
    for log in logs:
        if log.is_of_program:
            # It may be in a container, its launcher may number the nodes, and the controller writes what it printed. It
            # may train with another Python than the one whose packages are in the record.
            continue
        host, hardware = log.facts["host"], reports.get(log.facts["node"], {}).get("hardware", {})
        if hardware.get("host") not in (None, host):
            yield f"rank {log.rank} ran on {host}, but its node is {hardware['host']}"
        library, version = log.facts["library"], log.facts["library_version"]
        # The packages that can be a library, as paddlepaddle-gpu can be paddle.
        package = re.compile(rf"{re.escape(library)}(?:{re.escape(library)})?(?:-gpu|-cpu)?")
        software = facts["environment"]["software"]
        versions = [_BUILD.sub("", installed) for name, installed in software.items() if package.fullmatch(name)]
        # Horovod's names that of its framework too: 0.28.1 with torch 2.13.0.
        if versions and _BUILD.sub("", version.partition(" ")[0]) not in versions:
            yield f"rank {log.rank} trained with {library} {version}, but run.json says {', '.join(versions)}"


def _contradictory_devices(facts: Mapping[str, Any], configuration: Configuration) -> Iterator[str]:
    """Yield how devices and first node contradict the rest of the record."""
    for name in ("nodes", "devices_per_node"):
        requested, there = getattr(configuration, name), facts["cluster"][name]
        if there < requested:
            yield f"the configuration has {name} {requested}, but the cluster {there}"
    host = facts["environment"]["hardware"].get("host")
    for node in facts["nodes"][:1]:
        reported = node.get("hardware", {}).get("host")
        if host and reported and host != reported:
            yield f"host is {host} in environment, but {reported} in nodes[0]: run.json was changed"


def _contradictory_work(logs: Sequence[rank_log.RankLog], facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield that logs and model differ in the FLOPs of a sample."""
    expected = facts.get("flops_per_sample")
    for log in logs:
        flops = log.facts.get("flops_per_sample")
        if expected and flops and not math.isclose(flops, expected):
            work = f"flops_per_sample of rank {log.rank} is {flops:.4g}"
            yield f"{work}, but {expected:.4g} by the formula of its model, in run.json"


def _impossible_work(
    logs: Sequence[rank_log.RankLog], facts: Mapping[str, Any], configuration: Configuration
) -> Iterator[str]:
    """Yield that a rank was faster than any processor."""
    device, units = facts["cluster"]["device"], facts["environment"]["hardware"].get("cores")
    if device == "gpu":
        units = 1
    largest = (units or math.inf) * LARGEST_FLOPS.get(device, math.inf)
    for log in logs:
        flops = log.facts.get("flops_per_sample")
        if flops and not log.is_of_program:
            flops_per_second = flops * configuration.batch_per_device / log.windows[lines.TRAINING].mean_seconds
            if flops_per_second > largest:
                speed = f"{flops_per_second:.3g} FLOP/s"
                yield f"rank {log.rank} would compute {speed}: its flops_per_sample is implausible"


def contradictory_times(logs: Sequence[rank_log.RankLog], seconds: float | None) -> Iterator[str]:
    """Yield which windows can't have been measured when their logs say it.

    ``seconds``: the life of the processes of the run; None: unknown.
    """
    for log in logs:
        windows = list(log.windows.values())
        for earlier, later in pairwise(windows):
            if _position(earlier) > _position(later):
                yield f"rank {log.rank} has window {later.name} after {earlier.name}, before which it is measured"
            if later.begin_ns is not None and _end_ns(earlier) > later.begin_ns:
                yield f"window {later.name} of rank {log.rank} begins before window {earlier.name} ends"
        yield from _outside(log, windows, seconds)


def _outside(log: rank_log.RankLog, windows: Sequence[rank_log.Window], seconds: float | None) -> Iterator[str]:
    """Yield that windows lie outside of their run or process."""
    measured = sum(window.seconds for window in windows)
    if seconds is not None and measured > seconds * (1 + rank_log.CLOCK_TOLERANCE):
        yield f"the windows of rank {log.rank} last {measured:.4g} s, but the run {seconds:.4g} s"
    rank, anchor = f"rank {log.rank}", log.facts["wall_anchor"]["clock_ns"]
    for window in windows:
        if window.begin_ns is None:
            continue
        before, after = (anchor - window.begin_ns) * rank_log.NANO, (_end_ns(window) - anchor) * rank_log.NANO
        if before > 0:
            yield f"window {window.name} of {rank} begins {before:.4g} s before {rank} had begun"
        if seconds is not None and after > seconds * (1 + rank_log.CLOCK_TOLERANCE):
            yield f"window {window.name} ends {after:.4g} s after {rank} had begun, of the run's {seconds:.4g} s"


def _position(window: rank_log.Window) -> tuple[int, float]:
    """Return the position of a window in the order of all."""
    if window.name.startswith(lines.COMMUNICATION_ALONE):
        # Ranks that have different collectives agree on one order of their kinds and groups.
        part, size = window.name.removeprefix(lines.part_of_communication("")), 0
        if part == lines.COMMUNICATION_ALONE or part.isdigit():
            size = window.bytes or 0
        return ORDER.index(lines.COMMUNICATION_ALONE), size
    return (*ORDER, window.name).index(window.name), 0


def _end_ns(window: rank_log.Window) -> float:
    """Return when a window ended at the earliest."""
    seconds = window.seconds * (1 - rank_log.CLOCK_TOLERANCE)
    if window.begin_ns is None:
        return float("-inf")
    return window.begin_ns + seconds / rank_log.NANO


def impossible_ranks(logs: Sequence[rank_log.RankLog]) -> Iterator[str]:
    """Yield what ranks that trained together can't have left."""
    processes: dict[tuple[str, int, int], int] = {}
    times: dict[bytes, int] = {}
    for log in logs:
        window = log.windows[lines.TRAINING]
        # In containers several may have one id.
        if log.process in processes:
            yield f"ranks {processes[log.process]} and {log.rank} are one process, {log.facts['pid']} of their node"
        processes[log.process] = log.rank
        if np.unique(window.step_seconds).size > MAX_EQUAL_STEPS:
            digits = window.step_seconds.tobytes()
            if digits in times:
                yield f"ranks {times[digits]} and {log.rank} have the same times in each step: one log is a copy"
            times[digits] = log.rank
        first_loss = next(iter(log.windows[lines.WARMUP].losses), None)
        if first_loss == 0 and not window.losses.any():
            yield f"all losses of rank {log.rank} are 0: it trained nothing"
    if logs[0].facts["communication"] in SYNCHRONOUS:
        yield from _training_apart(logs)


def _training_apart(logs: Sequence[rank_log.RankLog]) -> Iterator[str]:
    """Yield that a rank trained before or after the others of its node, whose clock is one."""
    first_of_nodes: dict[int, rank_log.RankLog] = {}
    for log in logs:
        first = first_of_nodes.setdefault(log.facts["node"], log)
        begin, first_begin = log.windows[lines.TRAINING].begin_ns, first.windows[lines.TRAINING].begin_ns
        if begin is None or first_begin is None:
            continue
        apart = abs(begin - first_begin) * rank_log.NANO
        allowed = MAX_APART_SECONDS + MAX_APART_STEPS * log.windows[lines.TRAINING].mean_seconds
        if apart > allowed:
            yield f"ranks {first.rank} and {log.rank} wait for each other in each step, but began {apart:.3g} s apart"


def contradictory_parameters(logs: Sequence[rank_log.RankLog], layout: Layout) -> Iterator[str]:
    """Yield what is wrong with the parameters before and after training.

    In the end, those that have the same part of the model must have the same parameters. ``logs``: in order of rank.
    """
    if not all(log.end["initial_checksum"] and log.end["parameter_checksum"] for log in logs):
        yield "a rank has no checksum of its parameters"
    if any(log.end["initial_checksum"] == log.end["parameter_checksum"] for log in logs):
        yield "the parameters did not change: nothing was trained"
    checksums = [log.end["parameter_checksum"] for log in logs]
    if any(len({checksums[rank] for rank in ranks}) > 1 for ranks in layout.groups(*OF_COPIES)):
        yield TRAINED_APART


def different_beginnings(logs: Sequence[rank_log.RankLog]) -> Iterator[str]:
    """Yield that ranks began with different parameters."""
    if logs[0].facts["communication"] in SYNCHRONOUS and len({log.end["initial_checksum"] for log in logs}) > 1:
        yield "the ranks began with different parameters"


def different_losses(logs: Sequence[rank_log.RankLog], configuration: Configuration) -> Iterator[str]:
    """Yield the first step with different losses of the same samples."""
    layout, is_exact = configuration.layout, configuration.precision == "fp32"
    tolerance = LOSS_TOLERANCE if is_exact else LOSS_TOLERANCE_OF_16_BITS
    for ranks in layout.groups(*OF_REPLICA) if layout.devices_per_replica > 1 else ():
        for name in (lines.WARMUP, lines.TRAINING):
            windows = [logs[rank].windows[name] for rank in ranks if logs[rank].windows[name].losses.size]
            losses = np.array([window.losses for window in windows])
            if not losses.size or np.allclose(losses, losses[0], rtol=tolerance, atol=0, equal_nan=True):
                continue
            step = int(np.argmax(~np.isclose(losses, losses[0], rtol=tolerance, atol=0, equal_nan=True).all(axis=0)))
            values = ", ".join(f"{loss:.7g}" for loss in losses[:, step])
            message = f"ranks {', '.join(map(str, ranks))} trained on the same samples with different losses"
            yield f"{message} ({values} in step {step} of window {name}): they did not train one model"
            return
