"""What the frameworks of Paddle refuse."""

from collections.abc import Iterator

from dlperf_study.core.user_commands import make_or
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.parallel_parameters import SHARDED_PARAMETERS
from dlperf_study.study.precision import FULL
from dlperf_study.training import models
from dlperf_study.training.frameworks._obstacles import device_obstacles

PACKAGES = ("paddlepaddle-gpu", "paddlepaddle")
GPU_REMEDY = make_or("gpu PADDLE_INDEX=ADDRESS", "pip install paddlepaddle-gpu --extra-index-url ADDRESS")
ENVIRONMENT_PREFIXES = ("FLAGS_", "GLOG_")
#: The classes of Paddle's optimizers that update one parameter after the other, whatever they are told.
WITHOUT_FUSION = {"sgd": "SGD", "adamw": "AdamW"}
#: What Paddle 3.0 warns of where it trains on a CPU in float32 instead.
CPU_REASON = "amp_guard can only be enabled on CUDAPlace, XPUPlace, and CustomPlace"
_NO_SHARDING = "group_sharded_parallel only support gpu, xpu and custom_device now"
#: What ``fleet`` of Paddle 3.0 divides on GPUs only: the parameter and its least value that asks for it, what is
#: divided, Paddle's message on CPUs, and what divides it there.
_ON_GPUS_ONLY = (
    (
        "tensor_parallel",
        2,
        "matrices",
        "Only support xpu, gpu and custom_device now, but this is cpu",
        "use torch_tensor",
    ),
    ("pipeline_parallel", 2, "layers", "ProcessGroupGLOO does not support send", "use torch_pipeline"),
    ("zero_stage", SHARDED_PARAMETERS, "gradients and parameters", _NO_SHARDING, "use torch_zero"),
)
#: The parameters that ``parallel_obstacles`` refuses.
REFUSED_BY_NAME = tuple(entry[0] for entry in _ON_GPUS_ONLY)


def obstacles(configuration: Configuration, device: str) -> Iterator[str]:
    """Yield why Paddle does not train so on a device."""
    yield from device_obstacles(configuration, device)
    if configuration.precision not in FULL and device != "gpu":
        yield f"precision {configuration.precision}: Paddle trains in it on GPUs only ({CPU_REASON!r})"


def memory_format_obstacles(configuration: Configuration) -> Iterator[str]:
    """Yield why a model is not trained with channels last."""
    model = configuration.model
    if configuration.memory_format != "nhwc" or model not in models.names():
        return
    if not models.load(model).pools_to_pixel:
        reason = "it flattens features of several pixels, and Paddle's layers would change their order"
        yield f"memory_format nhwc: model {model} is not supported in this layout by Paddle: {reason}"


def parallel_obstacles(configuration: Configuration, device: str) -> Iterator[str]:
    """Yield what Paddle does not divide, and what does."""
    for parameter, least, divided, message, instead in _ON_GPUS_ONLY:
        value = getattr(configuration, parameter)
        if value < least:
            continue
        setting = f"{parameter} {value}"
        if device == "gpu":
            yield f"{setting} is not implemented for Paddle, whose fleet distributes {divided} on GPUs only; {instead}"
        else:
            yield f"{setting}: Paddle 3.0 distributes {divided} on GPUs only ({message!r}); {instead}"
