"""What the allocator of each library counts of the memory that it gives to tensors."""

from typing import Protocol

#: Bytes by name: ``allocated_bytes`` of tensors, ``reserved_bytes`` that were taken from the device for them.
Peaks = dict[str, int]
#: Paddle counts memory of the host by kind and device; there is one host.
_PADDLE_HOST = ("Allocated", 0)


class Allocator(Protocol):
    """The counters of a library's allocator for the device of this process."""

    def restart(self) -> None:
        """Count peaks from what is allocated now."""

    def peaks(self) -> Peaks:
        """Return the peaks since ``restart``; empty where the library does not count."""


class TorchAllocator:
    """PyTorch counts on GPUs only."""

    def restart(self) -> None:
        """Count peaks from what is allocated now."""
        import torch

        if torch.cuda.is_initialized():
            torch.cuda.reset_peak_memory_stats()

    def peaks(self) -> Peaks:
        """Return the peaks since ``restart``; empty on a CPU."""
        import torch

        if not torch.cuda.is_initialized():
            return {}
        cuda = torch.cuda
        return {"allocated_bytes": cuda.max_memory_allocated(), "reserved_bytes": cuda.max_memory_reserved()}


class PaddleAllocator:
    """Paddle counts on GPUs and on CPUs; on CPUs it takes from the host just what it allocates."""

    def restart(self) -> None:
        """Count peaks from what is allocated now."""
        import paddle

        if _paddle_is_on_gpu():
            paddle.device.cuda.reset_max_memory_allocated()
            paddle.device.cuda.reset_max_memory_reserved()
        else:
            paddle.base.core.host_memory_stat_reset_peak_value(*_PADDLE_HOST)

    def peaks(self) -> Peaks:
        """Return the peaks since ``restart``."""
        import paddle

        if not _paddle_is_on_gpu():
            return {"allocated_bytes": paddle.base.core.host_memory_stat_peak_value(*_PADDLE_HOST)}
        cuda = paddle.device.cuda
        return {"allocated_bytes": cuda.max_memory_allocated(), "reserved_bytes": cuda.max_memory_reserved()}


class TensorflowAllocator:
    """TensorFlow counts on GPUs only."""

    def restart(self) -> None:
        """Count peaks from what is allocated now."""
        import tensorflow as tf

        if tf.config.list_physical_devices("GPU"):
            tf.config.experimental.reset_memory_stats("GPU:0")

    def peaks(self) -> Peaks:
        """Return the peaks since ``restart``; empty on a CPU. How much it took from the device it does not say."""
        import tensorflow as tf

        if not tf.config.list_physical_devices("GPU"):
            return {}
        return {"allocated_bytes": int(tf.config.experimental.get_memory_info("GPU:0")["peak"])}


def _paddle_is_on_gpu() -> bool:
    import paddle

    return str(paddle.get_device()).startswith("gpu")
