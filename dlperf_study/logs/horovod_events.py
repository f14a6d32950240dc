"""Reads the timeline that Horovod writes of itself: a Chrome trace, one process id per tensor."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dlperf_study.errors import EvidenceError

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
