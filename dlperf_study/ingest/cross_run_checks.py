"""Cross-run checks: runs that end early, logs of a different program, and duplicate runs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dlperf_study.diagnostic import Diagnostic
from dlperf_study.ingest.rates import Rates
from dlperf_study.ingest.run_reader import PrintedRun
from dlperf_study.logs.completeness import ALLOWED_STEPS_APART
from dlperf_study.wording import counted


class DuplicateLogs:
    """The logs of all configurations read so far, so that a log that is there twice is counted once."""

    def __init__(self) -> None:
        self._logs: dict[bytes, str] = {}

    def checked(self, run: PrintedRun) -> PrintedRun:
        """Return a run, refused if one of its logs prints the same numbers as a log of an earlier run."""
        if run.refusal:
            return run
        for fingerprint in run.fingerprints:
            if fingerprint in self._logs:
                return _refuse(run, f"duplicate run: it prints the same numbers as {self._logs[fingerprint]}")
        self._logs.update(run.fingerprints)
        return run


def check_runs(runs: Sequence[PrintedRun], steps_planned: int | None) -> list[PrintedRun]:
    """Return the runs of one configuration, refused if they do not fit the others.

    A run is refused if it ends before or after the requested steps. If these are not stated, it is refused if it ends
    before the last of the other runs that are not refused.
    """
    last_steps = [_last_step(run.rates) for run in runs if run.rates and not run.refusal]
    expected = steps_planned or max(last_steps, default=0)
    why_expected = f"{expected} were requested" if steps_planned else f"a different repetition has {expected}"
    usual_logs = Counter(len(run.logs) for run in runs).most_common(1)[0][0] if runs else 0
    mixed_formats = _mixed_formats(runs)
    checked = []
    for run in runs:
        run = _refuse(run, mixed_formats) if mixed_formats else run
        run = _check_last_step(run, expected, why_expected)
        if len(runs) > 1 and len(run.logs) != usual_logs:
            message = f"it has {counted(len(run.logs), 'log')}, other repetitions have {usual_logs}: is one missing?"
            run = replace(run, diagnostics=(*run.diagnostics, Diagnostic("logs", message)))
        checked.append(run)
    return checked


def _mixed_formats(runs: Sequence[PrintedRun]) -> str:
    """Return why no run counts if their logs have several formats; else an empty string."""
    formats = {run.format: run for run in runs if run.format}
    if len(formats) < 2:
        return ""
    examples = ", ".join(f"{name} ({run.logs[0]})" for name, run in sorted(formats.items()))
    return f"mixed folder: this configuration has logs of several programs, {examples}: state which format to read"


def _check_last_step(run: PrintedRun, expected: int, why_expected: str) -> PrintedRun:
    if not run.rates or run.refusal:
        return run
    steps, last_step = run.rates.step, _last_step(run.rates)
    usual_distance = float(np.median(np.diff(steps))) if steps.size > 1 else 1.0
    if abs(last_step - expected) <= ALLOWED_STEPS_APART * usual_distance:
        return run
    prefix = "truncated: " if last_step < expected else ""
    return _refuse(run, f"{prefix}it ends at step {last_step}, but {why_expected}")


def _refuse(run: PrintedRun, reason: str) -> PrintedRun:
    """Return a run with one more reason why it can't be counted."""
    return replace(run, refusal="; ".join(filter(None, [run.refusal, reason])))


def _last_step(rates: Rates) -> int:
    return int(rates.step[-1])
