"""Parts of the networks in PyTorch: Paddle's layers in Paddle's order, started as Paddle starts them.

torchvision has most of these networks but is not used: its wheels on PyPI need the CUDA build of PyTorch.
The functions from ``layer_class`` on are the operations that the ArcFace loss needs: see ``Tensors`` in
``_base.py``. Their collectives are those of ``torch.distributed``, whose default process group the caller
has set up.
"""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from dlperf_study.training.models._base import composed

#: Layers whose names end in D in Paddle and in d in PyTorch, and those that have the same name.
RENAMED = ("AdaptiveAvgPool2", "BatchNorm1", "BatchNorm2", "Conv2", "MaxPool2")
UNCHANGED = ("Dropout", "Flatten", "Identity", "Linear", "ReLU", "ReLU6", "Sequential")


def cross_entropy_module(network: Any) -> Any:
    """Return ``network`` with the mean softmax cross-entropy of its logits [N, classes]; labels come as [N]."""
    from torch.nn import Module, functional

    def loss(module: Any, images: Any, labels: Any) -> Any:
        return functional.cross_entropy(module.network(images), labels)

    return composed(Module, loss, network=network)


def convolution_norm(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> tuple[Any, Any]:
    """Return a square convolution without bias that pads its input by half a kernel, and its batch norm."""
    from torch import nn

    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return convolution, nn.BatchNorm2d(outputs)


def residual(body: Any, shortcut: Any) -> Any:
    """Return a module that adds the outputs of ``body`` and ``shortcut``."""
    from torch.nn import Module

    def total(module: Any, images: Any) -> Any:
        return module.body(images) + module.shortcut(images)

    return composed(Module, total, body=body, shortcut=shortcut)


def by_paddle_names() -> SimpleNamespace:
    """Return PyTorch's layers under the names of ``paddle.nn``, for a network written once for several libraries."""
    from torch import nn

    renamed = {f"{name}D": getattr(nn, f"{name}d") for name in RENAMED}
    unchanged = {name: getattr(nn, name) for name in UNCHANGED}
    return SimpleNamespace(**renamed, **unchanged, convolution_norm=convolution_norm, residual=residual)


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
