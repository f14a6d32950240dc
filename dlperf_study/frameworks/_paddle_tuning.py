"""What makes Paddle faster or slower and computes the same: set as a configuration asks, and asked of Paddle."""

from collections.abc import Iterator
from typing import Any

from dlperf_study.frameworks import _tuning
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE

AUTOTUNING_FLAG = "FLAGS_cudnn_exhaustive_search"
FUSED_OPTIMIZERS = (LIBRARYS_CHOICE, "fused", "for_loop")


def obstacles(configuration: Configuration, device: str) -> Iterator[str]:
    """Yield each reason why Paddle can't be tuned so."""
    yield from _tuning.device_obstacles(configuration, device)
    if configuration.fused_optimizer == "fused" and configuration.optimizer == "sgd":
        yield "fused_optimizer fused: Paddle's SGD has no use_multi_tensor, which its Momentum has"


def set_autotuning(configuration: Configuration) -> None:
    """Let cuDNN try its algorithms, or not; by default Paddle decides."""
    import paddle

    if configuration.cudnn_autotune != LIBRARYS_CHOICE:
        paddle.set_flags({AUTOTUNING_FLAG: configuration.cudnn_autotune == "enabled"})


def autotuning() -> str:
    """Return whether Paddle lets cuDNN try its algorithms; a build without CUDA can't be asked."""
    import paddle

    return "enabled" if paddle.get_flags(AUTOTUNING_FLAG)[AUTOTUNING_FLAG] else "disabled"


def parameter_update(optimizer: Any) -> str:
    """Return how the updates of an optimizer go over the parameters: ``fused`` or ``for_loop``.

    Its lists of parameters for the one call of all are filled in its first update, if it makes this call.
    """
    lists = getattr(optimizer, "_param_dict", {})
    return "fused" if any(groups[0] for groups in lists.values()) else "for_loop"


def memory_format(features: Any, channels: int) -> str:
    """Return the order of the dimensions of features with so many channels; nothing if their sizes leave it open."""
    formats = {"nchw": 1, "nhwc": -1}
    fitting = [name for name, axis in formats.items() if features.ndim == 4 and features.shape[axis] == channels]
    return fitting[0] if len(fitting) == 1 else ""
