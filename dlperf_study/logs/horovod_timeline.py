"""Reads the timeline that Horovod writes of itself: a Chrome trace, one process id per tensor.

It has no marks of steps: the k-th all-reduce of a tensor belongs to step k. Tensors are fused, so their
intervals overlap; the time of a step is the length of their union, not their sum.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dlperf_study.errors import EvidenceError

NEGOTIATION, ALL_REDUCE = "NEGOTIATE_ALLREDUCE", "ALLREDUCE"
TENSOR = "allreduce."
MICROSECOND = 1e-6

Span = tuple[int, int]
#: The spans of one activity of one tensor, in order: ``spans[activity, process id]``.
Spans = dict[tuple[str, int], list[Span]]


@dataclass(frozen=True)
class Timeline:
    """Means over the traced steps, as rank 0 saw them.

    ``negotiation_seconds``: while at least one gradient waited until all ranks had it.
    ``all_reduce_seconds``: while at least one gradient was copied, reduced or copied back.
    """

    steps: int
    negotiation_seconds: float
    all_reduce_seconds: float


def read_timeline(path: Path, warmup_steps: int, steps: int) -> Timeline:
    """Return what the steps after the warm-up spent on each activity.

    Raises:
        EvidenceError: the file is missing or no timeline, or a tensor was not exchanged once in every step.

    """
    spans = _spans(path, _events(path))
    tensors = {process for activity, process in spans if activity == ALL_REDUCE}
    if not tensors:
        raise EvidenceError(f"{path}: holds no all-reduce")
    for key, found in spans.items():
        if len(found) != warmup_steps + steps:
            said = f"{len(found)} {key[0]} of tensor {key[1]}"
            raise EvidenceError(f"{path}: holds {said}, but {warmup_steps} + {steps} steps were asked for")
    negotiation, all_reduce = (
        float(np.mean([_covered(_at(spans, activity, step)) for step in range(warmup_steps, warmup_steps + steps)]))
        for activity in (NEGOTIATION, ALL_REDUCE)
    )
    return Timeline(steps, negotiation * MICROSECOND, all_reduce * MICROSECOND)


def _events(path: Path) -> list[dict[str, Any]]:
    try:
        events = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise EvidenceError(f"{path}: is missing") from error
    except (OSError, ValueError) as error:
        raise EvidenceError(f"{path}: is no timeline of Horovod: {error}") from error
    if not isinstance(events, list) or not all(isinstance(event, dict) and "pid" in event for event in events):
        raise EvidenceError(f"{path}: is no timeline of Horovod: a list of events with process ids was expected")
    return events


def _spans(path: Path, events: Sequence[dict[str, Any]]) -> Spans:
    """Return the spans of negotiation and all-reduce; the parts of an all-reduce lie nested in it."""
    tensors = {event["pid"] for event in events if str(event.get("args", {}).get("name", "")).startswith(TENSOR)}
    spans: Spans = defaultdict(list)
    open_spans: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for event in events:
        process = event["pid"]
        if process in tensors and event.get("ph") == "B":
            open_spans[process].append((event["name"], event["ts"]))
        elif process in tensors and event.get("ph") == "E":
            if not open_spans[process]:
                raise EvidenceError(f"{path}: an activity of tensor {process} ends that never began")
            name, start = open_spans[process].pop()
            if name in (NEGOTIATION, ALL_REDUCE):
                spans[name, process].append((start, event["ts"]))
    return spans


def _at(spans: Spans, activity: str, step: int) -> Iterator[Span]:
    return (found[step] for (name, _), found in spans.items() if name == activity)


def _covered(spans: Iterable[Span]) -> int:
    """Return the length of the union of some spans."""
    total, end = 0, 0
    for start, stop in sorted(spans):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total
