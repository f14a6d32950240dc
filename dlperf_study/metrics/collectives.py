"""The collectives of a step by their kind: what they move, and how fast they do it alone."""

from collections.abc import Callable
from typing import cast

from dlperf_study.evidence.lines import CollectiveLine, part_of_exchange
from dlperf_study.evidence.run import Run
from dlperf_study.metrics.metric import COMMUNICATION, MAYBE_INT, RC, Gap, Metric, Summary
from dlperf_study.study.exchange import ALL_REDUCE, COLLECTIVE_KINDS, COLLECTIVES, CollectiveKind

#: How many bytes each link carries for each byte of a collective's size, among n ranks (nccl-tests, PERFORMANCE.md).
BUS_FACTORS: dict[CollectiveKind, tuple[str, Callable[[int], float]]] = {
    ALL_REDUCE: ("2(n−1)/n", lambda ranks: 2 * (ranks - 1) / ranks),
    "all_gather": ("(n−1)/n", lambda ranks: (ranks - 1) / ranks),
    "reduce_scatter": ("(n−1)/n", lambda ranks: (ranks - 1) / ranks),
    "broadcast": ("1", lambda ranks: 1.0),
    "send_receive": ("1", lambda ranks: 1.0),
}


def exchanges_of(run: Run, kind: CollectiveKind) -> list[CollectiveLine]:
    """Return the collectives of a kind of the rank that moves the most by them; none if nobody observed them.

    Where ranks have different layers, those at the ends of a pipeline send half of what the others do.
    """
    of_ranks = [cast(list[CollectiveLine], log.facts.get("exchanges", [])) for log in run.ranks]
    of_kind = [[entry for entry in exchanges if entry["kind"] == kind] for exchanges in of_ranks]
    return max(of_kind, key=lambda exchanges: sum(entry["bytes"] for entry in exchanges))


def collective_bytes(run: Run, kind: CollectiveKind) -> int | None:
    """Return the bytes of all collectives of a kind in a step; None where a step has none, or nobody observed them.

    Of what is sent from rank to rank, the bytes that a rank sends.
    """
    return sum(entry["bytes"] for entry in exchanges_of(run, kind)) or None


def collective_bandwidth(run: Run, kind: CollectiveKind) -> float | None:
    """Return the bytes/s on the links while the collectives of a kind are done alone, by the slowest rank."""
    window = run.slowest(part_of_exchange(kind))
    if window is None:
        return None
    _, factor = BUS_FACTORS[kind]
    carried = sum(entry["bytes"] * factor(entry["ranks"]) for entry in exchanges_of(run, kind))
    return carried / window.mean_seconds


def _no_such(gap: Gap) -> str:
    """Return why there are no collectives of a kind."""
    if set(gap.runs["exchange"]) != {COLLECTIVES}:
        return "its exchange is of one kind: bytes are in gradient_bytes, and the rate in bus_bandwidth"
    return "no step has collectives of this kind, or they were not measured alone"


def _metrics_of(kind: CollectiveKind) -> tuple[Metric, Metric]:
    label = kind.replace("_", "-")
    formula, _ = BUS_FACTORS[kind]
    size = Metric(
        f"{kind}_bytes",
        f"{label.capitalize()} bytes",
        f"bytes of the {label} collectives of a step on the rank with most, as observed in the first one",
        RC,
        unit="bytes",
        dtype=MAYBE_INT,
        value=lambda run: collective_bytes(run, kind),
        summary=Summary.FACT,
        missing=(_no_such,),
        pages=(COMMUNICATION,),
    )
    rate = Metric(
        f"{kind}_bandwidth",
        f"{label.capitalize()} bus bandwidth",
        f"bytes of the {label} collectives of a step / seconds of these alone × {formula}",
        RC,
        unit="bytes/s",
        value=lambda run: collective_bandwidth(run, kind),
        summary=Summary.GEOMETRIC,
        missing=(_no_such,),
        pages=(COMMUNICATION,),
    )
    return size, rate


METRICS = tuple(metric for kind in COLLECTIVE_KINDS for metric in _metrics_of(kind))
#: The columns of the table of exchanges, as far as a study has them.
COLLECTIVE_COLUMNS = tuple(metric.name for metric in METRICS)
