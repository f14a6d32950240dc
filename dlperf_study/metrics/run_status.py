"""Outcome, time and background load of a run."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.metrics import metric
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.records.run import Run
from dlperf_study.records.run_agreement import CLOCKS_APART
from dlperf_study.study.job import INTERLEAVED, RunStatus

#: A run is disturbed if others used more cores on average: on an idle machine it is at most 0.02.
BACKGROUND_CORES = 0.1
REMEDY = (
    "drift of the machine does not cancel in its ratios. One more repetition adds a round that all configurations share"
)


def begin_and_end(runs: pd.DataFrame) -> tuple[Any, Any]:
    """Return start and end of some runs in UTC, or NaT."""
    begun = pd.to_datetime(runs["started"], utc=True, format="ISO8601")
    ended = begun + pd.to_timedelta(runs["run_seconds"], unit="s")
    return begun.min(), ended.max()


def select_completed(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of completed runs."""
    is_completed = runs["status"] == RunStatus.COMPLETED
    # Usually all: to copy rows of so many columns takes longer than what is computed of them.
    return runs if is_completed.all() else runs[is_completed]


def had_background_load(runs: pd.DataFrame) -> pd.Series:
    """Return which runs had background load; False if unknown."""
    return runs["disturbed"].eq(True).fillna(False).astype(bool)


def select_counted(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the completed runs without background load.

    All completed runs of a configuration with fewer than three such runs: its numbers are shown, without a test.
    """
    completed = select_completed(runs)
    is_disturbed = had_background_load(completed)
    if not is_disturbed.any():
        return completed
    undisturbed = (~is_disturbed).groupby(completed["configuration_id"]).transform("sum")
    return completed[~is_disturbed | (undisturbed < MINIMUM_RUNS)]


def disturbed_configurations(runs: pd.DataFrame) -> set[str]:
    """Return the configurations that include runs with background load."""
    counted = select_counted(runs)
    return set(counted.loc[had_background_load(counted), "configuration_id"])


def background_cores(run: Run) -> float | None:
    """Return the most cores that others used on a node, or None."""
    used_by_others = []
    for log in run.ranks:
        if "background_cores" in log.end:
            used_by_others.append(log.end["background_cores"])
    cores = max(used_by_others, default=run.facts["load"]["busy_cores_during"])
    return None if cores is None else round(cores, 6)


def is_disturbed(run: Run) -> bool | None:
    """Return whether a run had background load; None if unknown."""
    cores = background_cores(run)
    if cores is None:
        return None
    return cores > BACKGROUND_CORES


def failed(run: Run) -> Iterator[Diagnostic]:
    """A run that did not complete is not counted."""
    if run.status is RunStatus.OUT_OF_MEMORY:
        yield Diagnostic("status", f"out of memory: {run.reason or 'no reason given'}", Severity.NOTE)
    elif not run.completed:
        yield Diagnostic("status", f"{run.status}, not counted: {run.reason or 'no reason given'}", Severity.ERROR)


def background_load(run: Run) -> Iterator[Diagnostic]:
    """Other processes computed during the measured windows, or orphans were left."""
    if is_disturbed(run):
        cores = background_cores(run)
        yield Diagnostic("background_cores", f"disturbed by background load: {cores:.2f} cores")
    if orphans := run.facts["load"]["orphans_ended"]:
        yield Diagnostic("orphans_ended", f"killed orphan processes of earlier runs: {', '.join(orphans)}")


def out_of_round(run: Run) -> Iterator[Diagnostic]:
    """The run was measured after its round, under other conditions."""
    if run.facts["order"] == INTERLEAVED and run.facts["round"] is None:
        yield Diagnostic("round", f"it was measured after its round, later than other rounds: {REMEDY}")


def other_clock(run: Run) -> Iterator[Diagnostic]:
    """The record and the clocks of the ranks disagree."""
    started = datetime.fromisoformat(str(run.facts["started"]))
    earliest = started - CLOCKS_APART
    latest = started + CLOCKS_APART + timedelta(seconds=run.facts["seconds"] or 0.0)
    for log in run.ranks:
        anchor = datetime.fromtimestamp(log.facts["wall_anchor"]["unix_ns"] / 1e9, UTC)
        if not earliest <= anchor <= latest:
            host, time = log.facts["host"], anchor.isoformat(timespec="seconds")
            message = f"run.json has {started.isoformat(timespec='seconds')}, but on {host} it was {time}"
            yield Diagnostic("started", f"{message} when rank {log.rank} began: one of the clocks is wrong")
            return


METRICS = (
    metric.recorded(
        "status",
        "Status",
        "run status; completed needs every rank log",
        lambda run: str(run.status),
        diagnose_any=failed,
    ),
    metric.recorded("reason", "Reason", "reason for the status", lambda run: run.reason, shown=metric.Shown.SENTENCE),
    metric.recorded(
        "started", "Started", "start time", lambda run: run.facts["started"], unit="UTC", diagnose=other_clock
    ),
    metric.recorded(
        "run_seconds",
        "Run time",
        "lifetime of the ranks",
        lambda run: run.facts["seconds"],
        unit="s",
        dtype=metric.Dtype.FLOAT,
    ),
    metric.recorded(
        "order",
        "Order",
        "run order: interleaved, sequential or by hand",
        lambda run: run.facts["order"],
    ),
    metric.recorded(
        "round",
        "Round",
        "round, one pass over all configurations; missing if measured outside its round",
        lambda run: run.facts["round"],
        diagnose=out_of_round,
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
    metric.recorded(
        "position",
        "Position",
        "position in the round, from 1",
        lambda run: run.facts["position"],
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
    metric.recorded(
        "ranks_expected",
        "Ranks expected",
        "expected rank logs",
        lambda run: run.facts["ranks_expected"],
        dtype=metric.Dtype.INTEGER,
    ),
    metric.recorded(
        "ranks_seen",
        "Ranks seen",
        "complete rank logs",
        lambda run: len(run.facts["ranks_seen"]),
        dtype=metric.Dtype.INTEGER,
    ),
    metric.recorded(
        "cache_key",
        "Cache key",
        "hash of configuration, benchmark code, Python and package versions",
        lambda run: run.facts["cache_key"],
        same_within="configuration_id",
    ),
    metric.recorded(
        "background_cores",
        "Background load",
        "cores that other programs used in the measured windows (user's program: in the whole run); missing "
        "in containers",
        background_cores,
        unit="cores",
        pages=(*metric.THROUGHPUT_PAGES, metric.COMMUNICATION),
        diagnose_any=background_load,
        dtype=metric.Dtype.FLOAT,
    ),
    metric.recorded(
        "disturbed",
        "Disturbed",
        f"background load above {BACKGROUND_CORES:g} cores, which excludes the run from statistics",
        is_disturbed,
        dtype=metric.Dtype.OPTIONAL_FLAG,
    ),
    metric.recorded(
        "waited_seconds",
        "Waited",
        "wait for an idle machine",
        lambda run: run.facts["load"]["waited_seconds"],
        unit="s",
        dtype=metric.Dtype.FLOAT,
    ),
)
