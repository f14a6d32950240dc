"""A step from its causes: step = computation + input wait + waiting for jitter + max(0, exchange − overlap).

Everything is measured on the sizes of a curve: computation, input wait and jitter on the largest one, what the exchange
costs by its rounds and bytes (``exchange_cost.py``), and the overlap as the share of it for which the largest size does
not wait. On more ranks the exchange grows by its formula, the overlap with it until it is as long as what can hide it,
and jitter as the expected largest of so many normal values: Blom, "Statistical estimates and transformed
beta-variables" (1958). What can hide it is the backward pass, two thirds of the computation; all of it where parameters
are gathered in the forward pass too, and where ranks do not wait for each other: the bounds of a closed queue, Denning
and Buzen, "The operational analysis of queueing network models" (1978). Where measurements do not identify a term,
there is no model but the reason.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from dlperf_study.core.wording import counted
from dlperf_study.prediction.curves import WEAK, Curve, CurvePoint, Unit
from dlperf_study.prediction.exchange_cost import (
    SERVERS,
    SHARDED,
    AlgorithmCost,
    MeasuredExchange,
    Size,
    all_reduce_cost,
    fitted_algorithm_cost,
)

#: Sizes, in ranks per server, from which rates alone tell computation from servers, with one to spare.
_SERVER_SIZES = 3
#: By how much the exchange inside one node must be shorter, so that a step there counts as one without exchange.
_SHORTER_INSIDE = 0.5
#: How much of a computation is its backward pass: it costs twice a forward pass, in operations.
_BACKWARD_SHARE = 2 / 3
#: By how much a measured exchange is changed to find out how a prediction follows it.
_SMALL = 1e-3


@dataclass(frozen=True)
class StepModel:
    """What a step of a curve takes on any size; seconds, of a step, or per sample where only rates are known.

    ``hidden_share``: of the exchange that the computation hides; below 0 where a step waits longer than the exchange
    takes. ``hiding_seconds``: the most that it can hide. ``inside``: the exchange inside one node, None where it was
    not measured. ``latency_seconds``: of a transfer, None where it was not measured. ``exchanged_bytes``: of a rank in
    a step, None where only rates are known. ``servers``: their number, None for that of the curve. ``batch_factor``:
    samples of a step / those of the curve.
    """

    curve: Curve
    cost: AlgorithmCost
    computation_seconds: float
    input_seconds: float
    jitter_seconds: float
    hidden_share: float = 0.0
    hiding_seconds: float = math.inf
    inside: MeasuredExchange | None = None
    latency_seconds: float | None = None
    exchanged_bytes: float | None = None
    servers: int | None = None
    batch_factor: float = 1.0

    def seconds(self, units: int) -> float:
        """Return the seconds of a step on so many units."""
        computed = self.computation_seconds + self.input_seconds + self.jitter(units)
        return computed + self.exchange_seconds(units) - self.hidden_seconds(units)

    def exchange_seconds(self, units: int) -> float:
        """Return what the exchange takes alone on so many units."""
        return self.cost.seconds(self.size(units))

    def hidden_seconds(self, units: int) -> float:
        """Return how much of the exchange a step does not wait for on so many units."""
        return min(self.hidden_share * self.exchange_seconds(units), self.hiding_seconds)

    def rate(self, units: int) -> float:
        """Return the rate on so many units, relative to what the largest size was measured to have."""
        last = self.curve.last
        growth = units / last.units * self.batch_factor
        return last.rate * growth * step_seconds(last, self.curve) / self.seconds(units)

    @property
    def link_bandwidth(self) -> float | None:
        """The bytes/s that an exchange gets of a link between units; None where its bytes are not known."""
        carried = self.cost.carried_seconds
        return self.exchanged_bytes / carried if self.exchanged_bytes and carried else None

    def size(self, units: int) -> Size:
        """Return among how many the exchange is on so many units."""
        return size_of(self.curve, units, self.servers)

    def jitter(self, units: int) -> float:
        """Return the waiting for jitter on so many units."""
        last = self.size(self.curve.last.units).ranks
        if last < 2:
            return 0.0
        return self.jitter_seconds * expected_largest(self.size(units).ranks) / expected_largest(last)


def expected_largest(count: int) -> float:
    """Return the expected largest of so many independent normal values, in standard deviations (Blom 1958)."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


def step_seconds(point: CurvePoint, curve: Curve) -> float:
    """Return the seconds of a step of a measured size; per sample where a step was not timed."""
    return point.parts.step_seconds if point.parts else curve.seconds(point)


def size_of(curve: Curve, units: int, servers: int | None = None) -> Size:
    """Return among how many an exchange is on so many units of a curve: servers as given, or as they grew so far."""
    last = curve.last
    ranks = last.parts.ranks if last.parts else last.devices
    if servers is None:
        grows = len({point.servers / point.units for point in curve.points}) == 1 and len(curve.points) > 1
        servers = last.servers * units // last.units if grows else last.servers
    return Size(ranks * units // last.units, units, servers)


def model_of(curve: Curve) -> StepModel | str:
    """Return the model of a curve, or why measurements do not identify it, with the point to measure."""
    if curve.scaling != WEAK:
        return "the global batch is fixed, so how much of an exchange is hidden changes with the size"
    parts = [point.parts for point in curve.points if point.parts and point.parts.exchange_seconds]
    if curve.has_servers and not parts:
        return _of_server_rates(curve)
    if not parts:
        remedy = ": measure it with exchange_steps above 0" if curve.last.parts else ""
        return f"its exchange was not measured alone, so its latency and bandwidth are not known{remedy}"
    crossing, inside = _exchanges(curve)
    if not crossing:
        return f"no exchange was measured alone across a link: {_next_point(curve)}"
    cost = _cost(curve, crossing, inside)
    if cost is None:
        return f"an exchange alone on one size can't tell latency from bandwidth: {_next_point(curve)}"
    return _with_computation(curve, cost, crossing, inside)


def rate_error(curve: Curve, units: int) -> float | None:
    """Return the standard error of the logarithm of a predicted rate, by the exchanges alone that it follows.

    None where one of them has no error, as of fewer than three runs.
    """
    model = model_of(curve)
    if isinstance(model, str) or not any(point.parts for point in curve.points):
        return None
    variance, rate = 0.0, model.rate(units)
    for position, point in enumerate(curve.points):
        if point.parts is None or not point.parts.exchange_seconds:
            continue
        if point.parts.exchange_error is None:
            return None
        longer = replace(point.parts, exchange_seconds=point.parts.exchange_seconds * (1 + _SMALL))
        points = list(curve.points)
        points[position] = replace(point, parts=longer)
        changed = model_of(replace(curve, points=tuple(points)))
        if isinstance(changed, str):
            return None
        variance += (math.log(changed.rate(units) / rate) / _SMALL * point.parts.exchange_error) ** 2
    return math.sqrt(variance)


def _exchanges(curve: Curve) -> tuple[list[MeasuredExchange], MeasuredExchange | None]:
    """Return the exchanges alone that crossed a link between units, and the one inside a single unit."""
    crossing: list[MeasuredExchange] = []
    inside = None
    for point in curve.points:
        parts = point.parts
        if parts is None or not parts.exchange_seconds:
            continue
        size = Size(parts.ranks, point.units, parts.servers)
        exchange = MeasuredExchange(size, parts.exchange_seconds, parts.latency_seconds)
        if point.units > 1 or curve.has_servers:
            crossing.append(exchange)
        elif curve.unit == Unit.NODE:
            inside = exchange
    if inside is None and curve.unit == Unit.NODE and curve.devices_per_unit == 1:
        # A node with one device has nothing to exchange inside.
        inside = MeasuredExchange(Size(1, 1), 0.0)
    return crossing, inside


def _cost(curve: Curve, crossing: Sequence[MeasuredExchange], inside: MeasuredExchange | None) -> AlgorithmCost | None:
    if curve.has_servers:
        return fitted_algorithm_cost(SERVERS, crossing, inside)
    if any(point.parts and point.parts.gathers for point in curve.points):
        return fitted_algorithm_cost(SHARDED, crossing, inside)
    return all_reduce_cost(crossing, inside)


def _with_computation(
    curve: Curve, cost: AlgorithmCost, crossing: Sequence[MeasuredExchange], inside: MeasuredExchange | None
) -> StepModel | str:
    """Return the model with what a step is besides its exchange: measured, or that of a size that exchanges little."""
    last, first = curve.last.parts, curve.points[0].parts
    if last is None or first is None:
        return "the parts of a step were not measured on the smallest and the largest size"
    model = StepModel(curve, cost, 0.0, last.input_seconds, last.jitter_seconds, inside=inside)
    exchange = cost.seconds(model.size(curve.last.units))
    exposed = last.exposed_seconds
    if exposed is None:
        is_short = (first.exchange_seconds or 0.0) < _SHORTER_INSIDE * exchange
        if not is_short or len(curve.points) < 2:
            return (
                "its computation was not measured alone, and no size exchanges so little that its step is computation"
            )
        exposed = last.step_seconds - first.step_seconds
        model = replace(model, input_seconds=0.0, jitter_seconds=0.0)
    computation = last.step_seconds - exposed - model.input_seconds - model.jitter_seconds
    hidden, hiding = exchange - max(0.0, exposed), computation * _hiding_share(curve)
    return replace(
        model,
        computation_seconds=computation + min(0.0, exposed),
        # Where all that can hide it does, the share of a shorter exchange is not known: all of it.
        hidden_share=hidden / exchange if hidden < hiding else 1.0,
        hiding_seconds=max(hidden, hiding),
        latency_seconds=_transfer_latency(cost, crossing[-1]),
        exchanged_bytes=last.exchanged_bytes,
    )


def _hiding_share(curve: Curve) -> float:
    """Return which share of the computation can hide an exchange."""
    measured = [point.parts for point in curve.points if point.parts]
    hides_all = any(parts.gathers or parts.is_asynchronous for parts in measured)
    return 1.0 if hides_all else _BACKWARD_SHARE


def _transfer_latency(cost: AlgorithmCost, exchange: MeasuredExchange) -> float | None:
    """Return the seconds of a round of an exchange of no bytes; None where they were not measured."""
    latency = exchange.latency_seconds
    return None if latency is None else latency / cost.algorithm.rounds(exchange.size)


def _of_server_rates(curve: Curve) -> StepModel | str:
    """Return the model of parameter servers from rates alone: a step grows with the ranks per server."""
    crossing = [
        MeasuredExchange(Size(point.devices, point.units, point.servers), curve.seconds(point))
        for point in curve.points
        if point.servers
    ]
    loads = {entry.size.ranks / entry.size.servers for entry in crossing}
    if len(loads) < _SERVER_SIZES:
        return (
            f"from rates alone parameter servers need {_SERVER_SIZES} sizes with different numbers of trainers per "
            f"server, and {counted(len(loads), 'size')} of this series {'has' if len(loads) == 1 else 'have'} that: "
            f"{_next_point(curve)}"
        )
    cost = fitted_algorithm_cost(SERVERS, crossing, None)
    if cost is None:
        return "its sizes do not tell servers from computation"
    # What does not grow is computation.
    constant = cost.round_seconds * cost.algorithm.rounds(crossing[0].size)
    return StepModel(curve, replace(cost, round_seconds=0.0), constant, 0.0, 0.0)


def _next_point(curve: Curve) -> str:
    """Return the point to measure next: twice the largest size, with the exchange alone."""
    last = curve.last
    if curve.has_servers:
        servers = f" with servers={last.servers}" if last.servers else ""
        return f"measure {2 * last.devices} trainers{servers}"
    size = 2 * last.units if len(curve.points) > 1 or last.units > 1 else 2
    if curve.unit == Unit.NODE:
        return f"measure nodes={size} with devices_per_node={curve.devices_per_unit} and exchange_steps above 0"
    return f"measure devices_per_node={size} with exchange_steps above 0"
