"""A network and its loss as one Paddle layer, its parameters, and the operations of Paddle that the ArcFace loss needs.

For these see ``Tensors`` in ``_base.py``.
"""

from collections.abc import Sequence
from typing import Any

from dlperf_study.training.models._base import composed


def cross_entropy_layer(network: Any) -> Any:
    """Return ``network`` with the mean softmax cross-entropy of its logits [N, classes].

    Labels may come as [N] or, from a static program, as [N, 1].
    """
    from paddle.nn import Layer, functional

    def loss(layer: Any, images: Any, labels: Any) -> Any:
        return functional.cross_entropy(layer.network(images), labels.flatten())

    return composed(Layer, loss, network=network)


def trainable_parameters(layer: Any) -> list[Any]:
    """Return what an optimizer updates; Paddle lists the statistics of batch norm as parameters too."""
    return [parameter for parameter in layer.parameters() if not parameter.stop_gradient]


def replicated_parameters(layer: Any) -> list[Any]:
    """Return the trainable parameters every rank holds alike; a shard of a classifier is not among them.

    A shard carries ``no_sync``, the attribute by which ``paddle.DataParallel`` leaves it alone. Statistics
    of batch norm are not among them either: each rank has different ones.
    """
    return [parameter for parameter in trainable_parameters(layer) if not getattr(parameter, "no_sync", False)]


def layer_class() -> Any:
    """Return the class that every layer extends."""
    from paddle.nn import Layer

    return Layer


def normal_parameter(shape: Sequence[int], deviation: float) -> Any:
    """Return a float32 parameter drawn from N(0, deviation) with Paddle's generator."""
    import paddle

    normal = paddle.nn.initializer.Normal(0.0, deviation)
    return paddle.create_parameter(list(shape), "float32", default_initializer=normal)


def assign(parameter: Any, values: Any) -> None:
    """Give a parameter the values of an array."""
    parameter.set_value(values)


def float32(tensor: Any) -> Any:
    """Return the tensor in single precision."""
    return tensor.astype("float32")


def cosines(features: Any, centers: Any) -> Any:
    """Return the cosine of each feature [N, E] with each center [C, E]: [N, C] float32."""
    from paddle.nn import functional

    return float32(functional.linear(functional.normalize(features), functional.normalize(centers).T))


def stack(tensors: Sequence[Any]) -> Any:
    """Return the tensors along a new first axis."""
    import paddle

    return paddle.stack(list(tensors))


def integers(first: int, count: int, like: Any) -> Any:
    """Return ``first`` and the ``count - 1`` integers after it as int64, on Paddle's current device."""
    import paddle

    return paddle.arange(first, first + count, dtype="int64")


def take_rows(tensor: Any, rows: Any) -> Any:
    """Return these rows of a matrix."""
    import paddle

    return paddle.gather(tensor, rows)


def distinct(tensor: Any) -> Any:
    """Return the values of a tensor once each, sorted."""
    import paddle

    return paddle.unique(tensor)


def sample_with(positives: Any, rows: int, count: int) -> Any:
    """Return ``count`` different row numbers below ``rows``: all ``positives``, the others at random."""
    import paddle

    order = paddle.rand([rows])
    if len(positives):
        order = paddle.scatter(order, positives, paddle.full([len(positives)], 2.0))
    return paddle.topk(order, count)[1]


def all_gathered(tensor: Any, rank: int, ranks: int) -> Any:
    """Return the tensors of all ranks, concatenated in order of rank; that of this rank keeps its graph."""
    import paddle

    pieces: list[Any] = []
    paddle.distributed.all_gather(pieces, tensor.detach())
    pieces[rank] = tensor
    return paddle.concat(pieces)


def all_reduced(tensor: Any, operation: str) -> Any:
    """Return the SUM or MAX of a tensor over the ranks."""
    import paddle

    result = tensor.clone()
    paddle.distributed.all_reduce(result, op=getattr(paddle.distributed.ReduceOp, operation))
    return result
