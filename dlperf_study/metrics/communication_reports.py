"""NCCL's reports on communication, in runs that are not counted."""

from functools import partial

from dlperf_study.metrics import metric
from dlperf_study.records.nccl_report import NcclReport

#: How many orders of ranks are named; the unnamed are counted.
NAMED_RINGS = 2


def _transports(report: NcclReport) -> str | None:
    return ", ".join(f"{transport} ({pairs})" for transport, pairs in report.connections.items()) or None


def _network(report: NcclReport) -> str | None:
    return (f"{report.network}: {', '.join(report.cards)}" if report.cards else report.network) or None


def _rings(report: NcclReport) -> str | None:
    named = [order.replace(" ", "→") for order in report.rings[:NAMED_RINGS]]
    unnamed = len(report.rings) - len(named)
    return "; ".join([*named, *([f"{unnamed} more"] if unnamed else [])]) or None


#: What NCCL's report says.
_reported = partial(
    metric.Metric,
    tables=metric.C,
    source=metric.Source.NCCL_REPORT,
    missing=("NCCL did not say it, or there is no report: only several GPUs communicate with NCCL",),
    shown=metric.Shown.PLAIN,
)
_text = partial(_reported, dtype=metric.Dtype.STRING)
_number = partial(_reported, dtype=metric.Dtype.OPTIONAL_INTEGER)

METRICS = (
    _text(
        "nccl_transports",
        "Transport",
        "how NCCL connects ranks, with the number of pairs: P2P, GPU to GPU; SHM, through host memory; "
        "NET, through a network card (with GDRDMA, bypassing host memory)",
        value=_transports,
        pages=(metric.COMMUNICATION,),
    ),
    _text(
        "nccl_path",
        "Path",
        "slowest path between two GPUs of a node, by its name in nvidia-smi topo",
        value=lambda report: report.path or None,
    ),
    _text("nccl_network", "Network cards", "network plugin and cards that NCCL uses between nodes", value=_network),
    _text(
        "nccl_channels",
        "Channels",
        "rings that NCCL uses at once",
        value=lambda report: report.channels or None,
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
    _text("nccl_rings", "Rings", "distinct orders of the ranks in these rings", value=_rings),
    _text(
        "nccl_trees",
        "Trees",
        "trees that NCCL uses for small messages",
        value=lambda report: report.trees or None,
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
)
