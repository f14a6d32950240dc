"""Why a task failed, in its own words: the last exception in what it printed."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dlperf_study.launchers._base import Ending
from dlperf_study.paths import RunPaths
from dlperf_study.study.outcome import Outcome
from dlperf_study.supervision.endings import PASSED_ON_SIGNALS

MOST_CHARACTERS = 200
#: An exception stands near the end of a log, above what libraries print on their way out.
LAST_LINES = 200
#: What Paddle calls an error in a rank that its launcher ends because another has failed.
ENDED_BY_OTHERS = "FatalError: `Termination signal`"
#: As Python ends a traceback, perhaps behind the mark that horovodrun gives every line of a rank.
_EXCEPTION = re.compile(r"(?:\[\d+\]<\w+>:)?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: .*)?)")
_NO_MODULE = re.compile(r".*: (No module named .*)")


def with_last_words(ending: Ending, paths: RunPaths) -> Ending:
    """Return the ending of a run; one that says only which task failed says also what that task died of."""
    words = _last_words(ending, paths) if ending.outcome is Outcome.FAILED else ""
    return replace(ending, reason=f"{ending.reason}: {words}") if words else ending


def _last_words(ending: Ending, paths: RunPaths) -> str:
    """Return the last exception of the task that ended the run, unless its exit code says already what it died of."""
    code = ending.exit_codes.get(ending.failed_task)
    if not code or _explains(code):
        return ""
    return next(filter(None, map(_exception_in, _logs(ending.failed_task, paths))), "")


def _explains(code: int) -> bool:
    """Return whether a signal ended the task: what others died of then is only that.

    SIGTERM that is passed on explains nothing: with that a launcher ends its ranks when one of them has failed.
    """
    return code < 0 or PASSED_ON_SIGNALS.get(code, "SIGTERM") != "SIGTERM"


def _logs(task: str, paths: RunPaths) -> Iterator[Path]:
    """Yield what a task and its ranks printed.

    First the ranks, the one that fell silent first before all others: the others died of its death, and who started
    them says no more than that they died.
    """
    logs = paths.process_logs
    ranks = (log for log in logs if log.stem.startswith(("rank-", f"{task}-rank-")))
    yield from sorted(ranks, key=lambda log: log.stat().st_mtime)
    yield from (log for log in logs if log.stem == task)


def _exception_in(log: Path) -> str:
    """Return the last line of a log that names an exception of its own, cut to what a message can hold; or nothing."""
    for line in reversed(log.read_text(errors="replace").splitlines()[-LAST_LINES:]):
        if ENDED_BY_OTHERS in line:
            return ""
        if found := _EXCEPTION.fullmatch(line.rstrip()) or _NO_MODULE.fullmatch(line.rstrip()):
            return found[1][:MOST_CHARACTERS]
    return ""
