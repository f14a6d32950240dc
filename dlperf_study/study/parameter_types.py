"""The types of parameters in a study file, for pydantic, made from their declarations."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

from dlperf_study.study.configuration import parameters_of, study_parameters
from dlperf_study.study.parameter import Parameter, Scalar, Scope


def value_type(parameter: Parameter) -> Any:
    """Return the type of one value: its levels or bounds, and its meaning as the description."""
    unit = f" ({parameter.unit})" if parameter.unit else ""
    description = Field(description=f"{parameter.meaning}{unit}")
    if parameter.levels:
        return Annotated[Literal[parameter.levels], description]
    if parameter.type is str:
        return Annotated[str, Field(min_length=1), description]
    if parameter.bounds:
        return Annotated[parameter.type, *_limits(parameter, parameter.bounds), description]
    return Annotated[parameter.type, description]


def _limits(parameter: Parameter, bounds: tuple[float, float]) -> tuple[Any, ...]:
    """Return the bounds of a number for pydantic; a default below them is the only valid value there."""
    smallest, largest = bounds
    if parameter.above_bound:
        return (Field(gt=smallest, le=largest),)
    if parameter.default is None or int(parameter.default) >= smallest:
        return (Field(ge=smallest, le=largest),)
    default = int(parameter.default)

    def refuse_gap(value: float) -> float:
        if default < value < smallest:
            raise ValueError(f"it must be at least {smallest}, or {default}")
        return value

    return Field(ge=default, le=largest), AfterValidator(refuse_gap)


class _Keys:
    """Make pydantic check a mapping that may have the keys of ``types``, and no others."""

    def __init__(self, name: str, types: Mapping[str, Any]) -> None:
        self._shape: Any = TypedDict(name, types, total=False)  # type: ignore[misc]
        self._shape.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self._shape)


def _types(parameters: Mapping[str, Parameter], form: Callable[[Any], Any] = lambda kind: kind) -> dict[str, Any]:
    """Return the type of each parameter; ``form`` makes it from the type of one value."""
    return {name: form(value_type(parameter)) for name, parameter in parameters.items()}


def _several(kind: Any) -> Any:
    return Annotated[list[kind], Field(min_length=1)]


def _one_or_several(kind: Any) -> Any:
    several = _several(kind)
    as_list = BeforeValidator(
        lambda value: value if isinstance(value, list) else [value], json_schema_input_type=kind | several
    )
    return Annotated[several, as_list]


_STUDY = study_parameters()
Values = Annotated[dict[str, Scalar], _Keys("Values", _types(_STUDY))]
Factors = Annotated[dict[str, list[Scalar]], _Keys("Factors", _types(_STUDY, _several))]
Choices = Annotated[dict[str, list[Scalar]], _Keys("Choices", _types(_STUDY, _one_or_several))]
Measurement = Annotated[dict[str, int], _Keys("Measurement", _types(parameters_of(Scope.MEASUREMENT)))]
