"""Network traffic of nodes before and during a run, from telemetry.

The kernel counts bytes by interface and not by program. Other traffic is visible while the run sends nothing: before
its ranks train, and during a run on one node, whose ranks use loopback.
"""

import math
from collections.abc import Iterable, Sequence

from dlperf_study.metrics.energy import training_windows
from dlperf_study.metrics.metric import DEVICE_PAGES, Metric, Summary, if_complete, list_names
from dlperf_study.records.lines import WARMUP, NodeSample
from dlperf_study.records.rank_log import NANO
from dlperf_study.records.run import Run

#: A shorter time says little of a throughput that is sampled once a second.
LEAST_SECONDS = 1.0


def busiest_throughput(samples: Sequence[NodeSample]) -> float | None:
    """Return bytes/s of the busiest interface, in both directions."""
    if len(samples) < 2:
        return None
    first, last = samples[0], samples[-1]
    seconds = (last["clock_ns"] - first["clock_ns"]) * NANO
    before, after = first.get("network_bytes"), last.get("network_bytes")
    if before is None or after is None or seconds < LEAST_SECONDS:
        return None
    carried = [after[name] - before[name] for name in before.keys() & after.keys()]
    # A counter of 32 bits may have begun again.
    if carried and min(carried) >= 0:
        return max(carried) / seconds
    return None


def network_throughput(run: Run) -> float | None:
    """Return bytes/s of the busiest interface in the training window."""
    return _largest([window.samples for window in training_windows(run)])


def network_throughput_before(run: Run) -> float | None:
    """Return the same from the node agents' start until training."""
    begins: dict[int, int] = {}
    for log in run.ranks:
        window, node = log.windows.get(WARMUP), log.facts["node"]
        if window is None or window.begin_ns is None:
            return None
        begins[node] = min(window.begin_ns, begins.get(node, window.begin_ns))
    telemetry = [node for node in run.telemetry if node.node in begins]
    if len(telemetry) < len(begins):
        return None
    return _largest([(node.before, *node.between(0, begins[node.node])) for node in telemetry])


def _largest(samples_of_nodes: Iterable[Sequence[NodeSample]]) -> float | None:
    return max(if_complete(map(busiest_throughput, samples_of_nodes)), default=None)


_NOT_COUNTED = "not counted on every node for a second, or a counter began again"
METRICS = (
    Metric(
        "network_throughput",
        "Network",
        "busiest network interface in the measured window, both directions, all programs",
        unit="bytes/s",
        value=network_throughput,
        summary=Summary.MEAN,
        limits=(0.0, math.inf),
        missing=(_NOT_COUNTED,),
        pages=DEVICE_PAGES,
    ),
    Metric(
        "network_throughput_before",
        "Network before",
        "busiest network interface between node start-up and training, all programs",
        unit="bytes/s",
        value=network_throughput_before,
        summary=Summary.MEAN,
        limits=(0.0, math.inf),
        missing=(_NOT_COUNTED,),
        part_of="network_throughput",
        pages=DEVICE_PAGES,
    ),
)
NETWORK_COLUMNS = list_names(METRICS)
