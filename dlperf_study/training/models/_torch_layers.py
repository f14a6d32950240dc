"""Parts of the networks in PyTorch: Paddle's layers in Paddle's order, started as Paddle starts them.

torchvision has most of these networks but is not used: its wheels on PyPI need the CUDA build of PyTorch.
Collectives of ``tensors`` are those of ``torch.distributed``, whose default process group the caller has set up.
"""

import math
from types import SimpleNamespace
from typing import Any

from dlperf_study.training.models._base import composed

#: Layers whose names end in D in Paddle and in d in PyTorch, and those that have the same name.
RENAMED = ("AdaptiveAvgPool2", "BatchNorm1", "BatchNorm2", "Conv2", "MaxPool2")
UNCHANGED = ("Dropout", "Flatten", "Identity", "Linear", "ReLU", "ReLU6", "Sequential")


def cross_entropy_module(network: Any) -> Any:
    """Return ``network`` with the mean softmax cross-entropy."""
    from torch.nn import Module, functional

    def loss(module: Any, images: Any, labels: Any) -> Any:
        return functional.cross_entropy(module.network(images), labels)

    return composed(Module, loss, network=network)


def convolution_norm(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> tuple[Any, Any]:
    """Return a padded square convolution and its batch norm."""
    from torch import nn

    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return convolution, nn.BatchNorm2d(outputs)


def residual(body: Any, shortcut: Any) -> Any:
    """Return a module that adds ``body`` and ``shortcut``."""
    from torch.nn import Module

    def total(module: Any, images: Any) -> Any:
        return module.body(images) + module.shortcut(images)

    return composed(Module, total, body=body, shortcut=shortcut)


def by_paddle_names() -> SimpleNamespace:
    """Return PyTorch's layers under the names of ``paddle.nn``."""
    from torch import nn

    renamed = {f"{name}D": getattr(nn, f"{name}d") for name in RENAMED}
    unchanged = {name: getattr(nn, name) for name in UNCHANGED}
    return SimpleNamespace(**renamed, **unchanged, convolution_norm=convolution_norm, residual=residual)


def initialised(network: Any) -> Any:
    """Return ``network`` with weights as Paddle 3.0 draws them."""
    # A convolution's come from N(0, 2 / (input channels x kernel area)), whatever its groups (``_ConvNd`` of
    # paddle/nn/layer/conv.py); a linear layer's from Glorot's uniform distribution; biases are 0.
    from torch import nn

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, std=math.sqrt(2 / (layer.in_channels * math.prod(layer.kernel_size))))
        elif isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
        if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None:
            nn.init.zeros_(layer.bias)
    return network


def tensors() -> SimpleNamespace:
    """Return the operations of the ArcFace loss: see ``arcface_resnet50.py``."""
    import torch
    from torch import distributed
    from torch.nn import functional

    def assign(parameter: Any, values: Any) -> None:
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(values))

    def cosines(features: Any, centers: Any) -> Any:
        return functional.linear(functional.normalize(features), functional.normalize(centers)).float()

    def sample_with(positives: Any, rows: int, count: int) -> Any:
        order = torch.rand(rows, device=positives.device)
        order[positives] = 2.0
        return order.topk(count).indices

    def all_reduced(tensor: Any, operation: str) -> Any:
        result = tensor.clone()
        distributed.all_reduce(result, op=getattr(distributed.ReduceOp, operation))
        return result

    return SimpleNamespace(
        Layer=torch.nn.Module,
        normal_parameter=lambda shape, deviation: torch.nn.Parameter(torch.empty(*shape).normal_(0.0, deviation)),
        assign=assign,
        float32=torch.Tensor.float,
        cosines=cosines,
        stack=torch.stack,
        integers=lambda first, count, like: torch.arange(first, first + count, device=like.device),
        take_rows=lambda tensor, rows: tensor.index_select(0, rows),
        distinct=torch.unique,
        sample_with=sample_with,
        all_gathered=_all_gathered,
        all_reduced=all_reduced,
    )


def _all_gathered(tensor: Any, rank: int, ranks: int) -> Any:
    import torch

    pieces = [torch.empty_like(tensor) for _ in range(ranks)]
    torch.distributed.all_gather(pieces, tensor.detach().contiguous())
    pieces[rank] = tensor
    return torch.cat(pieces)
