"""What only several runs together show: one that ends early, another program's log, a log that is there twice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dlperf_study.diagnostic import Diagnostic
from dlperf_study.ingest.printed_run import PrintedRun
from dlperf_study.ingest.rank_completeness import ALLOWED_APART
from dlperf_study.ingest.rates import Rates
from dlperf_study.wording import counted


def judged(runs: Sequence[PrintedRun], steps_planned: int | None) -> list[PrintedRun]:
    """Return the runs of one configuration, those refused that don't fit the others.

    A run is refused that ends before or behind the steps it was asked for; where nobody stated these, before a sibling
    that nothing else is wrong with.
    """
    last = max((_last(run.rates) for run in runs if run.rates and not run.refusal), default=0)
    formats = {run.format: run for run in runs if run.format}
    mixed = ", ".join(f"{name} ({run.logs[0]})" for name, run in sorted(formats.items())) if len(formats) > 1 else ""
    whose = "was asked for" if steps_planned else "a sibling has"
    usual = Counter(len(run.logs) for run in runs).most_common(1)[0][0] if runs else 0
    return [_of_other_logs(_judged(run, steps_planned or last, whose, mixed), usual, len(runs)) for run in runs]


class Seen:
    """The logs read so far, of all configurations, so that a log that is there twice is counted once."""

    def __init__(self) -> None:
        self._places: dict[bytes, str] = {}

    def checked(self, run: PrintedRun) -> PrintedRun:
        """Return a run, refused if a log of it prints the very numbers of a log of another one."""
        other = next((self._places[one] for one in run.prints if one in self._places), None)
        if other and not run.refusal:
            return refused(run, f"it prints the very numbers of {other}: the same run twice")
        if not run.refusal:
            self._places.update(run.prints)
        return run


def refused(run: PrintedRun, reason: str) -> PrintedRun:
    """Return a run with one more reason why it can't be counted."""
    return replace(run, refusal="; ".join(filter(None, [run.refusal, reason])))


def _judged(run: PrintedRun, due: int, whose: str, mixed: str) -> PrintedRun:
    if mixed:
        said = f"the logs of this configuration are of several programs, {mixed}: state the format that is meant"
        run = refused(run, f"mixed folder: {said}")
    if run.rates and not run.refusal and abs(_last(run.rates) - due) > ALLOWED_APART * _spacing(run.rates):
        kind = "truncated: " if _last(run.rates) < due else ""
        run = refused(run, f"{kind}it ends at step {_last(run.rates)}, but {whose} {due}")
    return run


def _of_other_logs(run: PrintedRun, usual: int, runs: int) -> PrintedRun:
    """Return a run, diagnosed if it has another number of logs than its siblings: one of a node may be missing."""
    if runs < 2 or len(run.logs) == usual:
        return run
    said = f"it is of {counted(len(run.logs), 'log')}, its siblings are of {usual}: is one missing?"
    return replace(run, diagnostics=(*run.diagnostics, Diagnostic("logs", said)))


def _last(rates: Rates) -> int:
    return int(rates.step[-1])


def _spacing(rates: Rates) -> float:
    return float(np.median(np.diff(rates.step))) if rates.step.size > 1 else 1.0
