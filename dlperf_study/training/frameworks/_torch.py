"""PyTorch: its devices, number formats, tuning and compiler, as a configuration asks and as PyTorch has them."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from dlperf_study.core.paths import RunPaths
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.precision import COMPUTED_IN, FULL, LossScaling
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE
from dlperf_study.training.frameworks._base import (
    RUN_VARIABLE,
    EventStopwatch,
    HostStopwatch,
    Peaks,
    Stopwatch,
    cudnn_version,
    obstacle_of,
)
from dlperf_study.training.frameworks._training import (
    FIRST_LOSS_SCALE,
    GROWTH_STEPS,
    STATIC_LOSS_SCALE,
    Output,
    first_product,
)


def gpu_support() -> GpuSupport:
    """Return what PyTorch can do with the GPUs that this process may use."""
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
        obstacle = obstacle_of(error)
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if torch.distributed.is_nccl_available() else ""
    cudnn = cudnn_version(torch.backends.cudnn.version() or 0)
    return GpuSupport(str(torch.version.cuda), cudnn, nccl, names, obstacle)


def own_device(local_rank: int) -> Any:
    """Return the device of a rank, by its number among those of its node."""
    import torch

    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def memory_format_of(configuration: Configuration) -> Any:
    """Return the memory format of images and features."""
    import torch

    return torch.channels_last if configuration.memory_format == "nhwc" else torch.contiguous_format


def stopwatch(device: Any) -> Stopwatch:
    """Return the stopwatch of a device."""
    import torch

    return EventStopwatch(partial(torch.cuda.Event, enable_timing=True)) if device.type == "cuda" else HostStopwatch()


def set_tf32(configuration: Configuration) -> None:
    """Switch TF32 on or off in cuBLAS and cuDNN; on a CPU, oneDNN computes float32 in float32."""
    import torch

    products = "tf32" if configuration.precision == "tf32" else "ieee"
    torch.backends.cuda.matmul.fp32_precision = products
    torch.backends.cudnn.conv.fp32_precision = products
    torch.backends.mkldnn.matmul.fp32_precision = "ieee"
    torch.backends.mkldnn.conv.fp32_precision = "ieee"


def autocast(configuration: Configuration, device: Any) -> Callable[[], AbstractContextManager[Any]]:
    """Return what makes the context of a forward pass; the losses compute in float32 themselves."""
    import torch

    if configuration.precision in FULL:
        return nullcontext
    number_format = getattr(torch, COMPUTED_IN[configuration.precision])
    return lambda: torch.autocast(device.type, number_format)


class LossScaler:
    """Scales the loss as a configuration asks, and counts the steps that updated nothing."""

    def __init__(self, configuration: Configuration, optimizer: Any, device: Any) -> None:
        import torch

        self._static = configuration.loss_scaling == "static"
        self._skipped_steps, self._has_updated = 0, False
        #: A fused update looks itself whether gradients are finite; to ask the device in every step would be a wait.
        self._found_infinite: Any = 0
        self._skipped_by_kernels: Any = 0
        scale = STATIC_LOSS_SCALE if self._static else FIRST_LOSS_SCALE
        enabled = configuration.loss_scaling != "none"
        self.scaler = torch.amp.GradScaler(device.type, scale, growth_interval=GROWTH_STEPS, enabled=enabled)
        # The scaler leaves the optimizer's step out when a gradient is not finite.
        optimizer.register_step_post_hook(self._note_update)

    def continue_from(self, other: "LossScaler") -> None:
        """Begin with the scale of another one, as it is now."""
        self.scaler.load_state_dict(other.scaler.state_dict())

    def update(self) -> None:
        """End a step: adapt the scale, or keep it where it is a constant."""
        self._skipped_steps += not self._has_updated
        self._skipped_by_kernels = self._skipped_by_kernels + self._found_infinite
        self._has_updated, self._found_infinite = False, 0
        if self._static:
            self.scaler.update(STATIC_LOSS_SCALE)
        else:
            self.scaler.update()

    def state(self) -> LossScaling | None:
        """Return the scale and the number of skipped steps, or None without loss scaling."""
        if not self.scaler.is_enabled():
            return None
        return LossScaling(self.scaler.get_scale(), self._skipped_steps + int(self._skipped_by_kernels))

    def _note_update(self, optimizer: Any, *_: Any) -> None:
        self._has_updated = True
        self._found_infinite = getattr(optimizer, "found_inf", 0)


@contextmanager
def observed_outputs(layer: Any) -> Iterator[list[Output]]:
    """Yield a list that gets what is observed of each output of the first convolution of a network.

    Of a network without convolutions, of its first fully connected layer.
    """
    from torch import nn

    outputs: list[Output] = []

    def observe(_: Any, inputs: Any, output: Any) -> None:
        outputs.append(observed(output))

    product = first_product(layer.modules(), nn.Conv2d, nn.Linear)
    hook = product.register_forward_hook(observe) if product else None
    yield outputs
    if hook:
        hook.remove()


def observed(tensor: Any) -> Output:
    """Return what is observed of an output."""
    return Output(str(tensor.dtype).removeprefix("torch."), memory_format(tensor))


def products(device: Any) -> Callable[[Any, Any, str], list[Any]]:
    """Return what computes a convolution and a matrix product on a device: ``Products`` of ``_training.py``."""
    import torch

    def computed(images: Any, weights: Any, number_format: str) -> list[Any]:
        kind = getattr(torch, number_format)
        images, weights = (torch.from_numpy(array).to(device, kind) for array in (images, weights))
        convolution = torch.nn.functional.conv2d(images, weights)
        product = images.flatten(2).flatten(0, 1) @ images.flatten(2).flatten(0, 1).T
        return [tensor.double().cpu().numpy() for tensor in (convolution, product)]

    return computed


def own_part(tensor: Any) -> Any:
    """Return what this rank has of a tensor that is divided among ranks, or all of it."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def held_bytes(parameters: list[Any], optimizer: Any) -> dict[str, int]:
    """Return the bytes that this rank holds of parameters and their gradients, and of the optimizer's state."""
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


#: The arguments of PyTorch's optimizers, by level.
_KERNELS: dict[str, dict[str, bool]] = {
    LIBRARYS_CHOICE: {},
    "fused": {"fused": True},
    "foreach": {"foreach": True},
    "for_loop": {"foreach": False, "fused": False},
}
FUSED_OPTIMIZERS = tuple(_KERNELS)
OPTIMIZERS = ("sgd", "momentum", "adamw")


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
    [kernels] = {_kernels_of(group) for group in optimizer.param_groups}
    return kernels


def _kernels_of(group: dict[str, Any]) -> str:
    from torch.optim.optimizer import _default_to_fused_or_foreach

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


COMPILER = "torch_compile"
#: Operators that multiply and add most, as the compiler names them.
PRODUCTS = ("conv2d", "linear")
#: Where PyTorch's compiler keeps what it compiled.
CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


def compiler_obstacle() -> str:
    """Return why PyTorch can't compile here, in its own words, or nothing: it needs a C++ compiler while it trains."""
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    # It raises one of its own classes, which differ between versions.
    except Exception as error:
        return obstacle_of(error)
    return ""


class CompiledFormats:
    """Compiles networks in place; ``outputs`` gets what is observed of each product in what is compiled.

    That is the graph which the compiler gets: on a GPU it may order features in memory as it likes.
    """

    def __init__(self) -> None:
        self.outputs: list[Output] = []

    def compile(self, layer: Any) -> None:
        """Make a layer compile at its first call.

        The layer with its loss: PyTorch silently compiles nothing in place of a ``Sequential``, which is its own code.
        """
        layer.compile(backend=self._compiled)

    def _compiled(self, graph: Any, inputs: list[Any]) -> Any:
        """Return what PyTorch's own compiler makes of a graph."""
        from torch._inductor.compile_fx import compile_fx

        for node in graph.graph.nodes:
            if getattr(node.target, "__name__", "") in PRODUCTS:
                self.outputs.append(observed(node.meta["example_value"]))
        return compile_fx(graph, inputs)


def refuse_further_compilation() -> None:
    """Make PyTorch fail where it would compile again: that would be time of a window."""
    import torch

    torch._dynamo.config.error_on_recompile = True


def keep_compiled_code(configuration: Configuration) -> None:
    """Let all ranks and runs of a configuration share what is compiled, in its folder.

    Where nodes do not share files, that is not there, and PyTorch's own folder on each node serves as well.
    """
    home = RunPaths(Path(os.environ[RUN_VARIABLE])).home
    if home.folder.name == configuration.identity:
        os.environ.setdefault(CACHE_VARIABLE, str(home.compiled))
