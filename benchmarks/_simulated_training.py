"""Training of which everything is known: steps of devices as events of simpy, with jitter, on as many as are wanted.

Each device is a process that computes, hands its gradients to a collective and waits for it. What a collective takes
from there on follows from when its devices are ready (``_collectives.py``).
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from benchmarks._collectives import Network, between_nodes, hierarchical_all_reduce, ring_all_reduce, ring_gather
from dlperf_study.core.arrays import Floats

Process = Generator[Any, Any, None]
#: How many servers there are.
SERVERS = 16
#: From when each device is ready to when each is done; [devices].
Transfer = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Work:
    """A step of one device: seconds of computation, a third of them forward, and bytes of gradients in ``parts``.

    ``micro_batches``: of a pipeline; 0: nothing but the exchange of its gradients. ``deviation``: of the logarithm of
    each computation, independent in each step of each device.
    """

    seconds: float = 0.16
    gradient_bytes: float = 100e6
    parts: int = 4
    deviation: float = 0.02
    forward_share: float = 1 / 3
    micro_batches: int = 16


class Collectives:
    """The collectives of a group of devices, one after another: each device takes part in all, in the same order."""

    def __init__(self, environment: simpy.Environment, devices: int, transfer: Transfer) -> None:
        self._environment, self._devices, self._transfer = environment, devices, transfer
        self._joined = [0] * devices
        self._waiting: dict[int, tuple[Floats, list[simpy.Event], list[int]]] = {}
        self._done = np.zeros(devices)

    def join(self, device: int) -> simpy.Event:
        """Take part in the next collective from now on; the value of the event is when the device is done."""
        number = self._joined[device]
        self._joined[device] += 1
        ready, events, members = self._waiting.setdefault(number, (np.zeros(self._devices), [], []))
        event = self._environment.event()
        ready[device] = self._environment.now
        events.append(event)
        members.append(device)
        if len(events) == self._devices:
            del self._waiting[number]
            # The links of a device are busy with its collective before.
            self._done = self._transfer(np.maximum(ready, self._done))
            for member, waiting in zip(members, events, strict=True):
                waiting.succeed(self._done[member])
        return event


def until(environment: simpy.Environment, moment: float) -> Any:
    """Return what a process waits for to go on at a moment, or at once if that is over."""
    return environment.timeout(max(0.0, moment - environment.now))


@dataclass
class Training:
    """One run: so many steps on so many nodes. ``ends``: when each device ended each step; [steps, devices]."""

    network: Network
    work: Work
    nodes: int
    steps: int
    generator: np.random.Generator
    environment: simpy.Environment = field(default_factory=simpy.Environment)
    ends: Floats = field(init=False)
    paces: Floats = field(init=False)

    def __post_init__(self) -> None:
        shape = (self.steps, self.devices)
        self.ends = np.zeros(shape)
        self.paces = np.exp(self.generator.normal(0.0, self.work.deviation, shape))

    @property
    def devices(self) -> int:
        """The number of devices."""
        return self.nodes * self.network.devices_per_node

    def step_seconds(self, warm_up: int) -> float:
        """Return the mean time of a step of the slowest device, without the first steps."""
        return float(np.max(self.ends[-1] - self.ends[warm_up - 1])) / (self.steps - warm_up)


def data_parallel(run: Training, all_reduce: Any) -> None:
    """Train with an all-reduce of each part of the gradients, which begins while the backward pass goes on."""
    work, environment = run.work, run.environment
    size = work.gradient_bytes / work.parts
    collectives = Collectives(
        environment, run.devices, lambda ready: all_reduce(run.network, ready, size, run.generator)
    )

    def device(number: int) -> Process:
        for step in range(run.steps):
            seconds = work.seconds * run.paces[step, number]
            yield environment.timeout(seconds * work.forward_share)
            for _ in range(work.parts):
                yield environment.timeout(seconds * (1 - work.forward_share) / work.parts)
                exchange = collectives.join(number)
            done = yield exchange
            yield until(environment, done)
            run.ends[step, number] = environment.now

    _run(run, device)


def sharded(run: Training, blocks: int = 8) -> None:
    """Train with parameters divided among all devices: each block is gathered twice, its gradients scattered once.

    The next block is gathered while a block computes.
    """
    work, environment = run.work, run.environment
    size = work.gradient_bytes / blocks
    collectives = Collectives(
        environment, run.devices, lambda ready: ring_gather(run.network, ready, size, run.generator)
    )

    def device(number: int) -> Process:
        for step in range(run.steps):
            seconds = work.seconds * run.paces[step, number] / blocks
            gathered = collectives.join(number)
            for block in range(2 * blocks):
                done = yield gathered
                yield until(environment, done)
                if block + 1 < 2 * blocks:
                    gathered = collectives.join(number)
                is_forward = block < blocks
                yield environment.timeout(seconds * (work.forward_share if is_forward else 1 - work.forward_share))
                if not is_forward:
                    scattered = collectives.join(number)
            done = yield scattered
            yield until(environment, done)
            run.ends[step, number] = environment.now

    _run(run, device)


def pipeline(run: Training) -> None:
    """Train with a stage on each device of a node, and an all-reduce of each stage's gradients over the nodes."""
    work, environment, stages = run.work, run.environment, run.network.devices_per_node
    size = work.gradient_bytes / stages

    def over_nodes(ready: Floats) -> Floats:
        return between_nodes(run.network, ready[:, None], size, run.generator)[:, 0]

    collectives = [Collectives(environment, run.nodes, over_nodes) for _ in range(stages)]
    micro_batches = max(work.micro_batches, 1)
    activations = run.network.inside.seconds(work.gradient_bytes / 100 / micro_batches)
    inboxes = [(simpy.Store(environment), simpy.Store(environment)) for _ in range(run.devices)]

    def device(number: int) -> Process:
        node, stage = divmod(number, stages)
        passes = ((0, 1, work.forward_share), (1, -1, 1 - work.forward_share))
        for step in range(run.steps):
            # As much work for each device as without a pipeline.
            seconds = work.seconds * run.paces[step, number] / micro_batches
            for inbox, direction, share in passes:
                is_first = stage == (0 if direction > 0 else stages - 1)
                is_last = stage == (stages - 1 if direction > 0 else 0)
                for _ in range(work.micro_batches):
                    if not is_first:
                        arrival = yield inboxes[number][inbox].get()
                        yield until(environment, arrival)
                    yield environment.timeout(seconds * share)
                    if not is_last:
                        inboxes[number + direction][inbox].put(environment.now + activations)
            done = yield collectives[stage].join(node)
            yield until(environment, done)
            run.ends[step, number] = environment.now

    _run(run, device)


def servers(run: Training, count: int, synchronous: bool) -> None:
    """Train with gradients pushed to servers and parameters pulled from them, each server over one link.

    A device talks to one server after another, each beginning with another one. ``synchronous``: nobody pulls before
    all have pushed.
    """
    work, environment, link = run.work, run.environment, run.network.between
    incoming = [simpy.Resource(environment) for _ in range(count)]
    outgoing = [simpy.Resource(environment) for _ in range(count)]
    seconds = link.seconds(work.gradient_bytes / count)
    pushed = Collectives(environment, run.devices, lambda ready: np.full_like(ready, ready.max()))

    def transfer(links: list[simpy.Resource], number: int) -> Process:
        for offset in range(count):
            with links[(number + offset) % count].request() as turn:
                yield turn
                yield environment.timeout(seconds * (1 + link.jitter * run.generator.exponential()))

    def device(number: int) -> Process:
        for step in range(run.steps):
            yield environment.timeout(work.seconds * run.paces[step, number])
            yield from transfer(incoming, number)
            if synchronous:
                done = yield pushed.join(number)
                yield until(environment, done)
            yield from transfer(outgoing, number)
            run.ends[step, number] = environment.now

    _run(run, device)


def _run(run: Training, device: Callable[[int], Process]) -> None:
    for number in range(run.devices):
        run.environment.process(device(number))
    run.environment.run()


LAYOUTS: dict[str, Callable[[Training], None]] = {
    "ring": lambda run: data_parallel(run, ring_all_reduce),
    "hierarchical": lambda run: data_parallel(run, hierarchical_all_reduce),
    "sharded": sharded,
    "pipeline": pipeline,
    "servers": lambda run: servers(run, SERVERS, synchronous=True),
    "asynchronous servers": lambda run: servers(run, SERVERS, synchronous=False),
}
