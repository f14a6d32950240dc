"""The steps of a user's program that has no recorder: what it printed, by a format of ``logs``, as one rank log.

What a program prints is about its whole job, so its log has the scope ``job``: of no rank more is known than that it
ended well.
"""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dlperf_study.core.arrays import Floats
from dlperf_study.core.errors import LogError
from dlperf_study.core.writing import write_atomically
from dlperf_study.logs.blocks import LogSource
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.own_format import read_own_format
from dlperf_study.logs.parsed_log import ParsedLog, cumulative_steps
from dlperf_study.logs.rank_checks import JobSize
from dlperf_study.logs.rank_merge import JobSeries, job_series
from dlperf_study.programs.program_files import kept_program
from dlperf_study.records.lines import FORMAT, TRAINING, WARMUP, RecordedBy, Scope, WarmupEnd
from dlperf_study.records.run_record import RequestedRun
from dlperf_study.study.communication import NO_COMMUNICATION, UNKNOWN_COMMUNICATION
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import JobResult, RunStatus
from dlperf_study.study.program import LOG, Program

_SAMPLES, _TOKENS = "samples/s", "tokens/s"


@dataclass(frozen=True)
class PrintedSteps:
    """The mean step seconds of each printed line.

    ``has_whole_first``: the first line is of as many steps, with what happens before them, and can be the warm-up.
    """

    seconds: Floats
    steps_per_line: int
    has_whole_first: bool


def read_printed_steps(run: RequestedRun, result: JobResult, device: str) -> JobResult:
    """Write the printed steps of a run as evidence.

    Return the result of the run: failed, with what is wrong, where a run that ended well printed no such steps, or
    fewer than were requested. ``device``: of the cluster file; programs do not print theirs.
    """
    program, _ = kept_program(run.paths.home.study, run.configuration.program_hash)
    if program.records_steps or result.status is not RunStatus.COMPLETED:
        return result
    try:
        parsed = _parsed_logs(run, program)
        windows = list(_windows(_printed_steps(parsed, run.configuration, program), run.configuration))
    except LogError as error:
        return replace(result, status=RunStatus.FAILED, reason=str(error))
    lines = [_rank_line(run, parsed[0], device), *windows, _END_LINE]
    write_atomically(run.paths.rank_log(0), "".join(f"{json.dumps(line)}\n" for line in lines))
    return result


def _parsed_logs(run: RequestedRun, program: Program) -> list[ParsedLog]:
    """Return the logs of a run in the format; raises LogError without."""
    own_format, format_name = None, program.timing
    if program.log_format:
        own_format = read_own_format(program.log_format.encode(), program.timing)
        format_name = own_format.name
    elif program.timing == LOG:
        format_name = ""
    parsed, errors = [], []
    for path in run.paths.process_logs:
        try:
            parsed.append(read_log(LogSource(path, own_format=own_format), format_name))
        except LogError as error:
            errors.append(error)
    if not parsed:
        raise next(iter(errors), LogError(f"{run.paths.folder}: no process printed anything"))
    return parsed


def _printed_steps(logs: list[ParsedLog], configuration: Configuration, program: Program) -> PrintedSteps:
    """Return the steps of logs; raises LogError for invalid times."""
    series = job_series(logs, _job_size(configuration))
    if series.metric.cumulative:
        printed = f"prints {series.metric.printed}, a mean since the start, instead of single steps"
        raise LogError(f"{logs[0].source}: {printed}")
    steps = cumulative_steps(series.step)
    distances = np.diff(steps)
    per_line = int(np.median(distances)) if distances.size else 1
    uneven = np.flatnonzero(distances != per_line)
    if uneven.size:
        raise LogError(f"{logs[0].source}: lines are {per_line} steps apart, but not after step {steps[uneven[0]]}")
    seconds = _work_of_step(series, configuration, program) / series.throughput
    return PrintedSteps(seconds, per_line, has_whole_first=bool(per_line > 1 and steps[0] >= per_line))


def _job_size(configuration: Configuration) -> JobSize:
    return JobSize(configuration.nodes, configuration.devices_per_node, configuration.batch_per_device or 1)


def _work_of_step(series: JobSeries, configuration: Configuration, program: Program) -> float:
    """Return how much of what a throughput counts is in a step."""
    if series.unit == _TOKENS:
        if tokens := program.amount("tokens_per_step", configuration.program_values):
            return tokens
        raise LogError(f"program.tokens_per_step is missing, but its log prints {_TOKENS}")
    if series.unit != _SAMPLES:
        raise LogError(
            f"its log prints {series.unit or 'a throughput without a unit'}, not {_SAMPLES} or seconds of steps"
        )
    if not configuration.batch_per_device and series.metric.name.endswith("throughput"):
        raise LogError(f"program.samples_per_step is missing, but its log prints {_SAMPLES}")
    return _job_size(configuration).batch_per_device * configuration.world_size


def _windows(printed: PrintedSteps, configuration: Configuration) -> Iterator[dict[str, Any]]:
    """Yield the warm-up and the training window."""
    per_line = printed.steps_per_line
    warmup = -(-configuration.warmup_steps // per_line)
    measured, rest = divmod(configuration.measured_steps, per_line)
    if rest or not measured:
        raise LogError(
            f"measured_steps is {configuration.measured_steps}, but its log has one time for {per_line} steps; "
            f"give a multiple of {per_line}"
        )
    usable, after = printed.seconds, ""
    if not (printed.has_whole_first and warmup):
        usable, after = printed.seconds[1:], " after its first line"
    seconds = usable[: warmup + measured]
    if seconds.size < warmup + measured:
        steps = f"{usable.size * per_line} steps{after}"
        raise LogError(f"its log has {steps}; requested were {(warmup + measured) * per_line}")
    for name, part in ((WARMUP, seconds[:warmup]), (TRAINING, seconds[warmup:])):
        line = {"kind": "window", "name": name, "steps": part.size * per_line, "seconds": float(part.sum()) * per_line}
        line |= {"step_seconds": part.tolist(), "losses": [], "steps_per_value": per_line}
        if name == WARMUP:
            line["ended_by"] = WarmupEnd.STEPS
        yield line


def _rank_line(run: RequestedRun, log: ParsedLog, device: str) -> dict[str, Any]:
    configuration, written_ns = run.configuration, run.paths.process_logs[0].stat().st_mtime_ns
    return {
        "kind": "rank",
        "format": FORMAT,
        "run": f"{configuration.configuration_id}/{run.repetition}",
        "code": run.code.digest,
        "recorded_by": RecordedBy.LOG,
        "scope": Scope.JOB,
        "rank": 0,
        "world_size": configuration.world_size,
        "node": 0,
        "local_rank": 0,
        "host": socket.gethostname(),
        "pid": 0,
        "wall_anchor": {"unix_ns": written_ns, "clock_ns": written_ns},
        "device": device,
        "library": log.format.name,
        "library_version": "",
        "communication": NO_COMMUNICATION if configuration.world_size == 1 else UNKNOWN_COMMUNICATION,
    }


_END_LINE = {"kind": "end", "windows": 2, "drain_seconds": 0.0, "drain_resolution_seconds": 0.0}
