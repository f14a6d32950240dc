"""The collectives of a step in PyTorch, as they are observed in its first one, and the same ones alone."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from dlperf_study.core.errors import RunError
from dlperf_study.study.communication import CollectiveKind
from dlperf_study.training.libraries._collectives import Collective


class _Operator(NamedTuple):
    """Which arguments of an operator are its tensor and its group; ``root`` is the argument of its root.

    ``gathers``: the tensor is what a rank has of the size. ``receives``: a rank sends it, and the root is that rank.
    """

    kind: CollectiveKind
    tensor: int
    group: int
    root: int | None = None
    gathers: bool = False
    receives: bool = False


#: Those of ``torch.ops.c10d``, and the functional ones, which tensors that are divided among ranks use.
_OPERATORS = {
    "c10d::allreduce_": _Operator("all_reduce", 0, 1),
    "c10d::broadcast_": _Operator("broadcast", 0, 1, 2),
    "c10d::_allgather_base_": _Operator("all_gather", 0, 2),
    "c10d::_reduce_scatter_base_": _Operator("reduce_scatter", 1, 2),
    "c10d::send": _Operator("send_receive", 0, 1, 2),
    "c10d::recv_": _Operator("send_receive", 0, 1, 2, receives=True),
    "_c10d_functional::all_reduce": _Operator("all_reduce", 0, 2),
    "_c10d_functional::all_reduce_": _Operator("all_reduce", 0, 2),
    "_c10d_functional::all_gather_into_tensor": _Operator("all_gather", 0, 2, gathers=True),
    "_c10d_functional::reduce_scatter_tensor": _Operator("reduce_scatter", 0, 3),
}
#: Where all operators of groups are, and those of them that move nothing.
_NAMESPACES = ("c10d::", "_c10d_functional::", "_dtensor::")
_WAITS = ("c10d::barrier", "_c10d_functional::wait_tensor", "_c10d_functional::_wrap_tensor_autograd")


@contextmanager
def observed_collectives() -> Iterator[list[Collective]]:
    """Yield a list that gets every collective; raises RunError for unknown ones."""
    from torch.distributed.tensor import DTensor
    from torch.utils._python_dispatch import TorchDispatchMode

    collectives: list[Collective] = []

    class Observer(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if any(kind is DTensor for kind in types):
                return NotImplemented
            name = function._schema.name
            if operator := _OPERATORS.get(name):
                collectives.append(_observed(operator, args))
            elif name.startswith(_NAMESPACES) and name not in _WAITS:
                raise RunError(f"a step does {name}, a collective whose bytes are not counted")
            return function(*args, **(kwargs or {}))

    with Observer():
        yield collectives


def _observed(operator: _Operator, arguments: Sequence[Any]) -> Collective:
    from torch.distributed import get_process_group_ranks

    tensor, group = arguments[operator.tensor], _group(arguments[operator.group])
    if isinstance(tensor, list):
        [tensor, *_] = tensor
    ranks, root, elements = tuple(get_process_group_ranks(group)), 0, tensor.numel()
    if operator.root is not None:
        root = int(arguments[operator.root])
    if operator.gathers:
        elements *= len(ranks)
    size = (elements, tensor.element_size())
    return Collective(operator.kind, *size, tensor.dtype, group, ranks, root, operator.receives)


def _group(argument: Any) -> Any:
    from torch.distributed import ProcessGroup
    from torch.distributed.distributed_c10d import _resolve_process_group

    if isinstance(argument, str):
        return _resolve_process_group(argument)
    return ProcessGroup.unbox(argument)


def replayed(collectives: Sequence[Collective], device: Any) -> Callable[[], None]:
    """Return what repeats collectives on buffers of zeros."""
    between_pairs = [collective for collective in collectives if collective.kind == "send_receive"]
    calls = [_sent_at_once(between_pairs, device)] if between_pairs else []
    calls += [_replayed(collective, device) for collective in collectives if collective.kind != "send_receive"]

    def communicate() -> None:
        for call in calls:
            call()

    return communicate


def _replayed(collective: Collective, device: Any) -> Callable[[], Any]:
    import torch
    import torch.distributed as dist

    group, ranks = collective.group, len(collective.ranks)
    buffer = torch.zeros(collective.elements, dtype=collective.number_format, device=device)
    part = buffer[: collective.elements // ranks].clone()
    calls: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: dist.all_reduce(buffer, group=group),
        "broadcast": lambda: dist.broadcast(buffer, group=group, group_src=collective.root),
        "all_gather": lambda: dist.all_gather_into_tensor(buffer, part, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, buffer, group=group),
    }
    return calls[collective.kind]


def _sent_at_once(transfers: Sequence[Collective], device: Any) -> Callable[[], None]:
    """Return what sends at once: in turn, ranks could deadlock."""
    import torch
    import torch.distributed as dist

    operations = []
    for transfer in transfers:
        buffer = torch.zeros(transfer.elements, dtype=transfer.number_format, device=device)
        operation = dist.irecv if transfer.is_received else dist.isend
        operations.append(dist.P2POp(operation, buffer, group=transfer.group, group_peer=transfer.root))

    def send() -> None:
        for work in dist.batch_isend_irecv(operations):
            work.wait()

    return send
