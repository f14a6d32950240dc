"""The parameters a study file may name: the type, the limits and the meaning of each."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

from dlperf_study.study.configuration import Scalar


def _name(meaning: str) -> Any:
    return Annotated[str, Field(min_length=1, description=meaning)]


def _at_least(least: int, meaning: str) -> Any:
    return Annotated[int, Field(ge=least, description=meaning)]


def _one_of(choices: Any, meaning: str) -> Any:
    return Annotated[choices, Field(description=meaning)]


DataSource = Literal["synthetic_device", "synthetic_host", "python_queue", "python_dataset", "zmq", "files", "dali"]

PARAMETERS: dict[str, Any] = {
    "framework": _name("framework: a file in dlperf_study/frameworks"),
    "strategy": _name("how gradients are exchanged: a strategy of the framework"),
    "model": _name("network: a file in dlperf_study/models"),
    "image_size": _at_least(1, "height and width of an image, pixels"),
    "classes": _at_least(2, "classes of the classifier"),
    "nodes": _at_least(1, "nodes"),
    "devices_per_node": _at_least(1, "devices, and so training processes, per node"),
    "servers": _at_least(0, "parameter servers, all nodes together"),
    "batch_per_device": _at_least(1, "samples per step and device; weak scaling only"),
    "global_batch": _at_least(1, "samples per step, all devices together; strong scaling only"),
    "precision": _one_of(Literal["fp32", "amp_fp16", "amp_bf16"], "number format of the computation"),
    "loss_scaling": _one_of(Literal["none", "dynamic", "static"], "how the loss is scaled in reduced precision"),
    "compiler": _one_of(Literal["none", "xla"], "compiler between model and device"),
    "optimizer": _one_of(Literal["sgd", "momentum"], "rule of the update"),
    "data_source": _one_of(DataSource, "where the samples come from"),
    "classifier": _one_of(Literal["replicated", "sharded"], "how the last layer lies on the devices"),
    "sample_ratio": Annotated[float, Field(gt=0, le=1, description="share of the classes sampled in a step")],
    "threads_per_device": _at_least(1, "CPU threads of a training process"),
    "seed": _at_least(0, "seed of parameters and data"),
}

MEASUREMENT: dict[str, Any] = {
    "warmup_steps": _at_least(1, "steps before the measured ones"),
    "measured_steps": _at_least(1, "measured steps"),
    "computation_steps": _at_least(0, "steps without exchange; 0: not measured"),
    "exchange_steps": _at_least(0, "exchanges without computation; 0: not measured"),
    "repeats": _at_least(1, "runs of each configuration; an interval needs 3"),
    "timeout_seconds": _at_least(1, "after which a run is ended"),
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


def _of_each(form: Callable[[Any], Any]) -> dict[str, Any]:
    return {name: form(kind) for name, kind in PARAMETERS.items()}


Values = Annotated[dict[str, Scalar], _Keys("Values", PARAMETERS)]
Factors = Annotated[dict[str, list[Scalar]], _Keys("Factors", _of_each(_several))]
Choices = Annotated[dict[str, list[Scalar]], _Keys("Choices", _of_each(_one_or_several))]
Measurement = Annotated[dict[str, int], _Keys("Measurement", MEASUREMENT)]
