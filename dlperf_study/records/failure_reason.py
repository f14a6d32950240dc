"""Why a run failed: the last exception that its processes logged, exhausted memory, a full disk."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

from dlperf_study.core import large_files, signals, wording, writing
from dlperf_study.core.paths import RunPaths
from dlperf_study.study.job import JobResult, RunStatus

#: Logs and evidence of one run are far smaller; less than this is a disk about to be full.
FREE_BYTES = 20_000_000
LONGEST_EXCEPTION = 400
#: An exception is near the end of a log, above what libraries print on their way out.
SEARCHED_LINES, TAIL_LINES = 200, 20
#: What Paddle logs in a rank that its launcher ends because another one has failed.
ENDED_BY_LAUNCHER = "FatalError: `Termination signal`"
#: The mark that horovodrun gives every line of a rank, and PyTorch those of its exceptions.
_RANK_MARK = r"(?:\[\d+\]<\w+>:|\[rank\d+\]: )"
#: As Python ends a traceback.
_EXCEPTION = re.compile(rf"{_RANK_MARK}?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: .*)?)")
#: What Python says of a program that it can't find, and a shell of a command.
_NOT_FOUND = re.compile(
    r".*: ((?:No module named|can't open file) .*|[^:]+: (?:No such file or directory|(?:command )?not found))"
)
#: The exceptions of launchers, which say no more than that a rank failed.
_OF_LAUNCHER = re.compile(r"[\w.]*(?:ChildFailedError|CalledProcessError)\b.*")
#: What an allocation that was refused ends with: an exception by its name or by what it says, or the last words of a
#: library in C.
_OUT_OF_MEMORY = re.compile(
    rf"{_RANK_MARK}?("
    r"(?:[a-z_]\w*\.)*\w*(?:MemoryError|ResourceExhaustedError)\b.*"
    r"|(?:[a-z_]\w*\.)*\w*Error: .*"
    r"(?:out of memory|can(?:no|')t allocate memory|ResourceExhausted|STATUS_ALLOC_FAILED|bad_alloc).*"
    r"|terminate called after throwing an instance of 'std::bad_alloc'"
    r"|OpenBLAS error: Memory allocation .*|cannot allocate memory for thread-local data.*)",
    re.IGNORECASE,
)

#: Said where a collective took too long.
_NAMED_LIMIT = "; the limit is start_up.collective_seconds of the cluster file"
#: What gloo, PyTorch's watchdog of NCCL, and TensorFlow say of a collective that took too long.
_LATE = re.compile(
    r"Timed out waiting \d+ms for|Watchdog caught collective operation timeout|Collective has timed out", re.IGNORECASE
)


def explained(result: JobResult, paths: RunPaths) -> JobResult:
    """Return a failed result with the more precise reason in its logs."""
    if result.status is not RunStatus.FAILED:
        return result
    if refusal := refused_allocation(paths):
        return replace(result, status=RunStatus.OUT_OF_MEMORY, reason=f"{result.reason}: {refusal}")
    if kills := result.out_of_memory_kills:
        reason = f"{result.reason}; processes that the kernel killed because memory was full: {kills}"
        return replace(result, status=RunStatus.OUT_OF_MEMORY, reason=reason)
    result = add_last_exception(result, paths)
    if shortage := disk_shortage(paths.folder):
        return replace(result, reason=f"{result.reason}; {shortage}")
    return result


def refused_allocation(paths: RunPaths) -> str:
    """Return the last line about refused memory, or nothing."""
    for log in paths.process_logs:
        for line in reversed(large_files.last_lines(log, SEARCHED_LINES)):
            if match := _OUT_OF_MEMORY.fullmatch(line.strip()):
                return wording.shortened(match[1], LONGEST_EXCEPTION)
    return ""


def last_log_lines(paths: RunPaths) -> dict[str, list[str]]:
    """Return the last lines of every log of the run, by task."""
    return {log.stem: large_files.last_lines(log, TAIL_LINES) for log in paths.process_logs}


def disk_shortage(folder: Path) -> str:
    """Return that the disk of ``folder`` is full, or nothing."""
    free = shutil.disk_usage(writing.existing_folder(folder)).free
    if free >= FREE_BYTES:
        return ""
    return f"{folder}: only {free / 1e6:.0f} MB free on this disk; a run needs {FREE_BYTES / 1e6:.0f}"


def add_last_exception(result: JobResult, paths: RunPaths) -> JobResult:
    """Add the last exception of the failed task to the reason.

    Of several ranks, the one whose log was written to least recently failed first: the others ended because of it.
    Whatever started the ranks logs no more than that they ended, so its log comes last.
    """
    task, code = result.failed_task, result.exit_codes.get(result.failed_task)
    # When a signal ended the task, the exceptions of others are only a consequence. A SIGTERM that was passed on
    # explains nothing: a launcher sends it to its ranks when one of them has failed.
    ended_by_signal = code is not None and (code < 0 or signals.PASSED_ON_SIGNALS.get(code, "SIGTERM") != "SIGTERM")
    if result.status is not RunStatus.FAILED or not code or ended_by_signal:
        return result
    logs = [log for log in paths.process_logs if log.stem.startswith(("rank-", f"{task}-rank-")) or log.stem == task]
    is_rank = task.startswith("rank-")
    for log in sorted(logs, key=lambda path: (path.stem == task and not is_rank, path.stat().st_mtime)):
        if exception := _last_exception(log):
            cause = wording.shortened(exception, LONGEST_EXCEPTION)
            if is_rank and log.stem != task:
                cause = f"{log.stem}: {cause}"
            if _LATE.search(exception):
                cause += _NAMED_LIMIT
            return replace(result, reason=f"{result.reason}: {cause}")
    return result


def _last_exception(log: Path) -> str:
    """Return the last exception in a log, or nothing.

    A log of ranks and of what started them ends with an exception of the latter, which says that a rank failed.
    """
    lines = large_files.last_lines(log, SEARCHED_LINES)
    # Lines of ranks explain most, and lines of launchers least.
    lines.sort(key=lambda line: bool(re.match(_RANK_MARK, line)) - bool(_OF_LAUNCHER.match(line)))
    for line in reversed(lines):
        if ENDED_BY_LAUNCHER in line:
            return ""
        if match := _EXCEPTION.fullmatch(line.rstrip()) or _NOT_FOUND.fullmatch(line.rstrip()):
            return match[1]
    return ""
