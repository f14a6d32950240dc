"""A network and its loss as one PyTorch module."""

from typing import Any

from dlperf_study.models._composing import composed


def cross_entropy_module(network: Any) -> Any:
    """Return ``network`` with the mean softmax cross-entropy of its logits [N, classes]; labels come as [N]."""
    from torch.nn import Module

    return composed(Module, _cross_entropy, network=network)


def _cross_entropy(module: Any, images: Any, labels: Any) -> Any:
    from torch.nn import functional

    return functional.cross_entropy(module.network(images), labels)
