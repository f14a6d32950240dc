"""PyTorch: its device, number formats, tensors and tuning, as a configuration asks and as PyTorch has them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from dlperf_study.study import precision
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.parallel_parameters import FULL_CHECKPOINTING
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE
from dlperf_study.training import models
from dlperf_study.training.libraries import _base, _torch_collectives
from dlperf_study.training.libraries._base import Buffer, Output
from dlperf_study.training.models._base import without_loss

#: The arguments of PyTorch's optimizers, by value.
_KERNELS: dict[str, dict[str, bool]] = {
    LIBRARYS_CHOICE: {},
    "fused": {"fused": True},
    "foreach": {"foreach": True},
    "for_loop": {"foreach": False, "fused": False},
}
FUSED_OPTIMIZERS = tuple(_KERNELS)
OPTIMIZERS = ("sgd", "momentum", "adamw")


def gpu_support() -> GpuSupport:
    """Return what PyTorch can do with the GPUs here."""
    import torch

    if not torch.version.cuda:
        return GpuSupport()
    names: tuple[str, ...] = ()
    obstacle = ""
    try:
        torch.cuda.init()
        names = tuple(map(torch.cuda.get_device_name, range(torch.cuda.device_count())))
    # CUDA fails with exceptions of several classes.
    except Exception as error:
        obstacle = _base.error_line(error)
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if torch.distributed.is_nccl_available() else ""
    cudnn = _base.cudnn_version(torch.backends.cudnn.version() or 0)
    return GpuSupport(str(torch.version.cuda), cudnn, nccl, names, obstacle)


class Torch(_base.Library):
    """PyTorch on the device of a rank, the one of this number among those of its node."""

    name = "torch"
    collectives = _torch_collectives

    def __init__(self, configuration: Configuration, local_rank: int = 0) -> None:
        import torch

        self.configuration, self._torch = configuration, torch
        self.device = torch.device("cpu")
        if torch.cuda.is_available():
            torch.cuda.set_device(local_rank)
            self.device = torch.device("cuda", local_rank)
        self.memory_format = torch.contiguous_format
        if configuration.memory_format == "nhwc":
            self.memory_format = torch.channels_last
        # On a CPU, oneDNN computes float32 in float32.
        products = "tf32" if configuration.precision == "tf32" else "ieee"
        torch.backends.cuda.matmul.fp32_precision = products
        torch.backends.cudnn.conv.fp32_precision = products
        torch.backends.mkldnn.matmul.fp32_precision = "ieee"
        torch.backends.mkldnn.conv.fp32_precision = "ieee"
        if configuration.cudnn_autotune != LIBRARYS_CHOICE:
            torch.backends.cudnn.benchmark = configuration.cudnn_autotune == "enabled"

    def description(self) -> dict[str, Any]:
        version = self._torch.version
        return {
            "library": "torch",
            "library_version": self._torch.__version__,
            "library_commit": str(version.git_version),
            "cuda": str(version.cuda),
        }

    def uses_gpu(self) -> bool:
        return bool(self.device.type == "cuda")

    def synchronise(self) -> None:
        if self.device.type == "cuda":
            self._torch.cuda.synchronize()

    def event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)

    def autotuning(self) -> str:
        if self._torch.backends.cudnn.benchmark:
            return "enabled"
        return "disabled"

    def products(self, images: Any, weights: Any, number_format: str) -> list[Any]:
        kind = getattr(self._torch, number_format)
        images, weights = (self._torch.from_numpy(array).to(self.device, kind) for array in (images, weights))
        convolution = self._torch.nn.functional.conv2d(images, weights)
        rows = images.flatten(2).flatten(0, 1)
        return [tensor.double().cpu().numpy() for tensor in (convolution, rows @ rows.T)]

    def placed(self, *batch: Any) -> tuple[Any, ...]:
        inputs, *targets = (self._torch.as_tensor(part, device=self.device) for part in batch)
        return inputs.contiguous(memory_format=self.memory_format), *targets

    def trained_parameters(self, layer: Any) -> list[Any]:
        return trained(layer)

    def buffer(self, *parameters: Any) -> Buffer:
        is_compressed = self.configuration.gradient_compression == "fp16"
        number_format = self._torch.float16 if is_compressed else parameters[0].dtype
        elements = sum(parameter.numel() for parameter in parameters)
        return Buffer(elements, number_format.itemsize, number_format)

    def zeros(self, elements: int, number_format: Any) -> Any:
        return self._torch.zeros(elements, dtype=number_format, device=self.device)

    def array(self, parameter: Any) -> Any:
        return own_part(parameter).detach().cpu().numpy()

    def built(self, rank: int, ranks: int) -> Any:
        configuration = self.configuration
        self._torch.manual_seed(configuration.seed)
        layer = models.load(configuration.model).builder("torch")(configuration, rank, ranks)
        if configuration.activation_checkpointing == FULL_CHECKPOINTING:
            from dlperf_study.training.models._torch_transformer import recompute_blocks

            recompute_blocks(without_loss(layer))
        return layer.to(self.device)

    def optimizer(self, parameters: list[Any]) -> Any:
        """Return the optimizer of parameters or their groups."""
        kernels = _KERNELS[self.configuration.fused_optimizer]
        if self.configuration.optimizer == "adamw":
            return self._torch.optim.AdamW(parameters, lr=_base.ADAM_LEARNING_RATE, **kernels)
        momentum = _base.MOMENTUM if self.configuration.optimizer == "momentum" else 0.0
        return self._torch.optim.SGD(parameters, lr=_base.LEARNING_RATE, momentum=momentum, **kernels)

    def autocast(self) -> Callable[[], AbstractContextManager[Any]]:
        """Return what makes the context of a forward pass."""
        if self.configuration.precision in precision.FULL:
            return nullcontext
        number_format = getattr(self._torch, precision.COMPUTED_IN[self.configuration.precision])
        return lambda: self._torch.autocast(self.device.type, number_format)


def trained(layer: Any) -> list[Any]:
    """Return what an optimizer updates."""
    return [parameter for parameter in layer.parameters() if parameter.requires_grad]


def own_part(tensor: Any) -> Any:
    """Return this rank's part of a tensor, or all."""
    if hasattr(tensor, "to_local"):
        return tensor.to_local()
    return tensor


def own_optimizer(optimizer: Any) -> Any:
    """Return the optimizer of this rank's part."""
    return getattr(optimizer, "optim", optimizer)


@contextmanager
def observed_outputs(layer: Any) -> Iterator[list[Output]]:
    """Yield a list of what is observed of the first product's outputs."""
    from torch import nn

    outputs: list[Output] = []

    def observe(_: Any, inputs: Any, output: Any) -> None:
        outputs.append(observed(output))

    product = _base.first_product(layer.modules(), nn.Conv2d, nn.Linear)
    hook = product.register_forward_hook(observe) if product else None
    yield outputs
    if hook:
        hook.remove()


def observed(tensor: Any) -> Output:
    """Return what is observed of an output."""
    return Output(str(tensor.dtype).removeprefix("torch."), memory_format(tensor))


def memory_format(features: Any) -> str:
    """Return the order of dimensions; nothing if sizes leave it open."""
    import torch

    if features.dim() != 4:
        return ""
    is_nchw = features.is_contiguous()
    is_nhwc = features.is_contiguous(memory_format=torch.channels_last)
    if is_nchw == is_nhwc:
        return ""
    if is_nhwc:
        return "nhwc"
    return "nchw"


def held_bytes(parameters: list[Any], optimizer: Any) -> dict[str, int]:
    """Return the bytes held by kind."""
    import torch

    def total(tensors: Iterable[Any]) -> int:
        return sum(part.numel() * part.element_size() for part in map(own_part, tensors))

    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    values = [value for state in optimizer.state.values() for value in state.values()]
    states = filter(torch.is_tensor, values)
    return {"weights": total(parameters), "gradients": total(gradients), "optimizer": total(states)}


class TorchAllocator:
    """PyTorch counts on GPUs only."""

    def restart(self) -> None:
        import torch

        if torch.cuda.is_initialized():
            torch.cuda.reset_peak_memory_stats()

    def peaks(self) -> _base.Peaks:
        import torch

        if not torch.cuda.is_initialized():
            return {}
        cuda = torch.cuda
        return {"allocated_bytes": cuda.max_memory_allocated(), "reserved_bytes": cuda.max_memory_reserved()}


def optimizer_kernels(optimizer: Any) -> str:
    """Return ``fused``, ``foreach`` or ``for_loop`` of an optimizer."""
    [kernels] = set(map(_kernels, optimizer.param_groups))
    return kernels


def _kernels(group: dict[str, Any]) -> str:
    from torch.optim.optimizer import _default_to_fused_or_foreach

    fused, foreach = group["fused"], group["foreach"]
    if fused is None and foreach is None:
        # Nobody told it: then this function decides in every update.
        fused, foreach = _default_to_fused_or_foreach(group["params"], differentiable=False, use_fused=False)
    if fused:
        return "fused"
    if foreach:
        return "foreach"
    return "for_loop"
