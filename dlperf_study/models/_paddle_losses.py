"""A network and its loss as one Paddle layer."""

from typing import Any

from dlperf_study.models._base import composed


def cross_entropy_layer(network: Any) -> Any:
    """Return ``network`` with the mean softmax cross-entropy of its logits [N, classes].

    Labels may come as [N] or, from a static program, as [N, 1].
    """
    from paddle.nn import Layer

    return composed(Layer, _cross_entropy, network=network)


def _cross_entropy(layer: Any, images: Any, labels: Any) -> Any:
    from paddle.nn import functional

    return functional.cross_entropy(layer.network(images), labels.flatten())
