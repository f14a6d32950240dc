"""Study files: strict YAML to a Study, by types that are made from the declarations of parameters."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
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

from dlperf_study.core.errors import EvidenceError, StudyFileError
from dlperf_study.core.part_search import use_parts_next_to
from dlperf_study.core.paths import QUICK_SUFFIX, SELFTEST, is_selftest
from dlperf_study.core.resources import PARAMS
from dlperf_study.core.wording import closest
from dlperf_study.study import study
from dlperf_study.study.configuration import parameters_of, study_parameters
from dlperf_study.study.grid import DENOMINATORS, DenominatorRule, Rules, baseline_example
from dlperf_study.study.parameter import Parameter, Scalar, Scope
from dlperf_study.study.precision import COMPUTED_IN
from dlperf_study.study.program import Program
from dlperf_study.study.program_section import ProgramSection, declared_settings, secret_problem
from dlperf_study.study.strict_yaml import display_path, find_file, read_mapping
from dlperf_study.study.training_parameters import MAX_BATCH
from dlperf_study.study.validation import Section, validate


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
    """Make pydantic check a mapping that may have the keys of ``types``, and no others.

    It may also have the settings of the user's program, which are the context of the validation; ``of_settings`` is the
    type of their values.
    """

    def __init__(self, name: str, types: Mapping[str, Any], of_settings: Any = None) -> None:
        self._shape: Any = TypedDict(name, types, total=False)  # type: ignore[misc]
        self._shape.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
        self._settings = TypeAdapter(dict[str, of_settings], config=ConfigDict(strict=True)) if of_settings else None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler.generate_schema(self._shape)
        return core_schema.with_info_wrap_validator_function(self._validated, schema) if self._settings else schema

    def _validated(self, given: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> dict[str, Any]:
        """Return the mapping in its order, its parameters and its settings each by their types."""
        names = (info.context or {}).get(SETTINGS, ()) if isinstance(given, dict) else ()
        parameters = given if not names else {name: value for name, value in given.items() if name not in names}
        validated: dict[str, Any] = handler(parameters)
        if self._settings and names:
            validated |= self._settings.validate_python({name: given[name] for name in given if name in names})
            return {name: validated[name] for name in given}
        return validated


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


#: Under this name the context of a validation has the settings of the user's program.
SETTINGS = "settings"


def _check_setting(value: Any) -> Any:
    if not isinstance(value, Scalar) or value == "":
        raise ValueError("it must be a text, a number, true or false")
    return value


#: A value of a setting, of the type that YAML gives it.
Setting = Annotated[Any, AfterValidator(_check_setting)]
_STUDY = study_parameters()
Values = Annotated[dict[str, Scalar], _Keys("Values", _types(_STUDY), Setting)]
Factors = Annotated[dict[str, list[Scalar]], _Keys("Factors", _types(_STUDY, _several), _several(Setting))]
Choices = Annotated[
    dict[str, list[Scalar]], _Keys("Choices", _types(_STUDY, _one_or_several), _one_or_several(Setting))
]
Measurement = Annotated[dict[str, int], _Keys("Measurement", _types(parameters_of(Scope.MEASUREMENT)))]


class RuleSection(Section):
    """What the configurations that match ``where`` are compared with."""

    where: Choices = Field(default={}, description="which configurations; left out: all")
    values: Values = Field(description="put into a configuration, these make the one it is compared with")


#: A file may give one mapping of values for all configurations in place of a list of rules.
RuleSections = Annotated[
    list[RuleSection],
    Field(min_length=1),
    BeforeValidator(
        lambda given: [{"values": given}] if isinstance(given, dict) else given,
        json_schema_input_type=Values | list[RuleSection],
    ),
]


def one_of(kind: str, valid_names: Callable[[], tuple[str, ...]]) -> AfterValidator:
    """Return a validator that refuses names that are not valid, and then lists the valid ones."""

    def check(name: str) -> str:
        if name not in valid_names():
            raise ValueError(f"{closest(name, valid_names())}the {kind} are {', '.join(valid_names())}")
        return name

    return AfterValidator(check)


def _no_former_question(name: str) -> str:
    if name in study.FORMER_QUESTIONS:
        raise ValueError(study.FORMER_QUESTIONS[name])
    return name


Question = Annotated[
    str,
    AfterValidator(_no_former_question),
    one_of("questions", lambda: study.QUESTIONS),
    Field(json_schema_extra=lambda schema: schema.update(enum=list(study.QUESTIONS))),
]
SourceName = Annotated[str, one_of("published sources", study.source_names)]


def _share(given: object) -> object:
    """Return a percentage, ``2 %``, as the share that it is; anything else as it was given."""
    if not isinstance(given, str):
        if isinstance(given, int | float) and given > study.LARGEST_PRECISION:
            raise ValueError(
                f"a number is a share, at most {study.LARGEST_PRECISION}; write per cent as in precision: 2 %"
            )
        return given
    percentage = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", given)
    if not percentage:
        is_format = given in COMPUTED_IN or bool(closest(given, COMPUTED_IN))
        remedy = "; the number format is a parameter, precision below fixed or factors" if is_format else ""
        raise ValueError(f"write a percentage, as in precision: 2 %{remedy}")
    share = float(percentage[1]) / 100
    if not study.SMALLEST_PRECISION <= share <= study.LARGEST_PRECISION:
        raise ValueError(
            f"it must be at least {100 * study.SMALLEST_PRECISION:g} % and at most {100 * study.LARGEST_PRECISION:g} %"
        )
    return share


#: Wider intervals than the largest decide nothing.
Precision = Annotated[
    float,
    BeforeValidator(_share, json_schema_input_type=float | str),
    Field(ge=study.SMALLEST_PRECISION, le=study.LARGEST_PRECISION),
]


class LargestBatchSection(Section):
    """The search for the largest batch per device that fits in memory."""

    at_most: int = Field(ge=1, le=MAX_BATCH, description="the largest batch per device that is tried")
    where: Choices = Field(default={}, description="of which configurations; left out: of all")


class QuickSection(Section):
    """What quick mode changes: mappings key by key, lists as a whole."""

    fixed: Values = Field(default={})
    factors: Factors = Field(default={})
    include: list[Choices] = Field(default=[])
    exclude: list[Choices] = Field(default=[])
    baseline: RuleSections | None = None
    reference: RuleSections | None = None
    measurement: Measurement = Field(default={})
    largest_batch: LargestBatchSection | None = None


class StudyFile(Section):
    """One study: what is varied, what stays, and what a speedup is declared against."""

    title: str = Field(min_length=1, description="one line")
    about: str = Field(default="", description="a paragraph: where the study comes from, what differs")
    questions: list[Question] = Field(min_length=1, description="what its report answers")
    scaling: Literal["weak", "strong"] = Field(description="weak: batch per device fixed; strong: global batch fixed")
    fixed: Values = Field(default={}, description="the same in every configuration")
    factors: Factors = Field(min_length=1, description="levels by parameter; their product is the grid")
    include: list[Choices] = Field(default=[], description="further points, with a value of every factor")
    exclude: list[Choices] = Field(default=[], description="points that match all keys are dropped")
    baseline: RuleSections = Field(
        description="values that make a configuration its baseline, or rules, the first match counts"
    )
    reference: RuleSections | None = Field(
        default=None, description="the same for the configuration it is compared with; for the question comparison"
    )
    published: list[SourceName] = Field(
        default=[], description="sources whose numbers are shown next to the measured ones; for the question published"
    )
    extras: list[Choices] = Field(
        default=[], description="configurations that match all keys are not in the published tables; in quick, none is"
    )
    measurement: Measurement = Field(default={}, description="how each configuration is measured")
    rate: Literal["samples", "tokens"] = Field(
        default="samples", description="what speedups and other ratios count: samples/s, or tokens/s of sequences"
    )
    order: Literal["rounds", "blocks"] = Field(
        default="rounds",
        description="rounds: each configuration once a round, shuffled; blocks: all runs of one, then of the next",
    )
    order_seed: int = Field(default=0, ge=0, lt=2**32, description="shuffles the rounds")
    max_configurations: int = Field(
        default=study.DEFAULT_MAX_CONFIGURATIONS, ge=1, description="most points of factors and include, before exclude"
    )
    precision: Precision | None = Field(
        default=None, description="target half-width of the interval of every throughput and ratio: 2 %"
    )
    max_repeats: int | None = Field(default=None, ge=1, le=1000, description="most rounds that precision may ask for")
    time_budget_minutes: float | None = Field(
        default=None, gt=0, description="no round is added that would end later, from the start of the call"
    )
    largest_batch: LargestBatchSection | None = Field(
        default=None, description="find the largest batch per device that fits in memory, by short runs"
    )
    quick: QuickSection = Field(default=QuickSection(), description="what the short variant changes")
    program: ProgramSection | None = Field(
        default=None,
        description="a training program of your own, which is measured in place of a network of this package",
    )


#: The sections with values of parameters, and of the settings of a user's program.
_WITH_SETTINGS = ("fixed", "factors", "include", "exclude", "extras", "values", "where")
KEYS = {
    "": tuple(StudyFile.model_fields),
    "program": tuple(ProgramSection.model_fields),
    "quick": tuple(QuickSection.model_fields),
    **dict.fromkeys(DENOMINATORS, tuple(RuleSection.model_fields)),
    "largest_batch": tuple(LargestBatchSection.model_fields),
    "measurement": tuple(parameters_of(Scope.MEASUREMENT)),
    **dict.fromkeys(_WITH_SETTINGS, tuple(study_parameters())),
}


def load_study(name_or_path: str | Path, quick: bool = False) -> study.Study:
    """Return a study by its name in ``params/studies`` or by the path of its file, in full or in quick mode.

    Parts beside the file are parts from then on.
    Raises StudyFileError for any error in the file, those of quick mode included.
    """
    path = find_file("study", name_or_path)
    _check_name(path)
    use_parts_next_to(path.parent)
    content = read_mapping(path)
    source, folder = display_path(path), path.resolve().parent
    full = _study(path.stem, source, content, folder, quick=False)
    # In quick mode repeats alone say how often to measure, and no configuration is in a published table.
    merged = {key: value for key, value in content.items() if key not in ("quick", "extras", *study.PRECISION_KEYS)}
    for key, change in content.get("quick", {}).items():
        both = isinstance(change, dict) and isinstance(merged.get(key), dict)
        merged[key] = {**merged[key], **change} if both else change
    quick_variant = _study(path.stem + QUICK_SUFFIX, f"{source} (quick)", merged, folder, quick=True)
    return quick_variant if quick else full


def _check_name(path: Path) -> None:
    """Refuse a name that can't be a folder's, and that of a study of this package: both would share a folder."""
    name, file = path.stem, display_path(path)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise StudyFileError(f"{file}: a study's name is made of lower-case letters, digits and underscores")
    if is_selftest(name) and path.resolve().parent != PARAMS / SELFTEST:
        raise StudyFileError(f"{file}: a name that begins with {SELFTEST} is one of the self-test's; rename it")
    ours = PARAMS / "studies" / f"{name}.yaml"
    if ours.is_file() and ours != path.resolve():
        raise StudyFileError(
            f"{file}: its name is that of {display_path(ours)}, and both would write to outputs/{name}; rename it"
        )


def _study(name: str, source: str, content: dict[str, Any], folder: Path, quick: bool) -> study.Study:
    settings = declared_settings(content)
    valid_keys = {section: (*keys, *settings) if section in _WITH_SETTINGS else keys for section, keys in KEYS.items()}
    try:
        file = validate(StudyFile, content, source, valid_keys, {SETTINGS: settings})
    except StudyFileError as error:
        missing = f"{source}: baseline is missing"
        lines = [f"{line}{baseline_example(content)}" if line == missing else line for line in str(error).splitlines()]
        raise StudyFileError("\n".join(lines)) from None
    _require_no_secret(file, settings, source)
    return study.Study(
        name=name,
        source=source,
        title=file.title,
        about=file.about.strip(),
        questions=tuple(file.questions),
        scaling=file.scaling,
        fixed=file.fixed,
        factors=file.factors,
        baseline=_rules(file.baseline),
        reference=_rules(file.reference or []),
        published=tuple(file.published),
        extras=tuple(file.extras),
        include=tuple(file.include),
        exclude=tuple(file.exclude),
        measurement=file.measurement,
        order=file.order,
        order_seed=file.order_seed,
        rate=file.rate,
        max_configurations=file.max_configurations,
        precision=file.precision,
        max_repeats=file.max_repeats,
        time_budget_minutes=file.time_budget_minutes,
        largest_batch=file.largest_batch.at_most if file.largest_batch else None,
        largest_batch_where=file.largest_batch.where if file.largest_batch else {},
        quick=quick,
        program=_program(file.program, folder, source) if file.program else None,
    )


def _require_no_secret(file: StudyFile, settings: Sequence[str], source: str) -> None:
    """Raise StudyFileError where a setting of the user's program has a secret: evidence has it, and every page."""
    given: list[tuple[str, str, object]]
    given = [("factors", name, level) for name, levels in file.factors.items() for level in levels]
    given += [("fixed", name, level) for name, level in file.fixed.items()]
    given += [(f"include[{at}]", name, level) for at, point in enumerate(file.include) for name, level in point.items()]
    for section, name, level in given:
        if name in settings and (problem := secret_problem([f"{name}={level}"])):
            raise StudyFileError(f"{source}: {section}.{name} {problem}")


def _program(section: ProgramSection, folder: Path, source: str) -> Program:
    try:
        return section.declared(folder)
    except EvidenceError as error:
        raise StudyFileError(f"{source}: program.steps is {section.steps!r}: {error}") from error


def _rules(sections: list[RuleSection]) -> Rules:
    return tuple(DenominatorRule(section.values, section.where) for section in sections)
