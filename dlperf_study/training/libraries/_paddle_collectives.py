"""The collectives of a step in Paddle, as observed in its first one, and the same alone."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.study.communication import CollectiveKind
from dlperf_study.training.libraries._collectives import Collective

#: The methods of a process group that are counted: after the tensor each takes its root, and at last ``sync_op``.
_COUNTED: dict[str, CollectiveKind] = {"reduce": "reduce", "broadcast": "broadcast"}
_MOVE_NOTHING = ("size", "rank", "name")


class _ObservedGroup:
    """A process group that adds each of its collectives to a list, and does it."""

    def __init__(self, group: Any, collectives: list[Collective]) -> None:
        self._group, self._process_group, self._collectives = group, group.process_group, collectives

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._process_group, name)
        if name in _MOVE_NOTHING:
            return method
        if name not in _COUNTED:
            raise RunError(f"a step does {name} of Paddle's process groups, a collective whose bytes are not counted")

        def observed(tensor: Any, root: int, *details: Any) -> Any:
            size, ranks = (int(tensor.size), tensor.element_size()), tuple(self._group.ranks)
            call = Collective(_COUNTED[name], *size, tensor.dtype, self._group, ranks, ranks[root])
            self._collectives.append(replace(call, is_waited_for=bool(details[-1])))
            return method(tensor, root, *details)

        return observed


@contextmanager
def observed_collectives() -> Iterator[list[Collective]]:
    """Yield a list that gets every collective; raises RunError for unknown ones."""
    from paddle.distributed.communication.group import _GroupManager

    collectives: list[Collective] = []
    groups = [group for group in _GroupManager.group_map_by_id.values() if group._pg is not None]
    process_groups = [group._pg for group in groups]
    for group in groups:
        group._pg = _ObservedGroup(group, collectives)
    yield collectives
    for group, process_group in zip(groups, process_groups, strict=True):
        group._pg = process_group


def replayed(collectives: Sequence[Collective], device: Any) -> Callable[[], None]:
    """Return what repeats collectives on buffers of zeros."""
    calls = [_replayed(collective) for collective in collectives]

    def communicate() -> None:
        for task in [call() for call in calls]:
            if task is not None:
                task.wait()

    return communicate


def _replayed(collective: Collective) -> Callable[[], Any]:
    """Return what repeats a collective, and returns its task."""
    import paddle
    import paddle.distributed as dist

    buffer = paddle.zeros([collective.elements], collective.number_format)
    repeat = dist.reduce if collective.kind == "reduce" else dist.broadcast
    return partial(repeat, buffer, collective.root, group=collective.group, sync_op=collective.is_waited_for)
