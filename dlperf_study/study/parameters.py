"""The parameters a study file may name: the type, the limits and the meaning of each."""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

from dlperf_study.study.configuration import Scalar

# What others call a precision, in our words.


#: By the word of others in small letters.
_OURS = {"fp16": "amp_fp16", "amp": "amp_fp16", "bf16": "amp_bf16"}


def canonical_precision(word: str) -> str:
    """Return our word for a precision; any word that is not known stays as it is."""
    return _OURS.get(word.lower(), word)


def _name(meaning: str) -> Any:
    return Annotated[str, Field(min_length=1, description=meaning)]


def _whole(least: int, most: int, meaning: str) -> Any:
    return Annotated[int, Field(ge=least, le=most, description=meaning)]


def _one_of(choices: Any, meaning: str) -> Any:
    return Annotated[choices, Field(description=meaning)]


def _unless_between(value: float) -> float:
    """Refuse what is neither a time nor the -1 that stands for none."""
    if -1 < value < 0:
        raise ValueError("it must be at least 0, or -1")
    return value


#: Generous bounds, far above what is built: what lies beyond is a slip of the keyboard, which would otherwise
#: fill a disk, a memory or a week before anybody says so.
MAX_NODES, MAX_DEVICES_PER_NODE, MAX_STEPS = 10_000, 4_096, 1_000_000
#: How many points the levels of one grid may give.
MAX_POINTS = 10_000

DataSource = Literal["synthetic_device", "synthetic_host", "python_queue", "python_dataset", "zmq", "files", "dali"]

PARAMETERS: dict[str, Any] = {
    "framework": _name("framework: a file in dlperf_study/frameworks"),
    "strategy": _name("how gradients are exchanged: a strategy of the framework"),
    "model": _name("network: a file in dlperf_study/models"),
    "image_size": _whole(1, 16_384, "height and width of an image, pixels"),
    "classes": _whole(2, 100_000_000, "classes of the classifier"),
    "nodes": _whole(1, MAX_NODES, "nodes"),
    "devices_per_node": _whole(1, MAX_DEVICES_PER_NODE, "devices, and so training processes, per node"),
    "servers": _whole(0, MAX_NODES, "parameter servers, all nodes together"),
    "batch_per_device": _whole(1, 1_000_000, "samples per step and device; weak scaling only"),
    "global_batch": _whole(1, 100_000_000, "samples per step, all devices together; strong scaling only"),
    "precision": _one_of(Literal["fp32", "amp_fp16", "amp_bf16"], "number format of the computation"),
    "loss_scaling": _one_of(Literal["none", "dynamic", "static"], "how the loss is scaled in reduced precision"),
    "compiler": _one_of(Literal["none", "xla"], "compiler between model and device"),
    "memory_format": _one_of(Literal["nchw", "nhwc"], "order in which images and features lie in memory"),
    "gradient_compression": _one_of(Literal["none", "fp16"], "number format in which gradients travel"),
    "fusion_mib": _whole(-1, 65_536, "largest buffer that gradients are fused into, MiB; -1: as the library does it"),
    "cycle_time_ms": Annotated[
        float,
        Field(ge=-1, le=60_000, description="how often Horovod looks for gradients, ms; -1: as Horovod does it"),
        AfterValidator(_unless_between),
    ],
    "hierarchical": Annotated[bool, Field(description="whether Horovod reduces within a node first")],
    "optimizer": _one_of(Literal["sgd", "momentum"], "rule of the update"),
    "data_source": _one_of(DataSource, "where the samples come from"),
    "classifier": _one_of(Literal["replicated", "sharded"], "how the last layer lies on the devices"),
    "sample_ratio": Annotated[float, Field(gt=0, le=1, description="share of the classes sampled in a step")],
    "threads_per_device": _whole(1, MAX_DEVICES_PER_NODE, "CPU threads of a training process"),
    "seed": _whole(0, 2**32 - 1, "seed of parameters and data"),
}

MEASUREMENT: dict[str, Any] = {
    "warmup_steps": _whole(1, MAX_STEPS, "steps before the measured ones"),
    "measured_steps": _whole(1, MAX_STEPS, "measured steps"),
    "computation_steps": _whole(0, MAX_STEPS, "steps without exchange; 0: not measured"),
    "exchange_steps": _whole(0, MAX_STEPS, "exchanges without computation; 0: not measured"),
    "trace_steps": _whole(0, 1_000, "steps of one more run, never counted, in which Horovod writes its timeline"),
    "repeats": _whole(1, 1_000, "runs of each configuration; an interval needs 3"),
    "timeout_seconds": _whole(1, 30 * 24 * 3600, "after which a run is ended"),
}


def _one_or_several(kind: Any) -> Any:
    several = _several(kind)
    return Annotated[several, BeforeValidator(_as_list, json_schema_input_type=kind | several)]


def _several(kind: Any) -> Any:
    return Annotated[list[kind], Field(min_length=1)]


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


class _Keys:
    """Make pydantic check a mapping that may have the keys of ``types``, and no others."""

    def __init__(self, name: str, types: Mapping[str, Any]) -> None:
        self._shape: Any = TypedDict(name, types, total=False)  # type: ignore[misc]
        self._shape.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self._shape)


def _countable(levels: dict[str, list[Scalar]]) -> dict[str, list[Scalar]]:
    """Refuse a grid that nobody could list, let alone measure."""
    points = math.prod(map(len, levels.values()))
    if points > MAX_POINTS:
        raise ValueError(f"its levels give {points:,} points; the most are {MAX_POINTS:,}")
    return levels


def _of_each(form: Callable[[Any], Any]) -> dict[str, Any]:
    return {name: form(kind) for name, kind in PARAMETERS.items()}


Values = Annotated[dict[str, Scalar], _Keys("Values", PARAMETERS)]
Factors = Annotated[dict[str, list[Scalar]], _Keys("Factors", _of_each(_several)), AfterValidator(_countable)]
Choices = Annotated[dict[str, list[Scalar]], _Keys("Choices", _of_each(_one_or_several)), AfterValidator(_countable)]
Measurement = Annotated[dict[str, int], _Keys("Measurement", MEASUREMENT)]
