"""Collectives of a step by kind and group: bytes and standalone time."""

from collections.abc import Callable
from functools import partial
from typing import cast

from dlperf_study.metrics.metric import COMMUNICATION, Dtype, Gap, Metric, Summary, list_names
from dlperf_study.records.lines import (
    COMMUNICATION_ALONE,
    CollectiveLine,
    communication_window_name,
    size_of_collectives,
)
from dlperf_study.records.rank_log import Window
from dlperf_study.records.run import Run
from dlperf_study.study.communication import ALL_REDUCE, COLLECTIVE_KINDS, COLLECTIVES, CollectiveKind

#: How many bytes each link carries for each byte of a collective's size, among n ranks (nccl-tests, PERFORMANCE.md).
BUS_FACTORS: dict[CollectiveKind, tuple[str, Callable[[int], float]]] = {
    ALL_REDUCE: ("2(n−1)/n", lambda ranks: 2 * (ranks - 1) / ranks),
    "all_gather": ("(n−1)/n", lambda ranks: (ranks - 1) / ranks),
    "reduce_scatter": ("(n−1)/n", lambda ranks: (ranks - 1) / ranks),
    "reduce": ("1", lambda ranks: 1.0),
    "broadcast": ("1", lambda ranks: 1.0),
    "send_receive": ("1", lambda ranks: 1.0),
}


def list_collectives(run: Run, kind: CollectiveKind | None = None, group: str | None = None) -> list[CollectiveLine]:
    """Return the collectives of the rank that moves most bytes, or None."""
    of_ranks = []
    for log in run.ranks:
        lines = cast(list[CollectiveLine], log.facts.get("collective_operations", []))
        of_ranks.append([line for line in lines if kind in (None, line["kind"]) and group in (None, line.get("group"))])
    return max(of_ranks, key=size_of_collectives)


def collective_bytes(run: Run, kind: CollectiveKind | None = None, group: str | None = None) -> int | None:
    """Return the bytes of a kind or group per step, or None.

    ``group``: the dimension of the layout along which its ranks differ. Point-to-point transfers count the bytes of the
    sending rank.
    """
    return size_of_collectives(list_collectives(run, kind, group)) or None


def window_alone(run: Run, kind: CollectiveKind | None = None, group: str | None = None) -> Window | None:
    """Return the slowest rank's window of standalone collectives, or None."""
    size = collective_bytes(run, kind, group)
    if size is None:
        return None
    window = run.slowest(communication_window_name(kind, group))
    if window is None and size == collective_bytes(run):
        return run.slowest(COMMUNICATION_ALONE)
    return window


def seconds_alone(run: Run, kind: CollectiveKind | None = None, group: str | None = None) -> float | None:
    """Return the slowest rank's time of standalone collectives, or None."""
    window = window_alone(run, kind, group)
    return window.mean_seconds if window else None


def collective_bandwidth(run: Run, kind: CollectiveKind) -> float | None:
    """Return bytes/s on the links during standalone collectives of a kind."""
    window = window_alone(run, kind)
    if window is None:
        return None
    _, factor = BUS_FACTORS[kind]
    carried = sum(line["bytes"] * factor(line["ranks"]) for line in list_collectives(run, kind))
    return carried / window.mean_seconds


def _no_such(gap: Gap) -> str:
    """Return why there are no collectives of a kind."""
    if set(gap.runs["communication"]) != {COLLECTIVES}:
        return "its communication is of one kind: bytes are in gradient_bytes, and the bandwidth in bus_bandwidth"
    return "no step has such collectives, or they were not measured alone"


_collective = partial(Metric, missing=(_no_such,), pages=(COMMUNICATION,))
_size = partial(_collective, unit="bytes", dtype=Dtype.OPTIONAL_INTEGER, summary=Summary.FACT)
_seconds = partial(_collective, unit="s", summary=Summary.POSITIVE_MEAN)


def _define_metrics(kind: CollectiveKind) -> tuple[Metric, Metric, Metric]:
    label = kind.replace("_", "-")
    title = label.capitalize()
    formula, _ = BUS_FACTORS[kind]
    observed = f"bytes of the {label} collectives per step, rank with the most"
    alone = f"communication-only time of these {label} collectives"
    bandwidth = f"{label} bytes / communication-only time × {formula}"
    return (
        _size(f"{kind}_bytes", f"{title} bytes", observed, value=lambda run: collective_bytes(run, kind)),
        _seconds(f"{kind}_alone_seconds", f"{title} alone", alone, value=lambda run: seconds_alone(run, kind)),
        _collective(
            f"{kind}_bandwidth",
            f"{title} bus bandwidth",
            bandwidth,
            unit="bytes/s",
            value=lambda run: collective_bandwidth(run, kind),
            summary=Summary.GEOMETRIC,
        ),
    )


def _define_group_metrics(group: str, meaning: str) -> tuple[Metric, Metric]:
    sent = f"collective bytes per step among {meaning}"
    alone = f"communication-only time of the collectives among {meaning}"
    return (
        _size(
            f"{group}_communication_bytes",
            f"Bytes over {group}",
            sent,
            value=lambda run: collective_bytes(run, group=group),
        ),
        _seconds(
            f"{group}_communication_seconds",
            f"Communication over {group}",
            alone,
            value=lambda run: seconds_alone(run, group=group),
        ),
    )


#: The dimensions of a layout that strategies of several kinds of collectives use.
_GROUPS = {
    "data": "data-parallel ranks",
    "shard": "ranks that shard parameters (ZeRO)",
    "tensor": "tensor-parallel ranks",
    "pipeline": "pipeline-parallel ranks",
}
_OF_KINDS = tuple(metric for kind in COLLECTIVE_KINDS for metric in _define_metrics(kind))
_OF_GROUPS = tuple(metric for group, meaning in _GROUPS.items() for metric in _define_group_metrics(group, meaning))
METRICS = (*_OF_KINDS, *_OF_GROUPS)
SECONDS_OF_KINDS = {f"{kind}_alone_seconds": kind.replace("_", "-") for kind in COLLECTIVE_KINDS}
SECONDS_OF_GROUPS = {f"{group}_communication_seconds": f"over {group}" for group in _GROUPS}
COLLECTIVE_COLUMNS = tuple(metric.name for metric in _OF_KINDS if metric.name not in SECONDS_OF_KINDS)
GROUP_COLUMNS = list_names(_OF_GROUPS)
