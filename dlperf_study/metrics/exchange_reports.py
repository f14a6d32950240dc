"""NCCL's reports on communication, in runs that are not counted."""

from collections.abc import Callable
from typing import Any

from dlperf_study.metrics import metric
from dlperf_study.records.nccl_report import NcclReport

#: How many orders of ranks are named; the unnamed are counted.
NAMED_RINGS = 2
_NO_REPORT = ("NCCL did not say it, or there is no report: only several GPUs exchange with NCCL",)


def _transports(report: NcclReport) -> str | None:
    return ", ".join(f"{transport} ({pairs})" for transport, pairs in report.connections.items()) or None


def _network(report: NcclReport) -> str | None:
    return (f"{report.network}: {', '.join(report.cards)}" if report.cards else report.network) or None


def _rings(report: NcclReport) -> str | None:
    named = [order.replace(" ", "→") for order in report.rings[:NAMED_RINGS]]
    unnamed = len(report.rings) - len(named)
    return "; ".join([*named, *([f"{unnamed} more"] if unnamed else [])]) or None


def _reported(
    name: str,
    label: str,
    definition: str,
    value: Callable[[NcclReport], Any],
    dtype: metric.Dtype = metric.Dtype.STRING,
    pages: tuple[str, ...] = (),
) -> metric.Metric:
    """Return the metric of what NCCL's report says."""
    return metric.Metric(
        *(name, label, definition, metric.C),
        dtype=dtype,
        value=value,
        source=metric.Source.NCCL_REPORT,
        missing=_NO_REPORT,
        shown=metric.Shown.PLAIN,
        pages=pages,
    )


METRICS = (
    _reported(
        "nccl_transports",
        "Transport",
        "how NCCL connects ranks, with the number of pairs: P2P, one GPU to another; SHM, by the host's memory;"
        " NET, by a network card, with GDRDMA without the host's memory",
        _transports,
        pages=(metric.COMMUNICATION,),
    ),
    _reported(
        "nccl_path",
        "Path",
        "slowest path between two GPUs of a node, as nvidia-smi topo names it",
        lambda report: report.path or None,
    ),
    _reported("nccl_network", "Network cards", "what NCCL uses between nodes: its plugin, and the cards", _network),
    _reported(
        "nccl_channels",
        "Channels",
        "rings that NCCL uses at once, of ranks in some order",
        lambda report: report.channels or None,
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
    _reported("nccl_rings", "Rings", "different orders of the ranks in these rings", _rings),
    _reported(
        "nccl_trees",
        "Trees",
        "trees that NCCL uses for small messages",
        lambda report: report.trees or None,
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
)
