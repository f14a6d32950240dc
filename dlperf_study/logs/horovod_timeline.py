"""On what Horovod spends its steps: its timeline, held against what the ranks say of the same run.

It has no marks of steps: the k-th all-reduce of a tensor belongs to step k. Tensors are fused, so their
intervals overlap; the time of a step is the length of their union, not their sum.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dlperf_study.errors import EvidenceError
from dlperf_study.logs.arrays import Real
from dlperf_study.logs.fields import text_of
from dlperf_study.logs.horovod_events import ALL_REDUCE, NEGOTIATION, Span, Tensor, read_tensors

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
    longest_seconds: Real
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
