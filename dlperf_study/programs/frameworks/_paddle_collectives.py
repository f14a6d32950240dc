"""The collectives of a step in Paddle, as observed in its first one, the same alone, and what GPUs alone divide."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.evidence.lines import CollectiveLine
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import CollectiveKind
from dlperf_study.study.layout import Layout
from dlperf_study.study.parallel_parameters import SHARDED_PARAMETERS


@dataclass(frozen=True)
class _OnGpusOnly:
    """What ``fleet`` of Paddle 3.0 divides on GPUs only.

    ``parameter``: of a configuration, which asks for it from the value ``least`` on. ``divided``: what it divides.
    ``message``: what Paddle says to it on CPUs. ``instead``: what divides the same there, as a clause.
    """

    parameter: str
    least: int
    divided: str
    message: str
    instead: str


_ON_GPUS_ONLY = (
    _OnGpusOnly(
        "tensor_parallel",
        2,
        "matrices",
        "Only support xpu, gpu and custom_device now, but this is cpu",
        "torch_tensor divides them",
    ),
    _OnGpusOnly(
        "pipeline_parallel", 2, "layers", "ProcessGroupGLOO does not support send", "torch_pipeline divides them"
    ),
    _OnGpusOnly(
        "zero_stage",
        SHARDED_PARAMETERS,
        "gradients and parameters",
        "group_sharded_parallel only support gpu, xpu and custom_device now",
        "torch_zero divides them",
    ),
)
#: The parameters of which ``parallel_obstacles`` has the reasons.
REFUSED_BY_NAME = tuple(entry.parameter for entry in _ON_GPUS_ONLY)


def parallel_obstacles(configuration: Configuration, device: str) -> Iterator[str]:
    """Yield what can't be divided with Paddle as configured, why, and what divides it instead."""
    for entry in _ON_GPUS_ONLY:
        value = getattr(configuration, entry.parameter)
        if value < entry.least:
            continue
        setting, instead = f"{entry.parameter} {value}", entry.instead
        if device == "gpu":
            yield f"{setting} is not built for Paddle, whose fleet divides {entry.divided} on GPUs alone; {instead}"
        else:
            yield f"{setting}: Paddle 3.0 divides {entry.divided} on GPUs only ({entry.message!r}); {instead} here"


@dataclass(frozen=True)
class Collective:
    """One call: a tensor of ``elements`` of a number format, reduced to or broadcast by ``root``, a rank of the job.

    ``is_waited_for``: the call returns when it is done; without that, the step waits for it at its end.
    """

    kind: CollectiveKind
    elements: int
    element_bytes: int
    number_format: Any
    group: Any
    root: int
    is_waited_for: bool

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.elements * self.element_bytes


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
            raise RunError(f"a step does {name} of Paddle's process groups, a collective that nobody counts")

        def observed(tensor: Any, root: int, *details: Any) -> Any:
            size, kind = (int(tensor.size), tensor.element_size()), _COUNTED[name]
            call = Collective(kind, *size, tensor.dtype, self._group, self._group.ranks[root], bool(details[-1]))
            self._collectives.append(call)
            return method(tensor, root, *details)

        return observed


@contextmanager
def observed_collectives() -> Iterator[list[Collective]]:
    """Yield a list that gets every collective of this process, in order.

    A collective of a kind that is not counted raises RunError.
    """
    from paddle.distributed.communication.group import _GroupManager

    collectives: list[Collective] = []
    groups = [group for group in _GroupManager.group_map_by_id.values() if group._pg is not None]
    process_groups = [group._pg for group in groups]
    for group in groups:
        group._pg = _ObservedGroup(group, collectives)
    yield collectives
    for group, process_group in zip(groups, process_groups, strict=True):
        group._pg = process_group


def described(collectives: Sequence[Collective], layout: Layout) -> list[CollectiveLine]:
    """Return what the rank log says of them: calls and bytes of each kind and group, in order of their first call."""
    parts: dict[tuple[CollectiveKind, str], list[Collective]] = {}
    for collective in collectives:
        parts.setdefault((collective.kind, group_name(collective, layout)), []).append(collective)
    lines = []
    for (kind, group), part in parts.items():
        ranks, size = part[0].group.nranks, sum(collective.bytes for collective in part)
        lines.append(CollectiveLine(kind=kind, group=group, ranks=ranks, calls=len(part), bytes=size))
    return lines


def group_name(collective: Collective, layout: Layout) -> str:
    """Return the dimensions of a layout along which the ranks of a collective differ."""
    return "_".join(layout.dimensions(collective.group.ranks))


def replayed(collectives: Sequence[Collective]) -> Callable[[], None]:
    """Return what does the collectives again on buffers of zeros, and waits for them as a step does."""
    calls = [_replayed(collective) for collective in collectives]

    def exchange() -> None:
        for task in [call() for call in calls]:
            if task is not None:
                task.wait()

    return exchange


def _replayed(collective: Collective) -> Callable[[], Any]:
    """Return what does a collective again; it returns its task, to be waited for."""
    import paddle
    import paddle.distributed as dist

    buffer = paddle.zeros([collective.elements], collective.number_format)
    details = {"group": collective.group, "sync_op": collective.is_waited_for}
    if collective.kind == "reduce":
        return lambda: dist.reduce(buffer, collective.root, **details)
    return lambda: dist.broadcast(buffer, collective.root, **details)
