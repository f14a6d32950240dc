"""The measured parts of a step of one size, as a physical model needs them: computation, waits, exchange alone."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlperf_study.metrics.statistics import Estimate
from dlperf_study.study.exchange import PUSH_PULL, STRATEGIES
from dlperf_study.study.parallel_parameters import DEGREES
from dlperf_study.study.precision import REDUCED_PARAMETERS

#: The dimensions along which a model is copied or its parameters divided: over more nodes these grow.
_GROWING_GROUPS = ("data", "shard")
_KINDS_OF_BYTES = ("all_reduce_bytes", "all_gather_bytes", "reduce_scatter_bytes")


@dataclass(frozen=True)
class StepParts:
    """The seconds of a step of one configuration; None where a part was not measured.

    ``computation_seconds``: of the slowest rank, without the wait for input. ``batch_per_device``: samples.
    ``exchange_seconds``: of the exchange alone; of several exchanges the one whose ranks grow in number along a curve.
    ``exchange_error``: the standard error of its logarithm. ``latency_seconds``: of one exchange of no bytes, fitted
    to several sizes. ``exchanged_bytes``: what a rank exchanges in a step. ``ranks``: how many take part in the
    exchange. ``gathers``: it gathers or scatters what ranks divide among them. ``is_asynchronous``: ranks don't wait
    for each other. ``has_short_gradients``: they are exchanged in 16 bits.
    """

    step_seconds: float
    ranks: int
    batch_per_device: int = 1
    servers: int = 0
    computation_seconds: float | None = None
    input_seconds: float = 0.0
    jitter_seconds: float = 0.0
    exchange_seconds: float | None = None
    exchange_error: float | None = None
    latency_seconds: float | None = None
    exchanged_bytes: float | None = None
    gathers: bool = False
    is_asynchronous: bool = False
    has_short_gradients: bool = False

    @property
    def exposed_seconds(self) -> float | None:
        """What of the exchange a step waits for, without the waiting for jitter; None without the computation."""
        if self.computation_seconds is None:
            return None
        return self.step_seconds - self.computation_seconds - self.input_seconds - self.jitter_seconds


def step_parts_of(row: Any) -> StepParts | None:
    """Return the parts of a step of a row of a study's configurations; None where no step was timed."""
    step = _value(row, "broken_down_step_seconds") or _value(row, "step_seconds")
    if step is None:
        return None
    groups = [group for group in _GROWING_GROUPS if _value(row, f"{group}_exchange_seconds")]
    exchange = f"{groups[0]}_exchange_seconds" if groups else "exchange_seconds"
    divided = math.prod(int(_value(row, name) or 1) for name in DEGREES)
    return StepParts(
        step_seconds=step,
        ranks=int(row.world_size) // divided,
        batch_per_device=int(row.batch_per_device),
        servers=int(_value(row, "servers") or 0),
        computation_seconds=_value(row, "computation_seconds"),
        input_seconds=_value(row, "input_seconds") or 0.0,
        jitter_seconds=max(0.0, _value(row, "jitter_seconds") or 0.0),
        exchange_seconds=_value(row, exchange),
        exchange_error=_log_error(row, exchange),
        latency_seconds=_value(row, "exchange_latency_seconds"),
        exchanged_bytes=_bytes(row, groups),
        gathers=any(_value(row, f"{kind}_bytes") for kind in ("all_gather", "reduce_scatter")),
        is_asynchronous=row.strategy in STRATEGIES and STRATEGIES[row.strategy].exchange == PUSH_PULL,
        has_short_gradients=row.gradient_compression == "fp16" or row.precision in REDUCED_PARAMETERS,
    )


def _bytes(row: Any, groups: list[str]) -> float | None:
    """Return the bytes of the exchange that grows: of its group, of all kinds of collectives, or of the gradients."""
    if groups:
        return _value(row, f"{groups[0]}_exchange_bytes")
    of_kinds = [size for name in _KINDS_OF_BYTES if (size := _value(row, name))]
    return sum(of_kinds) if of_kinds else _value(row, "gradient_bytes")


def _value(row: Any, name: str) -> float | None:
    value = getattr(row, name, None)
    return None if value is None or pd.isna(value) else float(value)


def _log_error(row: Any, name: str) -> float | None:
    """Return the standard error of the logarithm of a mean, from its 95 % interval."""
    value, low, high = (_value(row, f"{name}{bound}") for bound in ("", "_low", "_high"))
    if not value or not low or not high or low <= 0:
        return None
    return Estimate.of_printed(value, low, high, int(row.runs_completed)).error
