"""What a series would give if its link, batch, gradients, servers, algorithm, overlap or input were others.

Each change is a change of one term of the physical model. What it does to the others is not measured: a larger batch is
taken to compute in proportion, a faster link to leave the computation as it is.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dlperf_study.core.errors import DlperfStudyError
from dlperf_study.core.wording import unknown_name
from dlperf_study.prediction.curves import Unit
from dlperf_study.prediction.exchange_cost import ALGORITHMS, ALL_REDUCES, HIERARCHICAL, RING, AlgorithmCost
from dlperf_study.prediction.physical_model import StepModel

_FACTOR = re.compile(r"(\d+(?:\.\d+)?)x")
_BIT_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)bit/s", re.IGNORECASE)
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)")
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_NAMED_SHARES = {"none": 0.0, "full": 1.0}
_UNITS_OF_TIME = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


class WhatIfError(DlperfStudyError):
    """A change that does not exist, has a value that it can't have, or can't be made to a series."""


def changed(model: StepModel, changes: Mapping[str, str]) -> StepModel:
    """Return the model with all changes made, in their order.

    Raises:
        WhatIfError: with the valid names or values, or why this series does not tell what the change does.

    """
    for name, value in changes.items():
        model = _change_named(name).apply(model, value)
    return model


def parsed(options: Sequence[str]) -> dict[str, str]:
    """Return changes as ``name=value`` give them; raises WhatIfError for anything else and for names given twice."""
    changes: dict[str, str] = {}
    for option in options:
        name, separator, value = option.partition("=")
        if not separator:
            raise WhatIfError(f"--what-if {option!r} must be NAME=VALUE: {choices()}")
        if name in changes:
            raise WhatIfError(f"--what-if gives {name} twice: {changes[name]} and {value}")
        check(name, value)
        changes[name] = value
    return changes


def check(name: str, value: str) -> None:
    """Raise WhatIfError if there is no such change, or none with this value."""
    change = _change_named(name)
    if not re.fullmatch(change.pattern, value):
        raise WhatIfError(f"--what-if {name}={value}: {name} must be {change.valid}")


def choices() -> str:
    """Return all changes with their valid values."""
    return "; ".join(f"{name}={change.valid}" for name, change in CHANGES.items())


@dataclass(frozen=True)
class Change:
    """One change: the pattern of its values, what is valid in words, and what it makes of a model."""

    pattern: str
    valid: str
    apply: Callable[[StepModel, str], StepModel]


def _change_named(name: str) -> Change:
    if name not in CHANGES:
        raise WhatIfError(unknown_name("--what-if has no", name, "changes", CHANGES))
    return CHANGES[name]


def _link(model: StepModel, value: str) -> StepModel:
    """Change the rate that an exchange gets of a link between units."""
    factor = _FACTOR.fullmatch(value)
    if factor:
        return _with_cost(model, carried_seconds=model.cost.carried_seconds / float(factor[1]))
    if model.exchanged_bytes is None:
        raise WhatIfError(f"link={value}: the bytes of this series are not known; give how many times as fast, link=2x")
    rate, prefix = _BIT_RATE.fullmatch(value).groups()  # type: ignore[union-attr]
    bytes_per_second = float(rate) * _PREFIXES[prefix.upper()] / 8
    return _with_cost(model, carried_seconds=model.exchanged_bytes / bytes_per_second)


def _latency(model: StepModel, value: str) -> StepModel:
    """Change the latency of each transfer."""
    factor = _FACTOR.fullmatch(value)
    if factor:
        return _with_cost(model, round_seconds=model.cost.round_seconds * float(factor[1]))
    if not model.latency_seconds:
        raise WhatIfError(f"latency={value}: that of this series was not measured apart; give a factor, latency=0.5x")
    amount, unit = _SECONDS.fullmatch(value).groups()  # type: ignore[union-attr]
    ratio = float(amount) * _UNITS_OF_TIME[unit] / model.latency_seconds
    return _with_cost(model, round_seconds=model.cost.round_seconds * ratio)


def _batch(model: StepModel, value: str) -> StepModel:
    """Change the batch of a device: what computes, and what it hides, in proportion."""
    parts = model.curve.last.parts
    if parts is None:
        raise WhatIfError(f"batch={value}: the steps of this series were not timed, so its batch is not known")
    factor = int(value) / parts.batch_per_device
    return replace(
        model,
        computation_seconds=model.computation_seconds * factor,
        input_seconds=model.input_seconds * factor,
        jitter_seconds=model.jitter_seconds * factor,
        hiding_seconds=model.hiding_seconds * factor,
        batch_factor=factor,
    )


def _gradients(model: StepModel, value: str) -> StepModel:
    """Halve the bytes of an all-reduce."""
    parts = model.curve.last.parts
    if model.cost.algorithm.name not in ALL_REDUCES:
        raise WhatIfError(f"gradients={value}: only an all-reduce has compressed gradients")
    if parts and parts.has_short_gradients:
        raise WhatIfError(f"gradients={value}: the gradients of this series have 16 bits already")
    half = None if model.exchanged_bytes is None else model.exchanged_bytes / 2
    cost = replace(
        model.cost, carried_seconds=model.cost.carried_seconds / 2, inside_seconds=model.cost.inside_seconds / 2
    )
    return replace(model, cost=cost, exchanged_bytes=half)


def _servers(model: StepModel, value: str) -> StepModel:
    """Change the number of parameter servers."""
    if not model.curve.has_servers:
        raise WhatIfError(f"servers={value}: this series has no parameter servers")
    return replace(model, servers=int(value))


def _algorithm(model: StepModel, value: str) -> StepModel:
    """Do the all-reduce by another algorithm, over links of the same latency and rate."""
    if model.cost.algorithm.name not in ALL_REDUCES:
        raise WhatIfError(f"algorithm={value}: the exchange of this series is no all-reduce")
    if value != RING and model.curve.unit == Unit.DEVICE:
        raise WhatIfError(f"algorithm={value}: it is for several nodes, and this series is over the devices of one")
    inside = model.inside.seconds if model.inside else None
    if value != RING and inside is None:
        raise WhatIfError(f"algorithm={value}: what it costs inside a node was not measured: measure nodes=1")
    cost = AlgorithmCost(
        ALGORITHMS[value],
        0.0 if value == RING or inside is None else inside,
        model.cost.round_seconds,
        model.cost.carried_seconds,
    )
    return replace(model, cost=cost)


def _overlap(model: StepModel, value: str) -> StepModel:
    """Hide a share of every exchange."""
    share = _NAMED_SHARES[value] if value in _NAMED_SHARES else float(value)
    return replace(model, hidden_share=share, hiding_seconds=math.inf)


def _input(model: StepModel, value: str) -> StepModel:
    """Let no step wait for its batch."""
    return replace(model, input_seconds=0.0)


_POSITIVE = r"[1-9]\d{0,6}"
#: Before a number with a decimal point: one of its digits is not 0.
_ABOVE_ZERO = r"(?=[\d.]*[1-9])"
_TIMES = r"\d+(?:\.\d+)?x"
CHANGES: Mapping[str, Change] = {
    "link": Change(
        rf"{_ABOVE_ZERO}(?:{_TIMES}|(?i:\d+(?:\.\d+)?\s*[KMGT]?bit/s))",
        "a rate above 0 such as 10Gbit/s, which an exchange gets of it, or a factor such as 2x",
        _link,
    ),
    "latency": Change(rf"{_TIMES}|{_SECONDS.pattern}", "a time such as 20us, or a factor such as 0.5x", _latency),
    "batch": Change(_POSITIVE, "the samples of a device in a step, such as 64", _batch),
    "gradients": Change("fp16", "fp16", _gradients),
    "servers": Change(_POSITIVE, "a number of parameter servers, such as 4", _servers),
    "algorithm": Change("|".join(ALL_REDUCES), ", ".join((*ALL_REDUCES[:-1], f"or {HIERARCHICAL}")), _algorithm),
    "overlap": Change(
        r"none|full|0(?:\.\d+)?|1(?:\.0+)?", "none, full, or the hidden share of an exchange, such as 0.8", _overlap
    ),
    "input": Change("none", "none, so that no step waits for its batch", _input),
}


def _with_cost(model: StepModel, **values: float) -> StepModel:
    return replace(model, cost=replace(model.cost, **values))  # type: ignore[arg-type]
