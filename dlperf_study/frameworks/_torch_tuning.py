"""What makes PyTorch faster or slower and computes the same: set as a configuration asks, and asked of PyTorch."""

from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE

#: The arguments of PyTorch's optimizers, by level.
_KERNELS: dict[str, dict[str, bool]] = {
    LIBRARYS_CHOICE: {},
    "fused": {"fused": True},
    "foreach": {"foreach": True},
    "for_loop": {"foreach": False, "fused": False},
}
FUSED_OPTIMIZERS = tuple(_KERNELS)


def set_autotuning(configuration: Configuration) -> None:
    """Let cuDNN try its algorithms, or not; by default PyTorch decides."""
    import torch

    if configuration.cudnn_autotune != LIBRARYS_CHOICE:
        torch.backends.cudnn.benchmark = configuration.cudnn_autotune == "enabled"


def autotuning() -> str:
    """Return whether PyTorch lets cuDNN try its algorithms."""
    import torch

    return "enabled" if torch.backends.cudnn.benchmark else "disabled"


def optimizer_arguments(configuration: Configuration) -> dict[str, bool]:
    """Return the arguments of an optimizer that say how an update goes over the parameters."""
    return _KERNELS[configuration.fused_optimizer]


def optimizer_kernels(optimizer: Any) -> str:
    """Return how the updates of an optimizer go over the parameters: ``fused``, ``foreach`` or ``for_loop``."""
    from torch.optim.optimizer import _default_to_fused_or_foreach

    [group] = optimizer.param_groups
    fused, foreach = group["fused"], group["foreach"]
    if fused is None and foreach is None:
        # Nobody told it: then this function decides in every update.
        fused, foreach = _default_to_fused_or_foreach(group["params"], differentiable=False, use_fused=False)
    if fused:
        return "fused"
    return "foreach" if foreach else "for_loop"


def memory_format(features: Any) -> str:
    """Return the order of the dimensions of features [N, C, H, W] in memory; nothing if their sizes leave it open."""
    import torch

    if features.dim() != 4:
        return ""
    is_nchw = features.is_contiguous()
    is_nhwc = features.is_contiguous(memory_format=torch.channels_last)
    if is_nchw == is_nhwc:
        return ""
    return "nhwc" if is_nhwc else "nchw"
