"""A network and its loss as one Paddle layer."""

from collections.abc import Callable
from typing import Any


def loss_layer(loss: Callable[[Any, Any, Any], Any], **parts: Any) -> Any:
    """Return a layer that holds ``parts`` as attributes and computes ``loss(layer, images, labels)``.

    Labels may come as [N] or, from a static program, as [N, 1]; the loss sees [N].
    """
    from paddle.nn import Layer

    class LossLayer(Layer):  # type: ignore[misc]
        def forward(self, images: Any, labels: Any) -> Any:
            return loss(self, images, labels.flatten())

    layer = LossLayer()
    for name, part in parts.items():
        setattr(layer, name, part)
    return layer


def cross_entropy_layer(network: Any) -> Any:
    """Return ``network`` with the mean softmax cross-entropy of its logits [N, classes]."""
    return loss_layer(_cross_entropy, network=network)


def _cross_entropy(layer: Any, images: Any, labels: Any) -> Any:
    from paddle.nn import functional

    return functional.cross_entropy(layer.network(images), labels)
