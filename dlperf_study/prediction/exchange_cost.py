"""What an exchange costs on any size, by its algorithm: rounds that each take a latency, and bytes over a link.

t = rounds × latency + carried bytes / bandwidth, with n devices on m nodes and k servers. Sources: Hockney, "The
communication challenge for MPP" (1994) for latency and bandwidth; Thakur, Rabenseifner and Gropp, "Optimization of
collective communication operations in MPICH" (2005) for rounds and bytes of collectives; Patarasuk and Yuan, "Bandwidth
optimal all-reduce algorithms for clusters of workstations" (2009) for the ring; Sanders, Speck and Träff, "Two-tree
algorithms for full bandwidth broadcast, reduction and scan" (2009) for the tree, as NCCL has it; Rajbhandari et al.,
"ZeRO: memory optimizations toward training trillion parameter models" (2020) for the three transfers of divided
parameters; Li et al., "Scaling distributed machine learning with the parameter server" (2014) for servers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dlperf_study.core.arrays import Floats

#: The least relative errors of a measured exchange, and of a latency that was fitted to exchanges of several sizes.
_EXCHANGE_ERROR, _LATENCY_ERROR = 0.01, 0.05


@dataclass(frozen=True)
class Size:
    """Among how many an exchange is: ranks on units (nodes, or the devices of one node), and servers."""

    ranks: int
    units: int
    servers: int = 0


@dataclass(frozen=True)
class Algorithm:
    """How an exchange is done.

    ``rounds``: how many transfers follow each other. ``carried``: how many bytes the slowest link carries for each byte
    that is exchanged. ``keeps_inside``: what happens inside a node is apart from these, as measured on one node.
    """

    name: str
    title: str
    rounds: Callable[[Size], float]
    carried: Callable[[Size], float]
    keeps_inside: bool = False


RING, TREE, HIERARCHICAL, SHARDED, SERVERS = "ring", "tree", "hierarchical", "sharded", "servers"
ALGORITHMS: Mapping[str, Algorithm] = {
    RING: Algorithm(RING, "a ring", lambda size: 2 * (size.ranks - 1), lambda size: 2 * (size.ranks - 1) / size.ranks),
    TREE: Algorithm(
        TREE, "a tree", lambda size: 2 * math.log2(size.units), lambda size: 2.0 if size.units > 1 else 0.0, True
    ),
    HIERARCHICAL: Algorithm(
        HIERARCHICAL,
        "hierarchical all-reduce",
        lambda size: 2 * (size.units - 1),
        lambda size: 2 * (size.units - 1) / size.units,
        True,
    ),
    # Gathered in forward and backward, and gradients scattered; bytes are those of all three.
    SHARDED: Algorithm(
        SHARDED,
        "transfers of divided parameters",
        lambda size: 3 * (size.ranks - 1),
        lambda size: (size.ranks - 1) / size.ranks,
    ),
    # Each server's link carries its part of the gradients of all ranks, and of their parameters; a rank's own link all
    # of its own.
    SERVERS: Algorithm(
        SERVERS, "pushes and pulls", lambda size: 2.0, lambda size: 2 * max(1.0, size.ranks / max(size.servers, 1))
    ),
}
#: Those among which an all-reduce may be chosen.
ALL_REDUCES = (RING, TREE, HIERARCHICAL)


@dataclass(frozen=True)
class MeasuredExchange:
    """An exchange alone on one size: all of a step, and the latency of a single one, where that was measured."""

    size: Size
    seconds: float
    latency_seconds: float | None = None


@dataclass(frozen=True)
class AlgorithmCost:
    """What the exchange of a step costs on any size.

    ``inside_seconds``: inside a node, where the algorithm has that apart. ``round_seconds``: of a round, all exchanges
    of a step together. ``carried_seconds``: for carrying all bytes once over a link. ``is_assumed``: the sizes do
    not say which algorithm it is.
    """

    algorithm: Algorithm
    inside_seconds: float
    round_seconds: float
    carried_seconds: float
    is_assumed: bool = False

    def seconds(self, size: Size) -> float:
        """Return the seconds of the exchange on a size."""
        of_rounds = self.round_seconds * self.algorithm.rounds(size)
        return self.inside_seconds + of_rounds + self.carried_seconds * self.algorithm.carried(size)


def fitted_algorithm_cost(
    name: str, crossing: Sequence[MeasuredExchange], inside: MeasuredExchange | None
) -> AlgorithmCost | None:
    """Return the cost by an algorithm, fitted to exchanges that crossed a link between units.

    Two sizes or more: least squares of relative errors, a round at least as long as in a single exchange of no bytes,
    where that was measured. One size: that latency, once a step, and the rest as bytes. None where neither is there,
    and where what happens inside a node is needed and was not measured.
    """
    algorithm = ALGORITHMS[name]
    if algorithm.keeps_inside and inside is None:
        return None
    kept = inside.seconds if algorithm.keeps_inside and inside else 0.0
    seconds = np.array([max(entry.seconds - kept, 0.0) for entry in crossing])
    terms = np.array([[algorithm.rounds(entry.size), algorithm.carried(entry.size)] for entry in crossing])
    if len(np.unique(terms, axis=0)) >= 2:
        weights = np.array([1 / entry.seconds for entry in crossing])
        least = _round_latency(algorithm, crossing, inside)
        above, carried = _least_squares(terms * weights[:, None], (seconds - least * terms[:, 0]) * weights)
        return AlgorithmCost(algorithm, kept, least + above, carried)
    if crossing[0].latency_seconds is None:
        return None
    rounds, carried = terms[0]
    of_rounds = min(_round_latency(algorithm, crossing, inside) * rounds, seconds[0])
    return AlgorithmCost(algorithm, kept, of_rounds / rounds, (seconds[0] - of_rounds) / carried)


def _round_latency(
    algorithm: Algorithm, crossing: Sequence[MeasuredExchange], inside: MeasuredExchange | None
) -> float:
    """Return the seconds of a round of a single exchange of no bytes, on average over sizes; 0 where not measured."""
    kept = (inside.latency_seconds if inside else None) or 0.0
    rounds = []
    for entry in crossing:
        if entry.latency_seconds is not None:
            latency = entry.latency_seconds - (kept if algorithm.keeps_inside else 0.0)
            rounds.append(latency / algorithm.rounds(entry.size))
    return max(0.0, float(np.mean(rounds))) if rounds else 0.0


def all_reduce_cost(crossing: Sequence[MeasuredExchange], inside: MeasuredExchange | None) -> AlgorithmCost | None:
    """Return the cost of an all-reduce by the algorithm that fits best; a ring where the sizes do not say which.

    They say it where exchanges and latencies of two sizes are more than the three unknowns: the latency of an exchange,
    how many there are in a step, and the bandwidth.
    """
    costs = {name: cost for name in ALL_REDUCES if (cost := fitted_algorithm_cost(name, crossing, inside)) is not None}
    if not costs:
        return None
    latencies = [entry for entry in crossing if entry.latency_seconds]
    if len(crossing) < 2 or len(latencies) < 2:
        return replace(costs[RING], is_assumed=True)
    return min(costs.values(), key=lambda cost: _misfit(cost, crossing, latencies, inside))


def _misfit(
    cost: AlgorithmCost,
    crossing: Sequence[MeasuredExchange],
    latencies: Sequence[MeasuredExchange],
    inside: MeasuredExchange | None,
) -> float:
    """Return the sum of squared relative deviations, in units of the least errors that such numbers have."""
    of_exchanges = [(cost.seconds(entry.size) / entry.seconds - 1) / _EXCHANGE_ERROR for entry in crossing]
    rounds = np.array([cost.algorithm.rounds(entry.size) for entry in latencies])
    measured = np.array([entry.latency_seconds or 0.0 for entry in latencies])
    kept = (inside.latency_seconds if inside and cost.algorithm.keeps_inside else None) or 0.0
    of_round = _round_latency(cost.algorithm, latencies, inside)
    of_latencies = ((kept + of_round * rounds) / measured - 1) / _LATENCY_ERROR
    return float(np.sum(np.square(of_exchanges)) + np.sum(np.square(of_latencies)))


def _least_squares(terms: Floats, values: Floats) -> tuple[float, float]:
    """Return the two factors, at least 0, with which ``terms`` [sizes, 2] are nearest to ``values`` [sizes]."""
    # Importing it takes a second.
    from scipy.optimize import nnls

    factors, _ = nnls(terms, values)
    return float(factors[0]), float(factors[1])
