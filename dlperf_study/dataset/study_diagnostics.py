"""Diagnostics across runs: about the repetitions of a configuration, and about all runs of a study."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dlperf_study.analysis.statistics import median_deviation
from dlperf_study.analysis.steady_state import Answer, steadiness_tolerance
from dlperf_study.arrays import Floats
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.resource_diagnostics import varying_clocks
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.plan.plan import Plan
from dlperf_study.study.job import Outcome
from dlperf_study.study.turn import BLOCKS, ROUNDS
from dlperf_study.wording import counted, rate_text

#: A run is far from the others of its configuration beyond this share of their median and this many deviations.
FAR_SHARE, FAR_DEVIATIONS = 0.05, 5.0
#: What must be the same for all runs of a study (None), of a framework, or of a configuration.
SAME = {
    "device_name": None,
    "cpu_model": None,
    "cores": None,
    "memory_bytes": None,
    "git_commit": None,
    "git_dirty": None,
    "device": None,
    "link": None,
    "python_version": "framework",
    "library_version": "framework",
    "exchange_library": "framework",
    "gpu_driver": None,
    "cuda_version": "framework",
    "cudnn_version": "framework",
    "fingerprint": "identity",
}


def study_diagnostics(plan: Plan, runs: pd.DataFrame) -> list[Diagnostic]:
    """Return the diagnostics that need several runs."""
    completed = runs[runs["outcome"] == Outcome.COMPLETED]
    return [
        *unused_gpus(plan),
        *number_of_runs(plan, runs),
        *other_orders(plan, completed),
        *far_runs(completed),
        *varying_clocks(completed),
        *mixed_environments(completed),
        *mixed_hosts(completed),
        *uncommitted(completed),
        *short_windows(completed, steadiness_tolerance(plan.precision)),
    ]


def unused_gpus(plan: Plan) -> Iterator[Diagnostic]:
    """The runs were measured on the CPU of a machine with GPUs."""
    if plan.why_not_gpu:
        yield Diagnostic("device", plan.why_not_gpu, Severity.NOTE)


def number_of_runs(plan: Plan, runs: pd.DataFrame) -> Iterator[Diagnostic]:
    """Fewer or more runs than planned completed; without any, there is no number.

    What does not fit in memory is not run again.
    """
    counts = runs.loc[runs["outcome"] == Outcome.COMPLETED, "identity"].value_counts().to_dict()
    not_fitting = set(runs.loc[runs["outcome"] == Outcome.OUT_OF_MEMORY, "identity"])
    for entry in plan.runnable:
        identity, planned = entry.configuration.identity, entry.configuration.repeats
        count = counts.get(identity, 0)
        if count < planned and identity not in not_fitting:
            severity = Severity.WARNING if count else Severity.ERROR
            yield Diagnostic("runs_completed", f"{count} of {planned} runs completed", severity, identity)
        if count > (plan.max_repeats or planned):
            message = f"{counted(count, 'run')} counted, but planned: {planned}"
            yield Diagnostic("runs_completed", message, identity=identity)


def other_orders(plan: Plan, completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Runs were measured in another order than that of the study: in blocks or by hand they are in no round."""
    if plan.order != ROUNDS:
        return
    in_no_round = completed[completed["order"] != ROUNDS]
    for (identity, order), runs in in_no_round.groupby(["identity", "order"]):
        verb = "was" if len(runs) == 1 else "were"
        measured = f"{counted(len(runs), 'run')} {verb} measured {'in blocks' if order == BLOCKS else order}"
        message = f"{measured}, but the study is in rounds: ratios leave out what is in no round"
        yield Diagnostic("order", message, identity=str(identity))


def far_runs(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """A repetition is far from the others of its configuration."""
    is_in_samples = completed["throughput"].notna()
    yield from _far_rates(completed[is_in_samples], "throughput")
    yield from _far_rates(completed[~is_in_samples].dropna(subset="token_throughput"), "token_throughput")


def _far_rates(completed: pd.DataFrame, column: str) -> Iterator[Diagnostic]:
    unit = COLUMNS[column].unit
    for identity, runs in completed.groupby("identity"):
        rates, repetitions = runs[column].to_numpy(np.float64), runs["repetition"].tolist()
        far = list(far_from_other_runs(rates))
        if far and rates.size == 2:
            message = f"its two runs reach {' and '.join(map(rate_text, rates))} {unit}"
            message += "; only a third can say which is odd"
            yield Diagnostic(column, message, identity=str(identity))
            continue
        for position, median in far:
            message = f"{rate_text(rates[position])} {unit}, but the median of the other runs is {rate_text(median)}"
            yield Diagnostic(column, message, identity=str(identity), repetition=repetitions[position])


def far_from_other_runs(rates: Floats) -> Iterator[tuple[int, float]]:
    """Yield the position of each rate that is far from the others, and the median of the others."""
    if rates.size < 2:
        return
    for position in range(rates.size):
        other_rates = np.delete(rates, position)
        median = float(np.median(other_rates))
        limit = max(FAR_SHARE * median, FAR_DEVIATIONS * median_deviation(other_rates))
        if abs(rates[position] - median) > limit:
            yield position, median


def mixed_environments(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Runs that are compared were measured in different environments."""
    for column, within in SAME.items():
        groups = completed[within] if within else pd.Series("the study", completed.index)
        values = completed[column].dropna().groupby(groups, sort=False).unique()
        for name, different in values[values.map(len) > 1].items():
            message = f"the runs of {name} were measured with different {column}: {', '.join(map(str, different))}"
            yield Diagnostic(column, message, identity=str(name) if within == "identity" else None)


def mixed_hosts(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Runs took other hosts than those of the largest run; a run on some of its hosts is fine."""
    hosts = [set(names.split(", ")) for names in completed["host"].dropna().unique()]
    largest = max(hosts, key=len, default=set())
    every = set().union(*hosts)
    if every > largest:
        yield Diagnostic("host", f"the study was measured on different hosts: {', '.join(sorted(every))}")


def uncommitted(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Runs were measured with files that are in no commit: nobody else can get them."""
    count = int(completed["git_dirty"].fillna(False).astype(bool).sum())
    if count:
        message = f"{count} of {len(completed)} runs were measured with files, changed or new, that are in no commit"
        yield Diagnostic("git_dirty", f"{message}: nobody else can repeat them")


def short_windows(completed: pd.DataFrame, tolerance: float) -> Iterator[Diagnostic]:
    """Windows are too short to tell whether they are steady: the study's design, not the runs, must change."""
    short = completed[completed["steadiness"] == Answer.CANT_TELL]
    further = short.loc[short["measured_steps"].notna(), "further_steps"].dropna().sort_values().tolist()
    if not further:
        return
    share = f"{len(further)} of {counted(len(completed), 'run')}"
    message = f"in {share} the window is too short to tell whether it is steady within {100 * tolerance:g} %"
    for_half, for_all = further[(len(further) - 1) // 2], further[-1]
    remedy = f"{for_all} more steps would probably tell"
    if for_half < for_all:
        remedy = f"{for_half} more steps would probably tell for half of them, {for_all} for all"
    yield Diagnostic("steadiness", f"{message}: raise measured_steps or measured_seconds; {remedy}", Severity.NOTE)


def longer_than_the_exchange(configurations: pd.DataFrame) -> Iterator[Diagnostic]:
    """The exposed communication of a configuration is longer than its exchange alone, as far as intervals tell."""
    for row in configurations.itertuples():
        exposed, alone = row.exposed_seconds_low, row.exchange_seconds_high
        if pd.isna(exposed) or pd.isna(alone):
            exposed, alone = row.exposed_seconds, row.exchange_seconds
        if exposed > alone:
            exposed_ms, alone_ms = 1e3 * row.exposed_seconds, 1e3 * row.exchange_seconds
            lengths = f"{exposed_ms:.3g} ms are exposed, and the exchange alone takes {alone_ms:.3g} ms"
            reason = "a step also waits for the slower of its ranks, and may share cores with the threads that exchange"
            yield Diagnostic("exposed_seconds", f"{lengths}: {reason}", Severity.NOTE, row.identity)
