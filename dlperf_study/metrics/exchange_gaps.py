"""Why communication, jitter or overlap of a configuration is missing."""

from dlperf_study.metrics.computation import NO_COMPUTATION
from dlperf_study.metrics.metric import Gap
from dlperf_study.study.exchange import ALL_REDUCE

RANKS_WAIT = "ranks wait for each other inside their computation"
NO_COST = "exchanges of one kind in three sizes were not measured alone"
#: How a diagnostic begins that says why the overlap is missing.
NOT_GIVEN = "not given: "


def no_overlap(gap: Gap) -> str:
    """Return why the overlap is missing despite measured communication."""
    if not gap.has("exchange_seconds"):
        return ""
    for message in gap.messages("overlap"):
        if message.startswith(NOT_GIVEN):
            return message.removeprefix(NOT_GIVEN)
    return f"{NO_COMPUTATION} in each of its runs"


def no_jitter(gap: Gap) -> str:
    """Return why jitter is missing despite a breakdown."""
    if gap.row.classifier == "sharded":
        return RANKS_WAIT
    return ""


def is_small(gap: Gap) -> str:
    """Return that jitter is too small to report; empty if unmeasured."""
    if gap.runs["jitter_seconds"].notna().any():
        return "below 2 ms, so it is not reported"
    return ""


def no_exchange_alone(gap: Gap) -> str:
    """Return why standalone communication is missing; else empty."""
    if gap.has("exchange_seconds"):
        return ""
    return "the exchange alone was not measured"


def no_bandwidth(gap: Gap) -> str:
    """Return why a fitted latency has no bandwidth."""
    if not gap.has("exchange_latency_seconds") or not gap.has("bus_bandwidth"):
        return ""
    return "larger exchanges took no longer than smaller ones"


def other_exchange(gap: Gap) -> str:
    """Return that an exchange is no all-reduce; empty where it is."""
    if set(gap.runs["exchange"]) == {ALL_REDUCE}:
        return ""
    return "defined for an all-reduce only"
