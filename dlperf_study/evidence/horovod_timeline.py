"""What Horovod does in a step: its timeline, a Chrome trace with one process id per tensor, read and checked.

The timeline has no marks of steps: the k-th all-reduce of a tensor belongs to step k. Tensors are fused, so their
intervals overlap; the time of a step is the length of their union, not their sum.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dlperf_study.core.arrays import Floats
from dlperf_study.core.errors import EvidenceError
from dlperf_study.study.validation import text_of

#: Which runs have one: the ``library`` of their rank logs.
LIBRARY = "horovod"
NEGOTIATION, ALL_REDUCE = "NEGOTIATE_ALLREDUCE", "ALLREDUCE"
TENSOR_PREFIX = "allreduce."
MICROSECOND = 1e-6
#: A time stamp above this many microseconds since the beginning (ten years) is invalid.
LAST_TIME_STAMP = 10 * 366 * 86400 * 10**6
#: By how much of a step the exchange may exceed it: the timeline and the windows use different clocks.
STEP_TOLERANCE = 0.1

Span = tuple[int, int]
Event = Mapping[str, Any]


@dataclass(frozen=True)
class TracedRun:
    """What the rank logs of a traced run say, with which its timeline is compared.

    ``steps_before``: the training window, the warm-up included. ``longest_seconds`` [steps]: of each step of that
    window, from the first rank that begins it to the last that ends it. ``parameters``: how many elements the gradients
    of a step have.
    """

    steps_before: int
    longest_seconds: Floats
    parameters: int


@dataclass(frozen=True)
class Timeline:
    """Means over the traced steps, as rank 0 recorded them.

    ``negotiation_seconds``: while at least one gradient waited until all ranks had it.
    ``all_reduce_seconds``: while at least one gradient was copied, reduced or copied back.
    """

    steps: int
    negotiation_seconds: float
    all_reduce_seconds: float


@dataclass
class Tensor:
    """The activities of one tensor in order of their ends, one of each per step, and its numbers of elements."""

    spans: dict[str, list[Span]] = field(default_factory=lambda: {NEGOTIATION: [], ALL_REDUCE: []})
    open_activities: list[tuple[str, int]] = field(default_factory=list)
    elements: set[int] = field(default_factory=set)


def read_timeline(path: Path, run: TracedRun) -> Timeline:
    """Return the mean times of the steps after the warm-up.

    Raises:
        EvidenceError: the file is missing or no timeline, a tensor was not negotiated and all-reduced once in every
            step, the tensors are not the gradients of the network, or their exchange does not fit into the steps.

    """
    content = text_of(path)
    try:
        tensors = _read_tensors(content)
        _check_completeness(tensors, run)
        return _mean_times(list(tensors.values()), run)
    except EvidenceError as error:
        raise EvidenceError(f"{path}: {error}") from error


def _mean_times(tensors: list[Tensor], run: TracedRun) -> Timeline:
    negotiation, all_reduce = [], []
    for index, step_seconds in enumerate(run.longest_seconds):
        step = run.steps_before + index
        negotiations = [tensor.spans[NEGOTIATION][step] for tensor in tensors]
        all_reduces = [tensor.spans[ALL_REDUCE][step] for tensor in tensors]
        starts, stops = zip(*negotiations, *all_reduces, strict=True)
        seconds = (max(stops) - min(starts)) * MICROSECOND
        if seconds > step_seconds * (1 + STEP_TOLERANCE):
            lengths = f"the exchange of step {step} lasts {seconds:.4g} s, but the step {step_seconds:.4g} s"
            raise EvidenceError(f"is not of this run: {lengths}")
        negotiation.append(_covered(negotiations))
        all_reduce.append(_covered(all_reduces))
    steps = run.longest_seconds.size
    return Timeline(steps, float(np.mean(negotiation)) * MICROSECOND, float(np.mean(all_reduce)) * MICROSECOND)


def _covered(spans: Iterable[Span]) -> int:
    """Return the length of the union of spans."""
    total, end = 0, 0
    for start, stop in sorted(spans):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def _check_completeness(tensors: Mapping[int, Tensor], run: TracedRun) -> None:
    """Check that the tensors are those of the network, and that each has every activity once in every step."""
    if not any(tensor.spans[ALL_REDUCE] for tensor in tensors.values()):
        raise EvidenceError("contains no all-reduce")
    steps_before, steps, elements = run.steps_before, run.longest_seconds.size, 0
    for process, tensor in tensors.items():
        for activity, spans in tensor.spans.items():
            if len(spans) != steps_before + steps:
                activities = f"{len(spans)} {activity} of tensor {process}"
                raise EvidenceError(f"contains {activities}, but {steps_before} + {steps} steps were requested")
        if len(tensor.elements) != 1:
            raise EvidenceError(f"has {len(tensor.elements)} shapes of tensor {process}, not one")
        elements += sum(tensor.elements)
    if elements != run.parameters:
        sizes = f"its {len(tensors)} tensors have {elements} elements, the network {run.parameters} parameters"
        raise EvidenceError(f"is of a different network, or incomplete: {sizes}")


def _read_tensors(text: str) -> dict[int, Tensor]:
    """Return the tensors by process id; activities nested in those of ``Tensor.spans`` are skipped.

    Raises:
        EvidenceError: the text is no timeline, or an event of a tensor is not what Horovod writes.

    """
    tensors: dict[int, Tensor] = {}
    for event in _events(text):
        if event.get("name") == "process_name" and str(_arguments(event).get("name", "")).startswith(TENSOR_PREFIX):
            tensors.setdefault(_integer(event, "pid"), Tensor())
        elif event.get("ph") in ("B", "E") and (tensor := tensors.get(_integer(event, "pid"))):
            if event["ph"] == "B":
                tensor.open_activities.append((str(event.get("name")), _integer(event, "ts")))
            else:
                _end_activity(tensor, event)
    return tensors


def _events(text: str) -> list[Event]:
    try:
        events = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"is no timeline of Horovod: {error}") from error
    if not isinstance(events, list) or not all(isinstance(event, dict) and "pid" in event for event in events):
        raise EvidenceError("is no timeline of Horovod: a list of events with process ids was expected")
    return events


def _end_activity(tensor: Tensor, event: Event) -> None:
    if not tensor.open_activities:
        raise EvidenceError(f"an activity of tensor {event['pid']} ends that never began")
    name, start = tensor.open_activities.pop()
    stop = _integer(event, "ts")
    if stop < start:
        raise EvidenceError(f"{name} of tensor {event['pid']} ends at {stop} us, before it begins at {start} us")
    if name in tensor.spans:
        tensor.spans[name].append((start, stop))
    if name == ALL_REDUCE:
        shape = _arguments(event).get("shape")
        if not isinstance(shape, str) or not re.fullmatch(r"\[[\d, ]{,200}\]", shape):
            raise EvidenceError(f"the shape of tensor {event['pid']} is {shape!r}, not like [64, 3, 7, 7]")
        tensor.elements.add(math.prod(map(int, re.findall(r"\d+", shape))))


def _arguments(event: Event) -> Mapping[str, Any]:
    arguments = event.get("args", {})
    if not isinstance(arguments, dict):
        raise EvidenceError(f"is no timeline of Horovod: args of an event is {arguments!r}, not an object")
    return arguments


def _integer(event: Event, key: str) -> int:
    value = event.get(key)
    if type(value) is not int or not 0 <= value < LAST_TIME_STAMP:
        raise EvidenceError(f"is no timeline of Horovod: {key} of an event is {value!r}, not an integer from 0")
    return value
