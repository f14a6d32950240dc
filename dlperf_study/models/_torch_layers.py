"""Parts of the networks in PyTorch: Paddle's layers in Paddle's order, started as Paddle starts them.

torchvision has most of these networks but is not used: its wheels on PyPI need the CUDA build of PyTorch.
"""

import math
from types import SimpleNamespace
from typing import Any

from dlperf_study.models._base import composed


def cross_entropy_module(network: Any) -> Any:
    """Return ``network`` with the mean softmax cross-entropy of its logits [N, classes]; labels come as [N]."""
    from torch.nn import Module

    return composed(Module, _cross_entropy, network=network)


def _cross_entropy(module: Any, images: Any, labels: Any) -> Any:
    from torch.nn import functional

    return functional.cross_entropy(module.network(images), labels)


def convolution_norm(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> tuple[Any, Any]:
    """Return a square convolution without bias that pads its input by half a kernel, and its batch norm."""
    from torch import nn

    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return convolution, nn.BatchNorm2d(outputs)


def residual(body: Any, shortcut: Any) -> Any:
    """Return a module that adds the outputs of ``body`` and ``shortcut``."""
    from torch.nn import Module

    return composed(Module, _sum, body=body, shortcut=shortcut)


def _sum(module: Any, images: Any) -> Any:
    return module.body(images) + module.shortcut(images)


def by_paddle_names() -> SimpleNamespace:
    """Return PyTorch's layers under the names of ``paddle.nn``, for a network written once for both."""
    from torch import nn

    renamed = {f"{name}D": getattr(nn, f"{name}d") for name in ("Conv2", "BatchNorm1", "BatchNorm2", "MaxPool2")}
    unchanged = {name: getattr(nn, name) for name in ("Dropout", "Flatten", "Linear", "ReLU", "Sequential")}
    return SimpleNamespace(**renamed, **unchanged)


def initialised(network: Any) -> Any:
    """Return ``network`` with weights drawn as Paddle 3.0 draws them: in place, with PyTorch's generator.

    A convolution's come from N(0, 2 / (input channels x kernel area)), whatever its groups (``_ConvNd`` of
    paddle/nn/layer/conv.py); a linear layer's from Glorot's uniform distribution; biases are 0.
    """
    from torch import nn

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, std=math.sqrt(2 / (layer.in_channels * math.prod(layer.kernel_size))))
        elif isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
        if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None:
            nn.init.zeros_(layer.bias)
    return network
