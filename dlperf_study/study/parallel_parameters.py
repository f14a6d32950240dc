"""The parameters that say how devices divide a model and its batches, with the names that Megatron-LM has for them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dlperf_study.core.wording import counted
from dlperf_study.study.layout import Layout
from dlperf_study.study.parameter import parameter

#: Far above what is built.
_MAX_DEGREE, _MAX_BATCHES = 4_096, 100_000
#: The least stage of ZeRO that divides the parameters themselves.
SHARDED_PARAMETERS = 2
#: The orders in which a pipeline works on its micro-batches.
GPIPE, ONE_FORWARD_ONE_BACKWARD, INTERLEAVED = SCHEDULES = ("gpipe", "1f1b", "interleaved_1f1b")
#: Which activations the backward pass computes again.
FULL_CHECKPOINTING = "full"
RECOMPUTATIONS = ("none", FULL_CHECKPOINTING)
#: The parameters that divide a model among devices.
DEGREES = ("tensor_parallel", "pipeline_parallel", "context_parallel")


@dataclass(frozen=True)
class ParallelParameters:
    """The parameters that divide a model and its batches among devices."""

    tensor_parallel: int = parameter(
        1,
        "Tensor parallel",
        "tensor-parallel degree (shards each matrix)",
        bounds=(1, _MAX_DEGREE),
        note="only `torch_tensor` and `torch_pipeline`",
    )
    pipeline_parallel: int = parameter(
        1,
        "Pipeline parallel",
        "pipeline-parallel degree (splits the layers)",
        bounds=(1, _MAX_DEGREE),
        note="only `torch_pipeline`",
    )
    context_parallel: int = parameter(
        1,
        "Context parallel",
        "context-parallel degree (shards each sequence)",
        bounds=(1, _MAX_DEGREE),
        note="not built yet",
    )
    zero_stage: int = parameter(
        0,
        "ZeRO stage",
        "state sharded over data-parallel ranks: 1 optimizer; 2 also gradients and parameters; 3 the same, "
        "gathered layer by layer",
        bounds=(0, 3),
        note="only `torch_zero`, and 1 with `paddle_zero`",
    )
    micro_batches: int = parameter(
        1,
        "Micro-batches",
        "gradient accumulation steps",
        bounds=(1, _MAX_BATCHES),
        note="only `torch_ddp`, `torch_zero`, `torch_tensor` and `torch_pipeline`",
    )
    pipeline_schedule: str = parameter(
        "none",
        "Pipeline schedule",
        "pipeline schedule of the micro-batches",
        allowed_values=("none", *SCHEDULES),
        note="only with `pipeline_parallel`",
    )
    virtual_stages: int = parameter(
        1,
        "Virtual stages",
        "pipeline stages per device",
        bounds=(1, 1_000),
        note="above 1 only with `interleaved_1f1b`",
    )
    sequence_parallel: bool = parameter(
        False,
        "Sequence parallelism",
        "tensor-parallel ranks also shard sequences between the matrices",
        note="only with `tensor_parallel`",
    )
    activation_checkpointing: str = parameter(
        "none",
        "Activation checkpointing",
        "activation checkpointing (recomputation in the backward pass)",
        allowed_values=RECOMPUTATIONS,
        note="`full`: every transformer block, PyTorch and Horovod",
    )


def parallel_layout(values: Mapping[str, Any]) -> Layout:
    """Return the layout of these parameters or their defaults.

    The ranks with samples of their own follow from the devices: ``data``, or ``shard`` where ZeRO divides parameters.
    Where the degrees do not divide the devices, the layout has fewer devices than there are: ``layout_obstacles``.
    """
    tensor, pipeline, context, stage = (_count(values, name) for name in (*DEGREES, "zero_stage"))
    replicas = _devices(values) // (tensor * pipeline * context)
    if stage >= SHARDED_PARAMETERS:
        return Layout(pipeline, 1, replicas, context, tensor)
    return Layout(pipeline, replicas, 1, context, tensor)


def layout_obstacles(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the degrees of parallelism do not divide the devices."""
    degrees = {name: values[name] for name in DEGREES if values.get(name, 1) != 1}
    if not degrees or not (devices := _devices(values)) % math.prod(degrees.values()):
        return
    product = " × ".join(f"{name} {degree}" for name, degree in degrees.items())
    if len(degrees) > 1:
        product += f" = {math.prod(degrees.values())}"
    yield f"{product} does not divide {counted(devices, 'device')}"


def _devices(values: Mapping[str, Any]) -> int:
    return _count(values, "nodes") * _count(values, "devices_per_node")


def _count(values: Mapping[str, Any], name: str) -> int:
    """Return a value above 0, or 1 if it is missing."""
    value = values.get(name)
    if type(value) is not int:
        return 1
    return max(1, value)
