"""The memory that a rank holds for the training itself: its part of parameters, gradients and optimizer state."""

from collections.abc import Callable
from typing import cast

from dlperf_study.evidence.run import Run
from dlperf_study.metrics.metric import MAYBE_INT, RC, Metric, Summary, if_complete, not_measured_by_program

_KINDS = {
    "weights": ("Weights held", "parameters"),
    "gradients": ("Gradients held", "gradients"),
    "optimizer": ("Optimizer state held", "the optimizer's state"),
}
_NOT_OBSERVED = "its library does not say it, or loss scaling skipped the first step"


def held(kind: str) -> Callable[[Run], int | None]:
    """Return the formula of what the rank with most holds; None where a rank does not say it."""

    def largest(run: Run) -> int | None:
        sizes = (cast(dict[str, int], log.facts.get("held_bytes", {})).get(kind) for log in run.ranks)
        return max(if_complete(sizes), default=None)

    return largest


METRICS = tuple(
    Metric(
        f"held_{kind}_bytes",
        label,
        f"bytes of {meaning} on the rank with most, after the update of the first step; without copies and buffers",
        RC,
        unit="bytes",
        dtype=MAYBE_INT,
        value=held(kind),
        summary=Summary.LARGEST,
        missing=(not_measured_by_program, _NOT_OBSERVED),
    )
    for kind, (label, meaning) in _KINDS.items()
)
#: The columns of what is held.
HELD_COLUMNS = tuple(metric.name for metric in METRICS)
