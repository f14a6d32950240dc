"""A network and its loss as one Paddle layer, its parameters, and what the ArcFace loss needs of Paddle."""

from types import SimpleNamespace
from typing import Any

from dlperf_study.training.models._base import composed


def cross_entropy_layer(network: Any) -> Any:
    """Return ``network`` with the mean softmax cross-entropy."""
    # Labels may come as [N] or, from a static program, as [N, 1].
    from paddle.nn import Layer, functional

    def loss(layer: Any, images: Any, labels: Any) -> Any:
        return functional.cross_entropy(layer.network(images), labels.flatten())

    return composed(Layer, loss, network=network)


def trainable_parameters(layer: Any) -> list[Any]:
    """Return parameters without the statistics of batch norm."""
    return [parameter for parameter in layer.parameters() if not parameter.stop_gradient]


def tensors() -> SimpleNamespace:
    """Return the operations of the ArcFace loss: see ``arcface_resnet50.py``."""
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
