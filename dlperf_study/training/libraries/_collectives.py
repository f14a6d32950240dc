"""The collectives of a step: observed in its first one, described, and done alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dlperf_study.records.lines import CollectiveLine
from dlperf_study.study.communication import CollectiveKind
from dlperf_study.study.layout import Layout


@dataclass(frozen=True)
class Collective:
    """One call: ``elements`` of a number format, as nccl-tests counts its size, among the ``ranks`` of a group.

    That is the buffer of an all-reduce, a reduction or a broadcast, what an all-gather gathers, what a reduce-scatter
    reduces, and what is sent. ``root`` reduces or broadcasts, or a tensor is sent to it, or received from it if it
    ``is_received``. ``is_waited_for``: the call returns when it is done; without that, the step waits at its end.
    ``number_format``, ``group`` and ``root`` are those of the library.
    """

    kind: CollectiveKind
    elements: int
    element_bytes: int
    number_format: Any
    group: Any
    ranks: tuple[int, ...]
    root: int = 0
    is_received: bool = False
    is_waited_for: bool = True

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.elements * self.element_bytes

    def group_name(self, layout: Layout) -> str:
        """Return the dimensions along which its ranks differ."""
        return "_".join(layout.dimensions(self.ranks))


class StepCollectives:
    """What one rank communicates in a step; ``library`` is the module that observes and repeats it."""

    def __init__(self, layout: Layout, library: Any, device: Any) -> None:
        self._layout, self._library, self._device = layout, library, device
        self.calls: list[Collective] = []

    @contextmanager
    def observed(self) -> Iterator[None]:
        with self._library.observed_collectives() as self.calls:
            yield

    def lines(self) -> list[CollectiveLine]:
        """Return calls and bytes of each kind and group."""
        # Of what is sent from rank to rank a rank counts what it sends.
        parts: dict[tuple[CollectiveKind, str], list[Collective]] = {}
        for call in self.calls:
            if not call.is_received:
                parts.setdefault((call.kind, call.group_name(self._layout)), []).append(call)
        lines = []
        for (kind, group), part in parts.items():
            size = sum(call.bytes for call in part)
            lines.append(CollectiveLine(kind=kind, group=group, ranks=len(part[0].ranks), calls=len(part), bytes=size))
        return lines

    def alone(self, kind: CollectiveKind | None = None, group: str | None = None) -> Callable[[], None]:
        """Return what does those of one kind or group alone."""
        calls = []
        for call in self.calls:
            if kind in (None, call.kind) and group in (None, call.group_name(self._layout)):
                calls.append(call)
        communicate: Callable[[], None] = self._library.replayed(calls, self._device)
        return communicate
