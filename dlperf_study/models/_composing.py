"""Layers put together from parts, in whatever library the parts are of."""

from collections.abc import Callable
from typing import Any


def composed(base: Any, forward: Callable[..., Any], **parts: Any) -> Any:
    """Return a layer that holds ``parts`` as attributes, in this order, and computes ``forward(layer, *inputs)``.

    ``base`` is the library's class of layers: ``paddle.nn.Layer`` or ``torch.nn.Module``.
    """

    class Composed(base):  # type: ignore[misc]
        def forward(self, *inputs: Any) -> Any:
            return forward(self, *inputs)

    layer = Composed()
    for name, part in parts.items():
        setattr(layer, name, part)
    return layer
