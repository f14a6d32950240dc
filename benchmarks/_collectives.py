"""What collectives take over links of known latency and rate: for each device when it begins and when it is done.

A collective of n devices on a ring is a number of rounds. In each one a device sends a chunk to the next device, as
soon as it has received the one of the round before and its link is free: Patarasuk and Yuan, "Bandwidth optimal
all-reduce algorithms for clusters of workstations" (2009). What follows which event is fixed, so events need no queue:
a round of all devices is one step of a recursion over arrays. ``ring_by_events`` has the same as events of simpy, a
transfer each, and a test says that both are equal.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy

from dlperf_study.core.arrays import Floats


@dataclass(frozen=True)
class Link:
    """A transfer takes ``latency_seconds`` and its bytes / rate, times 1 + jitter: exponential, with this mean."""

    latency_seconds: float
    bytes_per_second: float
    jitter: float = 0.0

    def seconds(self, size: float) -> float:
        """Return the seconds of a transfer of ``size`` bytes without jitter."""
        return self.latency_seconds + size / self.bytes_per_second

    def sharing(self, flows: int) -> "Link":
        """Return what each of several flows has of the link."""
        return Link(self.latency_seconds, self.bytes_per_second / flows, self.jitter)


@dataclass(frozen=True)
class Network:
    """Nodes of equally many devices: each device has a link inside its node, each node one to the other nodes."""

    devices_per_node: int
    inside: Link
    between: Link

    def ring_seconds(self, nodes: int, size: float) -> tuple[Floats, Floats]:
        """Return the seconds of a transfer from each device to the next on a ring of all, and its jitter; [devices]."""
        devices = nodes * self.devices_per_node
        leaves = np.arange(1, devices + 1) % self.devices_per_node == 0 if nodes > 1 else np.zeros(devices, bool)
        seconds = np.where(leaves, self.between.seconds(size), self.inside.seconds(size))
        return seconds, np.where(leaves, self.between.jitter, self.inside.jitter)


def ring(ready: Floats, seconds: Floats, jitter: Floats, rounds: int, generator: np.random.Generator) -> Floats:
    """Return when each device is done, [devices, rings]: rings are along the first axis, and don't meet.

    ``ready``: when each device begins, [devices, rings]. ``seconds``, ``jitter``: of its transfers to the next device,
    [devices]. A ring of one device does nothing.
    """
    if ready.shape[0] == 1:
        return ready
    received, is_free = ready, ready
    noisy = np.flatnonzero(jitter)
    for _ in range(rounds):
        taken = np.repeat(seconds[:, None], ready.shape[1], axis=1)
        if noisy.size:
            extra = generator.exponential(size=(noisy.size, ready.shape[1]))
            taken[noisy] *= 1 + jitter[noisy, None] * extra
        is_free = np.maximum(received, is_free) + taken
        received = np.roll(is_free, 1, axis=0)
    return np.maximum(received, is_free)


def ring_by_events(ready: Floats, seconds: Floats, rounds: int) -> Floats:
    """Return the same of one ring without jitter, [devices], by an event for each transfer."""
    environment = simpy.Environment()
    inboxes = [simpy.Store(environment) for _ in ready]
    done = np.zeros_like(ready)

    def device(number: int) -> Generator[Any, Any, None]:
        yield environment.timeout(ready[number])
        for round_ in range(rounds):
            yield environment.timeout(seconds[number])
            inboxes[(number + 1) % len(ready)].put(round_)
            yield inboxes[number].get()
        done[number] = environment.now

    for number in range(len(ready)):
        environment.process(device(number))
    environment.run()
    return done


def ring_all_reduce(network: Network, ready: Floats, size: float, generator: np.random.Generator) -> Floats:
    """Return when each device has the sum of ``size`` bytes of all, by one ring of all devices; [devices]."""
    seconds, jitter = network.ring_seconds(ready.size // network.devices_per_node, size / ready.size)
    return ring(ready[:, None], seconds, jitter, 2 * (ready.size - 1), generator)[:, 0]


def ring_gather(network: Network, ready: Floats, size: float, generator: np.random.Generator) -> Floats:
    """Return when each device has all parts of ``size`` bytes, or the sum of its part; [devices].

    An all-gather and a reduce-scatter take as long: each is half of an all-reduce.
    """
    seconds, jitter = network.ring_seconds(ready.size // network.devices_per_node, size / ready.size)
    return ring(ready[:, None], seconds, jitter, ready.size - 1, generator)[:, 0]


def hierarchical_all_reduce(network: Network, ready: Floats, size: float, generator: np.random.Generator) -> Floats:
    """Return when each device has the sum of ``size`` bytes of all; [devices].

    A reduce-scatter inside each node, an all-reduce among the devices of each number of all nodes, which share the
    links of their nodes, and an all-gather inside each node.
    """
    count = network.devices_per_node
    of_nodes = ready.reshape(-1, count)
    of_nodes = _inside(network, of_nodes, size, generator)
    of_nodes = between_nodes(network, of_nodes, size / count, generator)
    return _inside(network, of_nodes, size, generator).reshape(-1)


def between_nodes(network: Network, ready: Floats, size: float, generator: np.random.Generator) -> Floats:
    """Return when each device has the sum of ``size`` bytes of those of its number on all nodes; [nodes, devices].

    All devices of a node share its link, also where those of some numbers are looked at alone.
    """
    nodes = ready.shape[0]
    link = network.between.sharing(network.devices_per_node)
    seconds = np.full(nodes, link.seconds(size / nodes))
    return ring(ready, seconds, np.full(nodes, link.jitter), 2 * (nodes - 1), generator)


def _inside(network: Network, ready: Floats, size: float, generator: np.random.Generator) -> Floats:
    """Return when each device has its part of ``size`` bytes, or all parts, inside its node; [nodes, devices]."""
    count = network.devices_per_node
    seconds = np.full(count, network.inside.seconds(size / count))
    jitter = np.full(count, network.inside.jitter)
    return ring(ready.T, seconds, jitter, count - 1, generator).T
