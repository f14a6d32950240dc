"""The operations of PyTorch that the ArcFace loss needs: see ``Tensors`` in ``_arcface.py``.

The collectives are those of ``torch.distributed``, whose default process group the caller has set up.
"""

from collections.abc import Sequence
from typing import Any


def layer_class() -> Any:
    """Return the class that every module extends."""
    from torch.nn import Module

    return Module


def normal_parameter(shape: Sequence[int], deviation: float) -> Any:
    """Return a float32 parameter drawn from N(0, deviation) with PyTorch's generator."""
    import torch

    return torch.nn.Parameter(torch.empty(*shape).normal_(0.0, deviation))


def assign(parameter: Any, values: Any) -> None:
    """Give a parameter the values of an array."""
    import torch

    with torch.no_grad():
        parameter.copy_(torch.from_numpy(values))


def float32(tensor: Any) -> Any:
    """Return the tensor in single precision."""
    return tensor.float()


def cosines(features: Any, centers: Any) -> Any:
    """Return the cosine of each feature [N, E] with each center [C, E]: [N, C] float32."""
    from torch.nn import functional

    return float32(functional.linear(functional.normalize(features), functional.normalize(centers)))


def stack(tensors: Sequence[Any]) -> Any:
    """Return the tensors along a new first axis."""
    import torch

    return torch.stack(list(tensors))


def integers(first: int, count: int, like: Any) -> Any:
    """Return ``first`` and the ``count - 1`` integers after it as int64, on the device of ``like``."""
    import torch

    return torch.arange(first, first + count, device=like.device)


def take_rows(tensor: Any, rows: Any) -> Any:
    """Return these rows of a matrix."""
    return tensor.index_select(0, rows)


def distinct(tensor: Any) -> Any:
    """Return the values of a tensor once each, sorted."""
    return tensor.unique()


def sample_with(positives: Any, rows: int, count: int) -> Any:
    """Return ``count`` different row numbers below ``rows``: all ``positives``, the others at random."""
    import torch

    order = torch.rand(rows, device=positives.device)
    order[positives] = 2.0
    return order.topk(count).indices


def all_gathered(tensor: Any, rank: int, ranks: int) -> Any:
    """Return the tensors of all ranks, concatenated in order of rank; that of this rank keeps its graph."""
    import torch

    pieces = [torch.empty_like(tensor) for _ in range(ranks)]
    torch.distributed.all_gather(pieces, tensor.detach().contiguous())
    pieces[rank] = tensor
    return torch.cat(pieces)


def all_reduced(tensor: Any, operation: str) -> Any:
    """Return the SUM or MAX of a tensor over the ranks."""
    from torch import distributed

    result = tensor.clone()
    distributed.all_reduce(result, op=getattr(distributed.ReduceOp, operation))
    return result
