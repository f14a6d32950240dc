"""On what Horovod spends its steps: its timeline, held against what the ranks say of the same run.

It has no marks of steps: the k-th all-reduce of a tensor belongs to step k. Tensors are fused, so their
intervals overlap; the time of a step is the length of their union, not their sum.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dlperf_study.arrays import Floats
from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.json_fields import text_of

# Reads the timeline that Horovod writes of itself: a Chrome trace, one process id per tensor.


NEGOTIATION, ALL_REDUCE = "NEGOTIATE_ALLREDUCE", "ALLREDUCE"
TENSOR = "allreduce."
#: Beyond this many microseconds since its beginning (ten years) a time stamp is none.
LATEST = 10 * 366 * 86400 * 10**6

Span = tuple[int, int]
Event = Mapping[str, Any]


@dataclass
class Tensor:
    """The activities of one tensor in order of their ends, one of each per step, and how many numbers it has."""

    spans: dict[str, list[Span]] = field(default_factory=lambda: {NEGOTIATION: [], ALL_REDUCE: []})
    begun: list[tuple[str, int]] = field(default_factory=list)
    elements: set[int] = field(default_factory=set)


def read_tensors(text: str) -> dict[int, Tensor]:
    """Return the tensors by process id; what is nested in an activity is not looked at.

    Raises:
        EvidenceError: the text is no timeline, or an event of a tensor is not what Horovod writes.

    """
    tensors: dict[int, Tensor] = {}
    for event in _events(text):
        if _is_tensor_name(event):
            tensors.setdefault(_whole(event, "pid"), Tensor())
        elif event.get("ph") in ("B", "E") and (tensor := tensors.get(_whole(event, "pid"))):
            _begin(tensor, event) if event["ph"] == "B" else _end(tensor, event)
    return tensors


def _events(text: str) -> list[Event]:
    try:
        events = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"is no timeline of Horovod: {error}") from error
    if not isinstance(events, list) or not all(isinstance(event, dict) and "pid" in event for event in events):
        raise EvidenceError("is no timeline of Horovod: a list of events with process ids was expected")
    return events


def _is_tensor_name(event: Event) -> bool:
    return event.get("name") == "process_name" and str(_arguments(event).get("name", "")).startswith(TENSOR)


def _begin(tensor: Tensor, event: Event) -> None:
    tensor.begun.append((str(event.get("name")), _whole(event, "ts")))


def _end(tensor: Tensor, event: Event) -> None:
    if not tensor.begun:
        raise EvidenceError(f"an activity of tensor {event['pid']} ends that never began")
    name, start = tensor.begun.pop()
    stop = _whole(event, "ts")
    if stop < start:
        raise EvidenceError(f"{name} of tensor {event['pid']} ends at {stop} us, before it begins at {start} us")
    if name in tensor.spans:
        tensor.spans[name].append((start, stop))
    if name == ALL_REDUCE:
        tensor.elements.add(_elements(event))


def _elements(event: Event) -> int:
    """Return how many numbers a tensor has whose all-reduce ends: the product of a shape like ``[64, 3, 7, 7]``."""
    shape = _arguments(event).get("shape")
    if not isinstance(shape, str) or not re.fullmatch(r"\[[\d, ]{,200}\]", shape):
        raise EvidenceError(f"the shape of tensor {event['pid']} is {shape!r}, not like [64, 3, 7, 7]")
    return math.prod(map(int, re.findall(r"\d+", shape)))


def _arguments(event: Event) -> Mapping[str, Any]:
    arguments = event.get("args", {})
    if not isinstance(arguments, dict):
        raise EvidenceError(f"is no timeline of Horovod: args of an event is {arguments!r}, not an object")
    return arguments


def _whole(event: Event, key: str) -> int:
    value = event.get(key)
    if type(value) is not int or not 0 <= value < LATEST:
        raise EvidenceError(f"is no timeline of Horovod: {key} of an event is {value!r}, not a whole number")
    return value


#: Whose runs have one: the ``library`` of their rank logs.
LIBRARY = "horovod"
MICROSECOND = 1e-6
#: By how much of a step the exchange may outlast it: the timeline and the windows read clocks of their own.
STEP_TOLERANCE = 0.1


@dataclass(frozen=True)
class TracedRun:
    """What the rank logs of a traced run say, against which its timeline is held.

    ``longest_seconds`` [steps]: of each step behind the warm-up, from the first rank that begins it to the last
    that ends it. ``parameters``: how many numbers the gradients of a step have.
    """

    warmup_steps: int
    longest_seconds: Floats
    parameters: int


@dataclass(frozen=True)
class Timeline:
    """Means over the traced steps, as rank 0 saw them.

    ``negotiation_seconds``: while at least one gradient waited until all ranks had it.
    ``all_reduce_seconds``: while at least one gradient was copied, reduced or copied back.
    """

    steps: int
    negotiation_seconds: float
    all_reduce_seconds: float


def read_timeline(path: Path, run: TracedRun) -> Timeline:
    """Return what the steps after the warm-up spent on each activity.

    Raises:
        EvidenceError: the file is missing or no timeline, a tensor was not negotiated and all-reduced once in every
            step, the tensors are not the gradients of the network, or their exchange does not fit into the steps.

    """
    text = text_of(path)
    try:
        return _timeline(read_tensors(text), run)
    except EvidenceError as error:
        raise EvidenceError(f"{path}: {error}") from error


def _timeline(tensors: Mapping[int, Tensor], run: TracedRun) -> Timeline:
    steps = run.longest_seconds.size
    _check_tensors(tensors, run.warmup_steps, steps)
    _check_elements(tensors, run.parameters)
    behind_warmup = range(run.warmup_steps, run.warmup_steps + steps)
    for step, longest in zip(behind_warmup, run.longest_seconds, strict=True):
        _check_extent(tensors, step, float(longest))
    negotiation, all_reduce = (
        float(np.mean([_covered(_at(tensors, activity, step)) for step in behind_warmup]))
        for activity in (NEGOTIATION, ALL_REDUCE)
    )
    return Timeline(steps, negotiation * MICROSECOND, all_reduce * MICROSECOND)


def _check_tensors(tensors: Mapping[int, Tensor], warmup_steps: int, steps: int) -> None:
    if not any(tensor.spans[ALL_REDUCE] for tensor in tensors.values()):
        raise EvidenceError("holds no all-reduce")
    for process, tensor in tensors.items():
        for activity, spans in tensor.spans.items():
            if len(spans) != warmup_steps + steps:
                said = f"{len(spans)} {activity} of tensor {process}"
                raise EvidenceError(f"holds {said}, but {warmup_steps} + {steps} steps were asked for")


def _check_elements(tensors: Mapping[int, Tensor], parameters: int) -> None:
    for process, tensor in tensors.items():
        if len(tensor.elements) != 1:
            raise EvidenceError(f"says {len(tensor.elements)} shapes of tensor {process}, not one")
    elements = sum(sum(tensor.elements) for tensor in tensors.values())
    if elements != parameters:
        said = f"its {len(tensors)} tensors have {elements} numbers, the network {parameters} parameters"
        raise EvidenceError(f"is of another network, or not whole: {said}")


def _check_extent(tensors: Mapping[int, Tensor], step: int, longest_seconds: float) -> None:
    spans = [*_at(tensors, NEGOTIATION, step), *_at(tensors, ALL_REDUCE, step)]
    extent = (max(stop for _, stop in spans) - min(start for start, _ in spans)) * MICROSECOND
    if extent > longest_seconds * (1 + STEP_TOLERANCE):
        said = f"the exchange of step {step} lasts {extent:.4g} s, but the step {longest_seconds:.4g} s"
        raise EvidenceError(f"is not of this run: {said}")


def _at(tensors: Mapping[int, Tensor], activity: str, step: int) -> Iterator[Span]:
    return (tensor.spans[activity][step] for tensor in tensors.values())


def _covered(spans: Iterable[Span]) -> int:
    """Return the length of the union of some spans."""
    total, end = 0, 0
    for start, stop in sorted(spans):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total
