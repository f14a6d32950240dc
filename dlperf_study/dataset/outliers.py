"""Outliers: runs that are slower than the others, where telemetry gives the cause."""

from collections.abc import Iterator, Sequence

import pandas as pd

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.core.wording import counted, rate_text
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.outcome import select_completed

CAUSES = ("background_cores", "foreign_processes", "gpu_utilisation", "clock_limited_share", "sm_clock")
#: A run that is slower than each undisturbed run by a smaller share is no outlier.
MIN_SLOWDOWN = 0.05
#: With fewer undisturbed runs nothing is known of how runs differ.
MIN_UNDISTURBED = 2


def outliers(runs: pd.DataFrame, run_diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield a warning for each outlier, with its cause.

    A run is disturbed if it has a warning about background load, other processes or clocks. An outlier is a disturbed
    run that is more than 5 % slower than the slowest undisturbed run of its configuration. No distribution of runs is
    assumed: a slow run without a known cause may be chance, and is not mentioned.
    """
    causes: dict[tuple[str | None, int | None], list[str]] = {}
    for diagnostic in run_diagnostics:
        if diagnostic.subject in CAUSES and diagnostic.severity is Severity.WARNING:
            causes.setdefault((diagnostic.identity, diagnostic.repetition), []).append(diagnostic.message)
    completed = select_completed(runs)
    for identity in dict.fromkeys(identity for identity, _ in causes):
        of_configuration = completed[completed["identity"] == identity].set_index("repetition")
        column = "token_throughput"
        if of_configuration["throughput"].notna().any():
            column = "throughput"
        rates = of_configuration[column].dropna()
        repetitions = [repetition for name, repetition in causes if name == identity]
        is_disturbed = rates.index.isin(repetitions)
        undisturbed = rates[~is_disturbed]
        if len(undisturbed) < MIN_UNDISTURBED:
            continue
        lowest = undisturbed.min()
        slow = rates[is_disturbed]
        for repetition, rate in slow[slow * (1 + MIN_SLOWDOWN) < lowest].items():
            message = (
                f"outlier: {rate_text(rate)} {COLUMNS[column].unit}, and at least {rate_text(lowest)} in "
                f"{counted(len(undisturbed), 'undisturbed run')}. Cause: {'; '.join(causes[identity, repetition])}"
            )
            yield Diagnostic(column, message, identity=identity, repetition=int(repetition))
