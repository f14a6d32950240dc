"""Memory, largest batch and CPU limit of a rank."""

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import cast

from dlperf_study.metrics import metric
from dlperf_study.metrics.environment import list_hosts
from dlperf_study.records.lines import TRAINING
from dlperf_study.records.rank_log import RankLog
from dlperf_study.records.run import Run


def shared_cores(run: Run) -> str:
    """Return why computation and communication share cores; else empty.

    Each rank has its threads and those of its communication library; parameter servers are processes of their own.
    """
    facts, configuration = run.ranks[0].facts, run.configuration
    cores = run.facts["environment"]["hardware"].get("cores")
    if facts["device"] != "cpu" or not cores:
        return ""
    threads, helpers = configuration.threads_per_device, facts.get("communication_threads", 0)
    hosts = len(list_hosts(run))
    processes = configuration.world_size / hosts
    if configuration.cpu_limit and threads + helpers > configuration.cpu_limit:
        return (
            f"{threads + helpers:g} threads of a rank and its communication share its {configuration.cpu_limit:g} cores"
        )
    needed = processes * (threads + helpers) + configuration.parameter_servers / hosts
    if needed <= cores:
        return ""
    return f"{needed:g} threads of ranks, communication and servers share {cores} cores"


def _peak(kind: str, label: str, meaning: str, missing: str) -> metric.Metric:
    """Return the metric of a kind of memory, of the largest rank."""
    return metric.whole_number(
        f"peak_{kind}_bytes",
        label,
        f"peak {meaning}, maximum over ranks",
        unit="bytes",
        # None where a rank has not recorded it, for that may be the most.
        value=_largest(lambda log: log.end.get("peak_memory", {}), f"{kind}_bytes"),
        summary=metric.Summary.LARGEST,
        missing=(metric.not_measured_by_program, missing),
    )


def _largest(sizes_of: Callable[[RankLog], object], kind: str) -> Callable[[Run], int | None]:
    """Return the formula of a rank log's most bytes of a kind."""

    def largest(run: Run) -> int | None:
        sizes = (cast(Mapping[str, int], sizes_of(log)).get(kind) for log in run.ranks)
        return max(metric.if_complete(sizes), default=None)

    return largest


def _of_limited(formula: Callable[[RankLog, dict[str, float]], float]) -> Callable[[Run], float | None]:
    """Return the formula of the largest value of ranks with a CPU limit, or None."""

    def largest(run: Run) -> float | None:
        limited = [log for log in run.ranks if log.end.get("cpu_limit")]
        return max((formula(log, cast(dict[str, float], log.end["cpu_limit"])) for log in limited), default=None)

    return largest


used_cores = _of_limited(lambda log, counts: counts["cpu_seconds"] / log.windows[TRAINING].seconds)
# A window may be shorter than a period.
throttled_share = _of_limited(lambda log, counts: counts["throttled_periods"] / max(counts["periods"], 1))


def _no_search(gap: metric.Gap) -> str:
    if not gap.has("largest_batch"):
        return _NOT_SEARCHED
    batch = gap.row.batch_per_device
    is_beyond = gap.runs.empty and batch > gap.row.largest_batch
    return f"each batch that the search tried fits{f'; {batch}, its own, is larger' if is_beyond else ''}"


_no_limit = metric.reason_if(lambda row: not row.cpu_limit, "no CPU limit was set")
_NOT_SEARCHED = "the study does not ask for it, or the search is not over"
_UNCOUNTED = "its library does not count it on this device"
PEAKS = (
    _peak("allocated", "Peak of tensors", "device memory allocated for tensors", _UNCOUNTED),
    _peak("reserved", "Peak reserved", "device memory reserved by the library's allocator", _UNCOUNTED),
    _peak(
        "process",
        "Peak of the process",
        "resident memory of a training process",
        "the kernel of its host does not count it",
    ),
)


#: A result of the search for the largest batch.
_tried = partial(
    metric.whole_number,
    tables=metric.C,
    unit="samples",
    source=metric.Source.BATCH_SEARCH,
    missing=(_no_search,),
    shown=metric.Shown.PLAIN,
)
_KINDS_HELD = {
    "weights": ("Weights held", "parameters"),
    "gradients": ("Gradients held", "gradients"),
    "optimizer": ("Optimizer state held", "optimizer state"),
}


def _not_observed(gap: metric.Gap) -> str:
    """Return why nobody knows what the first update left in memory."""
    is_scaled = getattr(gap.row, "loss_scaling", "none") != "none"
    return f"its library does not say it{', or loss scaling skipped the first step' if is_scaled else ''}"


_HELD = tuple(
    metric.whole_number(
        f"held_{kind}_bytes",
        label,
        f"{meaning} after the first update, without copies and buffers; rank with the most",
        unit="bytes",
        value=_largest(lambda log: log.facts.get("held_bytes", {}), kind),
        summary=metric.Summary.LARGEST,
        missing=(metric.not_measured_by_program, _not_observed),
    )
    for kind, (label, meaning) in _KINDS_HELD.items()
)
HELD_COLUMNS = metric.list_names(_HELD)

METRICS = (
    *PEAKS,
    _tried(
        "largest_batch",
        "Largest batch",
        "largest local batch that fits, up to the study's limit; 0: OOM with one sample",
        value=attrgetter("fitting"),
        at_least_without="too_large_batch",
    ),
    _tried(
        "largest_micro_batch",
        "Largest micro-batch",
        "largest_batch / micro_batches",
        value=attrgetter("largest_micro_batch"),
        at_least_without="too_large_batch",
    ),
    _tried(
        "too_large_batch",
        "Does not fit",
        "smallest local batch with OOM; missing if every probe fits",
        value=attrgetter("too_large"),
    ),
    _tried(
        "batch_probes",
        "Probes",
        "probes of the batch-size search",
        value=attrgetter("trials"),
        unit="runs",
    ),
    metric.Metric(
        "used_cores",
        "Used cores",
        "CPU seconds / window seconds, busiest rank with a CPU limit",
        metric.R,
        unit="cores",
        value=used_cores,
        missing_of_run=_no_limit,
    ),
    metric.Metric(
        "throttled_share",
        "Throttled",
        "share of 100 ms periods with CPU throttling, most throttled rank",
        metric.R,
        value=throttled_share,
        missing_of_run=_no_limit,
    ),
    *_HELD,
)
