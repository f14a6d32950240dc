"""The rounds that runs share: a run that did not see the same machine as the others of its round is in none."""

from collections.abc import Iterator

import pandas as pd

from dlperf_study.diagnostic import Diagnostic
from dlperf_study.study.job import Outcome
from dlperf_study.wording import counted

#: Runs of a round that begin further apart than this, and than so many times the usual, are not in one round.
LONGEST_PAUSE, LONG_PAUSES = pd.Timedelta(hours=1), 10
REMEDY = "ratios leave it out. One more repeat adds a round that all configurations share"


def with_shared_rounds(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[Diagnostic]]:
    """Return the table of runs, in which those that did not share their round have none, and a diagnostic for each."""
    completed = runs[runs["outcome"] == Outcome.COMPLETED].dropna(subset=["round"])
    reasons = dict([*_far_apart(completed), *_claimed_twice(completed)])
    diagnostics = []
    for index, reason in reasons.items():
        run = runs.loc[index]
        message = f"{reason}: {REMEDY}"
        diagnostics.append(Diagnostic("round", message, identity=run["identity"], repetition=int(run["repetition"])))
    shared = runs["round"].mask(runs.index.isin(list(reasons)))
    return runs.assign(round=shared), diagnostics


def _claimed_twice(completed: pd.DataFrame) -> Iterator[tuple[int, str]]:
    """Yield the index of each run whose round another run of its configuration claims too, and that it does."""
    claims = completed.groupby(["identity", "round"])["repetition"].transform("size")
    twice = completed[claims > 1].sort_values(["identity", "round"], kind="stable")
    for index, round_number in twice["round"].items():
        claimants = counted(int(claims[index]) - 1, "other run")
        yield index, f"its run.json says round {round_number}, as {claimants} of it does"


def _far_apart(completed: pd.DataFrame) -> Iterator[tuple[int, str]]:
    """Yield the index of each run that began long before or after most of its round, and by how much.

    The study may have been interrupted in that round: what the machine did meanwhile would be in its ratios.
    """
    started = pd.to_datetime(completed["started"], utc=True, format="ISO8601").sort_values()
    limit = max(LONGEST_PAUSE, LONG_PAUSES * started.diff().median())
    for round_number, begun in started.groupby(completed["round"]):
        part = (begun.diff() > limit).cumsum()
        largest_part = begun[part == part.mode()[0]]
        for index in begun.index.difference(largest_part.index):
            hours = (begun[index] - largest_part).abs().min().total_seconds() / 3600
            yield index, f"it began {hours:.1f} hours from the other runs of round {round_number}"
