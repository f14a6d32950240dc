"""How a rank times its steps without waiting for its device."""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol


class Stopwatch(Protocol):
    """Marks times without waiting for the device, and reads them afterwards."""

    def mark(self) -> None:
        """Mark the current position in the device's stream of work."""

    def seconds(self) -> list[float]:
        """Return the seconds between successive marks; waits until the work is done."""


class HostStopwatch:
    """A stopwatch for devices that finish an operation before they return: the CPU."""

    def __init__(self) -> None:
        self._marks: list[int] = []

    def mark(self) -> None:
        """Read the monotonic clock."""
        self._marks.append(time.perf_counter_ns())

    def seconds(self) -> list[float]:
        """Return the seconds between successive marks."""
        return [(end - start) / 1e9 for start, end in pairwise(self._marks)]


class EventStopwatch:
    """A stopwatch for GPUs: events in the stream of the device, so that timing a step costs no synchronisation.

    ``new_event`` makes a library's event that records time.
    """

    def __init__(self, new_event: Callable[[], Any]) -> None:
        self._new_event = new_event
        self._events: list[Any] = []

    def mark(self) -> None:
        """Record an event after the work queued so far."""
        event = self._new_event()
        event.record()
        self._events.append(event)

    def seconds(self) -> list[float]:
        """Wait for the last event, then return the seconds between successive events."""
        self._events[-1].synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in pairwise(self._events)]
