"""The collectives of a step in PyTorch, as they are observed in its first one, and the same ones alone."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from dlperf_study.study.exchange import CollectiveKind


@dataclass(frozen=True)
class Collective:
    """One call: ``elements`` of a number format, as nccl-tests counts its size, among the ranks of a group.

    That is the buffer of an all-reduce or a broadcast, what an all-gather gathers, and what a reduce-scatter reduces.
    """

    kind: CollectiveKind
    elements: int
    element_bytes: int
    number_format: Any
    group: Any
    source: int = 0

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.elements * self.element_bytes


class _Operator(NamedTuple):
    """Which arguments of an operator of ``torch.ops.c10d`` are its tensor and its group; ``source`` is its root."""

    kind: CollectiveKind
    tensor: int
    group: int
    source: int | None = None


_OPERATORS = {
    "c10d::allreduce_": _Operator("all_reduce", 0, 1),
    "c10d::broadcast_": _Operator("broadcast", 0, 1, 2),
    "c10d::_allgather_base_": _Operator("all_gather", 0, 2),
    "c10d::_reduce_scatter_base_": _Operator("reduce_scatter", 1, 2),
}


@contextmanager
def observed_collectives() -> Iterator[list[Collective]]:
    """Yield a list that gets every collective of this process, in order, also those of the backward pass."""
    from torch.distributed.tensor import DTensor
    from torch.utils._python_dispatch import TorchDispatchMode

    collectives: list[Collective] = []

    class Observer(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if operator := _OPERATORS.get(function._schema.name):
                collectives.append(_observed(operator, args))
            if any(kind is DTensor for kind in types):
                return NotImplemented
            return function(*args, **(kwargs or {}))

    with Observer():
        yield collectives


def _observed(operator: _Operator, arguments: Sequence[Any]) -> Collective:
    from torch.distributed import ProcessGroup

    tensor = arguments[operator.tensor]
    tensor = tensor[0] if isinstance(tensor, list) else tensor
    group = ProcessGroup.unbox(arguments[operator.group])
    source = 0 if operator.source is None else int(arguments[operator.source])
    return Collective(operator.kind, tensor.numel(), tensor.element_size(), tensor.dtype, group, source)


def described(collectives: Sequence[Collective]) -> list[dict[str, Any]]:
    """Return what the rank log says of them: calls and bytes of each kind and size of group."""
    calls: Counter[tuple[str, int]] = Counter()
    sizes: Counter[tuple[str, int]] = Counter()
    for collective in collectives:
        key = collective.kind, collective.group.size()
        calls[key] += 1
        sizes[key] += collective.bytes
    return [
        {"kind": kind, "ranks": ranks, "calls": calls[kind, ranks], "bytes": sizes[kind, ranks]}
        for kind, ranks in calls
    ]


def replayed(collectives: Sequence[Collective], device: Any) -> Callable[[], None]:
    """Return what does the collectives again, one after the other, on buffers of zeros."""
    calls = [_replayed(collective, device) for collective in collectives]

    def exchange() -> None:
        for call in calls:
            call()

    return exchange


def _replayed(collective: Collective, device: Any) -> Callable[[], Any]:
    import torch
    import torch.distributed as dist

    group, ranks = collective.group, collective.group.size()
    buffer = torch.zeros(collective.elements, dtype=collective.number_format, device=device)
    part = buffer[: collective.elements // ranks].clone()
    calls: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: dist.all_reduce(buffer, group=group),
        "broadcast": lambda: dist.broadcast(buffer, group=group, group_src=collective.source),
        "all_gather": lambda: dist.all_gather_into_tensor(buffer, part, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, buffer, group=group),
    }
    return calls[collective.kind]
