"""Study files: strict YAML to a Study, and whether its keys agree with each other."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dlperf_study.core import part_search, resources
from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.paths import QUICK_SUFFIX, SELFTEST, is_selftest
from dlperf_study.core.wording import closest, value_text
from dlperf_study.study import grid, program_section, strict_yaml, study_values, validation
from dlperf_study.study.configuration import DEFAULTS, GLOBAL_BATCH, SCALE, parameters_in_scope, study_parameters
from dlperf_study.study.job import INTERLEAVED
from dlperf_study.study.parameter import Scalar, Scope
from dlperf_study.study.study import (
    BATCH_OF_SCALING,
    COMPARISON,
    PROGRAM_MEASUREMENT,
    PUBLISHED,
    TARGET_CI_KEYS,
    LargestBatchSection,
    QuickSection,
    Study,
    StudyFile,
)

#: An interval needs so many runs; further ones are asked for where it is still too wide.
REPEATS_OF_INTERVAL = 3
#: The sections with values of parameters, and of the settings of a user's program.
#: What is said of a key that is like no other, in a section that may have settings of a program.
_UNKNOWN_SETTING = re.compile(r"unknown key ((?:factors|constants)\.(\w+)); the keys are [^\n]*")
_WITH_SETTINGS = ("constants", "factors", "include", "exclude", "unpublished", "values", "where")
KEYS = {
    "": tuple(StudyFile.model_fields),
    "program": tuple(program_section.ProgramSection.model_fields),
    "quick": tuple(QuickSection.model_fields),
    **dict.fromkeys(grid.DENOMINATORS, tuple(study_values.DenominatorRule.model_fields)),
    "largest_batch": tuple(LargestBatchSection.model_fields),
    "measurement": tuple(parameters_in_scope(Scope.MEASUREMENT)),
    **dict.fromkeys(_WITH_SETTINGS, tuple(study_parameters())),
}


def load_study(name_or_path: str | Path, quick: bool = False) -> Study:
    """Return a study by its name or path, in full or quick mode.

    Parts beside the file are parts from then on.
    Raises StudyFileError for any error in the file, those of quick mode included.
    """
    path = strict_yaml.find_file("study", name_or_path)
    _check_name(path)
    part_search.use_parts_next_to(path.parent)
    content = strict_yaml.read_mapping(path)
    source, folder = strict_yaml.display_path(path), path.resolve().parent
    full = _study(path.stem, source, content, folder, quick=False)
    # In quick mode repetitions alone says how often to measure, and no configuration is in a published table.
    merged = {key: value for key, value in content.items() if key not in ("quick", "unpublished", *TARGET_CI_KEYS)}
    for key, change in content.get("quick", {}).items():
        both = isinstance(change, dict) and isinstance(merged.get(key), dict)
        merged[key] = {**merged[key], **change} if both else change
    quick_variant = _study(path.stem + QUICK_SUFFIX, f"{source} (quick)", merged, folder, quick=True)
    return quick_variant if quick else full


def _check_name(path: Path) -> None:
    """Refuse a name that is invalid or taken by this package."""
    name, file = path.stem, strict_yaml.display_path(path)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise StudyFileError(f"{file}: a study's name is made of lower-case letters, digits and underscores")
    if is_selftest(name) and path.resolve().parent != resources.PARAMS / SELFTEST:
        raise StudyFileError(f"{file}: names that begin with {SELFTEST} are reserved for the self-test; rename it")
    ours = resources.PARAMS / "studies" / f"{name}.yaml"
    if ours.is_file() and ours != path.resolve():
        shown = strict_yaml.display_path(ours)
        raise StudyFileError(f"{file}: {shown} has the same name, and both would write to outputs/{name}; rename it")


def _study(name: str, source: str, content: dict[str, Any], folder: Path, quick: bool) -> Study:
    settings = program_section.declared_settings(content)
    valid_keys = {section: (*keys, *settings) if section in _WITH_SETTINGS else keys for section, keys in KEYS.items()}
    context = {study_values.SETTINGS: settings, "folder": folder, "source": source}
    try:
        file = validation.validate(StudyFile, content, source, valid_keys, context)
    except StudyFileError as error:
        missing = re.compile(rf"^{re.escape(source)}: baseline is missing$", re.MULTILINE)
        example = grid.baseline_example(content)
        message = missing.sub(lambda line: line[0] + example, str(error))
        if "program" in content:
            message = _UNKNOWN_SETTING.sub(r"\1: the program's command has no placeholder {\2}", message)
        raise StudyFileError(message) from None
    _require_no_secret(file, settings, source)
    study = Study.model_construct(**dict(file), name=name, source=source, is_quick=quick)
    check_study(study)
    return study


def _require_no_secret(file: StudyFile, settings: Sequence[str], source: str) -> None:
    sections: list[tuple[str, Mapping[str, Any]]] = [("factors", file.factors), ("constants", file.constants)]
    sections += [(f"include[{index}]", included) for index, included in enumerate(file.include)]
    for section, values in sections:
        for name in filter(settings.__contains__, values):
            for value in values[name] if section == "factors" else [values[name]]:
                if problem := program_section.secret_problem([f"{name}={value}"]):
                    raise StudyFileError(f"{source}: {section}.{name} {problem}")


def check_study(study: Study) -> None:
    """Raise StudyFileError if the keys of a study contradict each other."""
    _check_factors(study)
    _check_settings(study)
    _check_size(study)
    _check_target_ci(study)
    _check_breakdown(study)
    _check_batch(study)
    _check_program(study)
    for index, included in enumerate(study.include):
        missing = [name for name in study.factors if name not in included]
        if missing:
            raise study.error(f"include[{index}] gives no value of {', '.join(missing)}; it must name every factor")
    _check_section(study, COMPARISON, "reference", bool(study.reference), "what to compare with")
    _check_all_different(study, "duplicate source in published", study.published)
    _check_section(study, PUBLISHED, "published", bool(study.published), "the sources to show")
    if study.unpublished and not study.published:
        raise study.error("unpublished is given, but published is not; name the source that does not have them")


def _check_factors(study: Study) -> None:
    _check_all_different(study, "duplicate in sections", study.sections)
    for name, values in study.factors.items():
        if name in study.constants:
            constant = value_text(study.constants[name])
            raise study.error(f"{name} is in constants ({constant}) and in factors; it can only be one of them")
        _check_all_different(study, f"duplicate value in factors.{name}", values)
    for name, parameter in study.parameters.items():
        if parameter.default is None and name != GLOBAL_BATCH.name and not study.gives(name):
            raise study.error(f"{name} is missing; give it in constants or in factors")


def _check_settings(study: Study) -> None:
    """Require one type for all values of a setting: they become a column of the dataset."""
    given: dict[str, list[object]] = {}
    constants = {name: [value] for name, value in study.constants.items()}
    for values in (constants, study.factors, *study.include):
        for name in values:
            if name not in study.parameters:
                given.setdefault(name, []).extend(values[name])
    for name, values_of_name in given.items():
        if not study_values.is_of_one_kind(values_of_name):
            quoted_values = dict.fromkeys(f"'{value_text(value)}'" for value in values_of_name)
            types = "several types (texts, numbers, true or false)"
            raise study.error(f"{name} has values of {types}; write all as texts in quotes: {', '.join(quoted_values)}")


def _check_size(study: Study) -> None:
    points = sum(math.prod(map(len, values.values())) for values in (study.factors, *study.include))
    if points > study.max_configurations:
        sources = "factors and include give" if study.include else "factors give"
        raise study.error(
            f"{sources} {points:,} points, more than max_configurations, which is {study.max_configurations:,}; "
            f"leave out a factor or values, or write max_configurations: {points}"
        )


def _check_batch(study: Study) -> None:
    fixed_batch, derived_batch = BATCH_OF_SCALING[study.scaling]
    parts: list[Mapping[str, object]] = [study.constants, study.factors, *study.include, *study.exclude]
    for rule in (*study.baseline, *study.rules("reference")):
        parts += (rule.where, rule.values)
    if any(derived_batch in part for part in parts):
        raise study.error(f"{derived_batch} cannot be given, because scaling is {study.scaling}; give {fixed_batch}")
    if study.scaling == "strong" and study.largest_batch is not None:
        raise study.error("largest_batch cannot be given, because scaling is strong: devices share the global batch")
    if study.scaling == "strong" and not study.program and not study.gives(fixed_batch):
        raise study.error(f"{fixed_batch} is missing, because scaling is strong; give it in constants or in factors")


def _check_target_ci(study: Study) -> None:
    """Refuse a target that can't be reached, and limits without one."""
    if study.target_ci is None:
        if study.max_repetitions is not None:
            raise study.error("max_repetitions is given, but target_ci is not; give target_ci or leave it out")
        return
    if study.order != INTERLEAVED:
        raise study.error(f"target_ci needs order: {INTERLEAVED}, because ratios get no CI in sequential order")
    repetitions = study.measurement.get("repetitions", REPEATS_OF_INTERVAL)
    if repetitions < REPEATS_OF_INTERVAL:
        raise study.error(
            f"measurement.repetitions is {repetitions}; with target_ci it must be at least {REPEATS_OF_INTERVAL}"
        )
    if study.rounds_at_most < repetitions:
        raise study.error(
            f"max_repetitions is {study.rounds_at_most}; it must be at least repetitions, which is {repetitions}"
        )


def _check_breakdown(study: Study) -> None:
    """Refuse a breakdown in fewer runs than an interval needs."""
    first, repetitions = (
        int(study.measurement.get(name, DEFAULTS[name])) for name in ("breakdown_from", "repetitions")
    )
    most = max(1, repetitions - REPEATS_OF_INTERVAL + 1)
    if first > most:
        raise study.error(
            f"measurement.breakdown_from is {first}; with repetitions {repetitions} it must be at most {most}, "
            f"because the CI of a step component needs {REPEATS_OF_INTERVAL} runs"
        )


def _check_program(study: Study) -> None:
    """Refuse placeholders without a value, and factors without an effect."""
    if not study.program:
        return
    placeholders, given = study.program.placeholders, {*study.constants, *study.factors, *SCALE, *PROGRAM_MEASUREMENT}
    for name in study.program.settings:
        if name not in given and name != GLOBAL_BATCH.name:
            raise study.error(
                f"program: the placeholder {{{name}}} has no value; {closest(name, given)}give it in constants or in "
                "factors, or write {{ and }} for braces"
            )
    for name in study.factors:
        if name not in (*placeholders, *SCALE, GLOBAL_BATCH.name):
            raise study.error(f"factors.{name}: the program's command has no placeholder {{{name}}}")
    for name in ("framework", "strategy"):
        if study.gives(name):
            raise study.error(f"{name} cannot be given for your own script; give the placeholder another name")
    for name in study.measurement:
        if name not in PROGRAM_MEASUREMENT:
            raise study.error(
                f"measurement.{name} is not supported for scripts; supported are {', '.join(PROGRAM_MEASUREMENT)}"
            )


def _check_section(study: Study, section: str, key: str, is_given: bool, needed: str) -> None:
    is_requested = section in study.sections
    if is_requested and not is_given:
        raise study.error(f"{key} is missing, because sections has {section}; give {needed}")
    if is_given and not is_requested:
        raise study.error(f"{key} is given, but sections does not contain {section}; add the section or leave it out")


def _check_all_different(study: Study, problem: str, values: Sequence[Scalar]) -> None:
    if len(set(values)) < len(values):
        raise study.error(f"{problem}: {', '.join(map(value_text, values))}")
