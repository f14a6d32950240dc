"""How a run ended, when it was measured, and what else its machine did meanwhile."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.evidence.run import Run
from dlperf_study.evidence.run_agreement import CLOCKS_APART
from dlperf_study.metrics.metric import FLOAT, INT, MAYBE_INT, RATE_PAGES, STRING, Metric, R, Shown, Source, recorded
from dlperf_study.study.job import ROUNDS, Outcome

#: Cores that other processes may keep busy before a run is diagnosed.
BUSY_CORES = 0.25
#: What to do about a run that shares no round.
REMEDY = "ratios leave it out. One more repeat adds a round that all configurations share"


def begin_and_end(runs: pd.DataFrame) -> tuple[Any, Any]:
    """Return when the first of some runs began and the last one ended, as timestamps in UTC; NaT if not known."""
    begun = pd.to_datetime(runs["started"], utc=True, format="ISO8601")
    ended = begun + pd.to_timedelta(runs["run_seconds"], unit="s")
    return begun.min(), ended.max()


def completed_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table of runs whose runs completed: those that may be summarised."""
    is_completed = runs["outcome"] == Outcome.COMPLETED
    # Usually all: to copy rows of so many columns takes longer than what is computed of them.
    return runs if is_completed.all() else runs[is_completed]


def failed(run: Run) -> Iterator[Diagnostic]:
    """A run that did not complete is not counted; that memory is too small for it is a result."""
    if run.outcome is Outcome.OUT_OF_MEMORY:
        yield Diagnostic("outcome", f"does not fit in memory: {run.reason or 'no reason given'}", Severity.NOTE)
    elif not run.completed:
        yield Diagnostic("outcome", f"{run.outcome}, not counted: {run.reason or 'no reason given'}", Severity.ERROR)


def busy_machine(run: Run) -> Iterator[Diagnostic]:
    """Other processes computed before or during the run, or earlier runs had left some behind."""
    load = run.facts["load"]
    for busy_cores, when in ((load["busy_cores_before"], "before"), (load["busy_cores_during"], "during")):
        busy = busy_cores or 0.0
        if busy > BUSY_CORES:
            yield Diagnostic("busy_cores", f"other processes kept {busy:.2f} cores busy {when} the run")
    if survivors := load["survivors_ended"]:
        yield Diagnostic("survivors_ended", f"ended before it, left by earlier runs: {', '.join(survivors)}")


def out_of_round(run: Run) -> Iterator[Diagnostic]:
    """The run was measured in rounds, but after its own: then no other configuration saw the same machine."""
    if run.facts["order"] == ROUNDS and run.facts["round"] is None:
        yield Diagnostic("round", f"it was measured after its round, when later rounds were done: {REMEDY}")


def other_clock(run: Run) -> Iterator[Diagnostic]:
    """The record says another time than the clocks of the ranks: which runs share a round depends on it."""
    started = datetime.fromisoformat(str(run.facts["started"]))
    earliest = started - CLOCKS_APART
    latest = started + CLOCKS_APART + timedelta(seconds=run.facts["seconds"] or 0.0)
    for log in run.ranks:
        anchor = datetime.fromtimestamp(log.facts["wall_anchor"]["unix_ns"] / 1e9, UTC)
        if not earliest <= anchor <= latest:
            host, time = log.facts["host"], anchor.isoformat(timespec="seconds")
            message = f"run.json says {started.isoformat(timespec='seconds')}, but on {host} it was {time}"
            yield Diagnostic("started", f"{message} when rank {log.rank} began: one of the clocks is wrong")
            return


METRICS = (
    Metric(
        "outcome",
        "Outcome",
        "how the run ended; completed only if every rank's log is complete",
        R,
        dtype=STRING,
        value=lambda run: str(run.outcome),
        source=Source.RUN,
        diagnose_any=failed,
    ),
    Metric(
        "reason",
        "Reason",
        "why it ended so",
        R,
        dtype=STRING,
        value=lambda run: run.reason,
        source=Source.RUN,
        shown=Shown.SENTENCE,
    ),
    Metric(
        "started",
        "Started",
        "when the run started",
        R,
        unit="UTC",
        dtype=STRING,
        value=lambda run: run.facts["started"],
        source=Source.RUN,
        diagnose=other_clock,
    ),
    recorded(
        "run_seconds",
        "Run time",
        "life of the training processes",
        lambda run: run.facts["seconds"],
        unit="s",
        dtype=FLOAT,
    ),
    recorded("order", "Order", "order of the study's runs: rounds, blocks, or by hand", lambda run: run.facts["order"]),
    Metric(
        "round",
        "Round",
        "runs of one round were measured in turn, each configuration once; missing unless measured in its round",
        R,
        dtype=MAYBE_INT,
        value=lambda run: run.facts["round"],
        source=Source.RUN,
        diagnose=out_of_round,
    ),
    recorded(
        "position",
        "Position",
        "place of the run in its round, from 1",
        lambda run: run.facts["position"],
        dtype=MAYBE_INT,
    ),
    recorded(
        "ranks_expected",
        "Ranks expected",
        "rank logs that a complete run leaves",
        lambda run: run.facts["ranks_expected"],
        dtype=INT,
    ),
    recorded(
        "ranks_seen", "Ranks seen", "rank logs that are complete", lambda run: len(run.facts["ranks_seen"]), dtype=INT
    ),
    recorded(
        "fingerprint",
        "Fingerprint",
        "of configuration, measuring code and versions of Python and packages",
        lambda run: run.facts["fingerprint"],
        same_within="identity",
    ),
    Metric(
        "busy_cores_during",
        "Busy cores",
        "cores kept busy by other processes during the run",
        R,
        unit="cores",
        value=lambda run: run.facts["load"]["busy_cores_during"],
        source=Source.RUN,
        pages=RATE_PAGES,
        subject="busy_cores",
        diagnose_any=busy_machine,
    ),
    recorded(
        "waited_seconds",
        "Waited",
        "how long the run waited for a quiet machine",
        lambda run: run.facts["load"]["waited_seconds"],
        unit="s",
        dtype=FLOAT,
    ),
)
