"""The types of the values of a study file, made from the declarations of parameters."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    TypeAdapter,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from dlperf_study.core.wording import closest, suggestion
from dlperf_study.study.configuration import parameters_in_scope, study_parameters
from dlperf_study.study.parameter import Parameter, Scalar, Scope
from dlperf_study.study.precision import COMPUTED_IN
from dlperf_study.study.validation import Section

MIN_TARGET_CI, MAX_TARGET_CI = 0.0001, 0.5


def value_type(parameter: Parameter) -> Any:
    """Return the type of a value, with allowed values, bounds and description."""
    unit = f" ({parameter.unit})" if parameter.unit else ""
    description = Field(description=f"{parameter.meaning}{unit}")
    if parameter.allowed_values:
        return Annotated[Literal[parameter.allowed_values], description]
    if parameter.type is str:
        return Annotated[str, Field(min_length=1), description]
    if parameter.bounds:
        return Annotated[parameter.type, *_limits(parameter, parameter.bounds), description]
    return Annotated[parameter.type, description]


def _limits(parameter: Parameter, bounds: tuple[float, float]) -> tuple[Any, ...]:
    """Return the bounds of a number; a default may be below them."""
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
    """Let pydantic check a mapping with the keys of ``types``.

    It may also have the settings of the user's program, which are the context of the validation; ``of_settings`` is the
    type of their values.
    """

    def __init__(self, name: str, types: Mapping[str, Any], of_settings: Any = None) -> None:
        self._shape: Any = TypedDict(name, types, total=False)  # type: ignore[misc]
        self._shape.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
        rules = ConfigDict(strict=True, defer_build=True)
        self._settings = TypeAdapter(dict[str, of_settings], config=rules) if of_settings else None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler.generate_schema(self._shape)
        if self._settings:
            return core_schema.with_info_wrap_validator_function(self._validated, schema)
        return schema

    def _validated(self, given: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> dict[str, Any]:
        """Return the validated parameters and settings, in their order."""
        names = (info.context or {}).get(SETTINGS, ())
        if not self._settings or not names or not isinstance(given, dict):
            return dict(handler(given))
        settings = {name: given[name] for name in given if name in names}
        parameters = {name: given[name] for name in given if name not in names}
        validated = {**handler(parameters), **self._settings.validate_python(settings)}
        return {name: validated[name] for name in given}


def _types(parameters: Mapping[str, Parameter], form: Callable[[Any], Any] = lambda kind: kind) -> dict[str, Any]:
    return {name: form(value_type(parameter)) for name, parameter in parameters.items()}


def _several(kind: Any) -> Any:
    return Annotated[list[kind], Field(min_length=1)]


def _one_or_several(kind: Any) -> Any:
    several = _several(kind)
    as_list = BeforeValidator(
        lambda value: value if isinstance(value, list) else [value], json_schema_input_type=kind | several
    )
    return Annotated[several, as_list]


#: Under this name the context of a validation has the settings of the user's program.
SETTINGS = "settings"


#: What a column of the dataset can hold.
LARGEST_INTEGER = 2**63 - 1


def _check_setting(value: Any) -> Any:
    if not isinstance(value, Scalar) or value == "":
        raise ValueError("it must be a text, a number, true or false")
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise ValueError(f"it must be at most {LARGEST_INTEGER}, or a text")
    return value


def is_of_one_kind(values: Sequence[Any]) -> bool:
    """Return whether values are all texts, all numbers, or all true or false, as a column of the dataset holds them."""
    kinds = {bool if isinstance(value, bool) else isinstance(value, str) for value in values}
    return len(kinds) < 2


#: A value of a setting, of the type that YAML gives it.
Setting = Annotated[Any, AfterValidator(_check_setting)]
_STUDY = study_parameters()
Values = Annotated[dict[str, Scalar], _Keys("Values", _types(_STUDY), Setting)]
Factors = Annotated[dict[str, list[Scalar]], _Keys("Factors", _types(_STUDY, _several), _several(Setting))]
Choices = Annotated[
    dict[str, list[Scalar]], _Keys("Choices", _types(_STUDY, _one_or_several), _one_or_several(Setting))
]
Measurement = Annotated[dict[str, int], _Keys("Measurement", _types(parameters_in_scope(Scope.MEASUREMENT)))]


class DenominatorRule(Section):
    """What points that match ``where`` are compared with: the same with ``values``."""

    where: Choices = Field(default={}, description="which configurations; left out: all")
    values: Values = Field(description="values that turn a configuration into the one it is compared with")


#: A file may give one mapping of values for all configurations in place of a list of rules.
Rules = Annotated[
    tuple[DenominatorRule, ...],
    Field(min_length=1, strict=False),
    BeforeValidator(
        lambda given: [{"values": given}] if isinstance(given, dict) else given,
        json_schema_input_type=Values | list[DenominatorRule],
    ),
]


def valid_name(kind: str, valid_names: Callable[[], tuple[str, ...]]) -> AfterValidator:
    """Return a validator that lists the valid names."""

    def check(name: str) -> str:
        if name not in valid_names():
            raise ValueError(suggestion(name, kind, valid_names()))
        return name

    return AfterValidator(check)


def _share(given: object) -> object:
    """Return a percentage as a share: ``2 %`` is 0.02."""
    if not isinstance(given, str):
        if isinstance(given, int | float) and given > MAX_TARGET_CI:
            raise ValueError(f"a number is a share, at most {MAX_TARGET_CI}; write per cent as in target_ci: 2 %")
        return given
    percentage = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", given)
    if not percentage:
        remedy = ""
        if given in COMPUTED_IN or closest(given, COMPUTED_IN):
            remedy = "; the dtype is the parameter precision, below constants or factors"
        raise ValueError(f"write a percentage, as in target_ci: 2 %{remedy}")
    share = float(percentage[1]) / 100
    if not MIN_TARGET_CI <= share <= MAX_TARGET_CI:
        raise ValueError(f"it must be at least {100 * MIN_TARGET_CI:g} % and at most {100 * MAX_TARGET_CI:g} %")
    return share


#: Wider intervals than the largest decide nothing.
TargetCi = Annotated[
    float, BeforeValidator(_share, json_schema_input_type=float | str), Field(ge=MIN_TARGET_CI, le=MAX_TARGET_CI)
]
