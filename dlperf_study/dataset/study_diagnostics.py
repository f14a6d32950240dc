"""Diagnostics about the runs of a configuration beside each other, and about all runs of a study."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dlperf_study.analysis.statistics import median_deviation
from dlperf_study.arrays import Floats
from dlperf_study.dataset.configuration_table import throughputs_of
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.plan.plan import Plan
from dlperf_study.study.job import Outcome
from dlperf_study.wording import counted, rounded

#: A run is far from its siblings beyond this share of their median and this many of their deviations.
FAR_SHARE, FAR_DEVIATIONS = 0.05, 5.0

#: What must be the same for all runs of a study, and what for those of one framework or configuration.
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
    "fingerprint": "identity",
}


def study_diagnostics(plan: Plan, runs: pd.DataFrame) -> list[Diagnostic]:
    """Return the diagnostics that only several runs together raise."""
    completed = runs[runs["outcome"] == Outcome.COMPLETED]
    return [
        *missing_runs(plan, completed),
        *far_runs(completed),
        *mixed_environments(completed),
        *mixed_hosts(completed),
        *uncommitted(completed),
    ]


def missing_runs(plan: Plan, completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Other than the planned number of runs completed; without any, there is no number."""
    counts = completed["identity"].value_counts().to_dict()
    for asked in (entry.configuration for entry in plan.runnable):
        done = counts.get(asked.identity, 0)
        if done < asked.repeats:
            severity = Severity.WARNING if done else Severity.ERROR
            yield Diagnostic("runs_completed", f"{done} of {asked.repeats} runs completed", severity, asked.identity)
        if done > asked.repeats:
            message = f"{counted(done, 'run')} counted, but planned: {asked.repeats}"
            yield Diagnostic("runs_completed", message, identity=asked.identity)


def far_runs(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """A repetition lies far from the others of its configuration."""
    repetitions = {identity: part.tolist() for identity, part in completed.groupby("identity")["repetition"]}
    for identity, rates in throughputs_of(completed).items():
        far = list(far_from_other_runs(rates))
        if far and rates.size == 2:
            reached = " and ".join(map(rounded, rates))
            message = f"its two runs reach {reached} samples/s; only a third can say which is odd"
            yield Diagnostic("throughput", message, identity=identity)
            continue
        for position, middle in far:
            message = f"{rounded(rates[position])} samples/s, but its siblings' median is {rounded(middle)}"
            yield Diagnostic("throughput", message, identity=identity, repetition=repetitions[identity][position])


def far_from_other_runs(rates: Floats) -> Iterator[tuple[int, float]]:
    """Yield the position of each rate that lies far from the others, and their median."""
    for position in range(rates.size if rates.size > 1 else 0):
        siblings = np.delete(rates, position)
        middle = float(np.median(siblings))
        far = max(FAR_SHARE * middle, FAR_DEVIATIONS * median_deviation(siblings))
        if abs(rates[position] - middle) > far:
            yield position, middle


def mixed_environments(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Runs that are compared were not measured in the same environment."""
    for column, within in SAME.items():
        groups = completed[within] if within else pd.Series("the study", completed.index)
        values = completed[column].dropna().groupby(groups, sort=False).unique()
        for name, different in values[values.map(len) > 1].items():
            listed = ", ".join(map(str, different))
            identity = str(name) if within == "identity" else None
            yield Diagnostic(
                column, f"the runs of {name} were measured with different {column}: {listed}", identity=identity
            )


def mixed_hosts(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Runs took other hosts than those of the largest run; a run on some of its hosts is fine."""
    hosts = [set(text.split(", ")) for text in completed["host"].dropna().unique()]
    largest = max(hosts, key=len, default=set())
    others = set().union(*hosts) - largest
    if others:
        message = f"the study was measured on different hosts: {', '.join(sorted(largest | others))}"
        yield Diagnostic("host", message)


def uncommitted(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Runs were measured with files that are in no commit: nobody else can get them."""
    count = int(completed["git_dirty"].fillna(False).astype(bool).sum())
    if count:
        said = "were measured with files, changed or new, that are in no commit: nobody else can repeat them"
        yield Diagnostic("git_dirty", f"{count} of {len(completed)} runs {said}")
