"""A network and its loss as one Paddle layer, its parameters, and the operations of Paddle that the ArcFace loss needs.

For these see ``Tensors`` in ``_base.py``.
"""

from types import SimpleNamespace
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


def tensors() -> SimpleNamespace:
    """Return the operations of the ArcFace loss: see ``Tensors``."""
    import paddle
    from paddle.nn import functional

    def normal_parameter(shape: Any, deviation: float) -> Any:
        normal = paddle.nn.initializer.Normal(0.0, deviation)
        return paddle.create_parameter(list(shape), "float32", default_initializer=normal)

    def cosines(features: Any, centers: Any) -> Any:
        products = functional.linear(functional.normalize(features), functional.normalize(centers).T)
        return products.astype("float32")

    def all_gathered(tensor: Any, rank: int, ranks: int) -> Any:
        pieces: list[Any] = []
        paddle.distributed.all_gather(pieces, tensor.detach())
        pieces[rank] = tensor
        return paddle.concat(pieces)

    def all_reduced(tensor: Any, operation: str) -> Any:
        result = tensor.clone()
        paddle.distributed.all_reduce(result, op=getattr(paddle.distributed.ReduceOp, operation))
        return result

    return SimpleNamespace(
        Layer=paddle.nn.Layer,
        normal_parameter=normal_parameter,
        assign=lambda parameter, values: parameter.set_value(values),
        float32=lambda tensor: tensor.astype("float32"),
        cosines=cosines,
        stack=paddle.stack,
        integers=lambda first, count, like: paddle.arange(first, first + count, dtype="int64"),
        take_rows=paddle.gather,
        distinct=paddle.unique,
        sample_with=_sample_with,
        all_gathered=all_gathered,
        all_reduced=all_reduced,
    )


def _sample_with(positives: Any, rows: int, count: int) -> Any:
    import paddle

    order = paddle.rand([rows])
    if len(positives):
        order = paddle.scatter(order, positives, paddle.full([len(positives)], 2.0))
    return paddle.topk(order, count)[1]
