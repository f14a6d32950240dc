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
        "NCCL connections by pairs: P2P (GPU to GPU), SHM (host memory), NET (network; GDRDMA bypasses host memory)",
        value=_transports,
        pages=(metric.COMMUNICATION,),
    ),
    _text(
        "nccl_path",
        "Path",
        "slowest GPU pair of a node, in nvidia-smi topo terms",
        value=lambda report: report.path or None,
    ),
    _text("nccl_network", "Network cards", "network plugin and cards of NCCL", value=_network),
    _text(
        "nccl_channels",
        "Channels",
        "parallel rings of NCCL",
        value=lambda report: report.channels or None,
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
    _text("nccl_rings", "Rings", "distinct rank orders of NCCL's rings", value=_rings),
    _text(
        "nccl_trees",
        "Trees",
        "NCCL's trees for small messages",
        value=lambda report: report.trees or None,
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
)
