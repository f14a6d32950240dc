"""Whether the keys of a study agree with each other: every disagreement is an error with the key and the remedy."""

import math
from collections.abc import Mapping, Sequence

from dlperf_study.core.wording import closest, level
from dlperf_study.study.configuration import DEFAULTS, GLOBAL_BATCH, SCALE
from dlperf_study.study.job import INTERLEAVED
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.study import BATCH_OF_SCALING, COMPARISON, PROGRAM_MEASUREMENT, PUBLISHED, Study

#: An interval needs so many runs; further ones are asked for where it is still too wide.
REPEATS_OF_INTERVAL = 3


def check_study(study: Study) -> None:
    """Raise StudyFileError if the keys of a study contradict each other."""
    _check_factors(study)
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
    for name, levels in study.factors.items():
        if name in study.constants:
            raise study.error(
                f"{name} is in constants ({level(study.constants[name])}) and in factors; it can only be one of them"
            )
        _check_all_different(study, f"duplicate level in factors.{name}", levels)
    for name, parameter in study.parameters.items():
        if parameter.default is None and name != GLOBAL_BATCH.name and not study.gives(name):
            raise study.error(f"{name} is missing; give it in constants or in factors")


def _check_size(study: Study) -> None:
    points = sum(math.prod(map(len, levels.values())) for levels in (study.factors, *study.include))
    if points > study.max_configurations:
        sources = "factors and include give" if study.include else "factors give"
        raise study.error(
            f"{sources} {points:,} points, more than max_configurations, which is {study.max_configurations:,}; "
            f"leave out a factor or levels, or write max_configurations: {points} if you mean it"
        )


def _check_batch(study: Study) -> None:
    fixed_batch, derived_batch = BATCH_OF_SCALING[study.scaling]
    parts: list[Mapping[str, object]] = [study.constants, study.factors, *study.include, *study.exclude]
    for rule in (*study.baseline, *study.rules("reference")):
        parts += (rule.where, rule.values)
    if any(derived_batch in part for part in parts):
        raise study.error(f"{derived_batch} can't be given, because scaling is {study.scaling}; give {fixed_batch}")
    if study.scaling == "strong" and study.largest_batch is not None:
        raise study.error("largest_batch can't be given, because scaling is strong: devices share the global batch")
    if study.scaling == "strong" and not study.program and not study.gives(fixed_batch):
        raise study.error(f"{fixed_batch} is missing, because scaling is strong; give it in constants or in factors")


def _check_target_ci(study: Study) -> None:
    """Refuse a target that can't be reached, and limits without one."""
    if study.target_ci is None:
        if study.max_repetitions is not None:
            raise study.error("max_repetitions is given, but target_ci is not; give target_ci or leave it out")
        return
    if study.order != INTERLEAVED:
        raise study.error(f"target_ci needs order: {INTERLEAVED}, because blocks have no interval of a ratio")
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
            f"measurement.breakdown_from is {first}; with repetitions {repetitions} it must be at most {most}, so that "
            f"an "
            f"interval of a part of a step has {REPEATS_OF_INTERVAL} runs"
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
            raise study.error(f"{name} can't be given for a program; give a placeholder another name")
    for name in study.measurement:
        if name not in PROGRAM_MEASUREMENT:
            raise study.error(f"measurement.{name} can't be given for a program; {', '.join(PROGRAM_MEASUREMENT)} can")


def _check_section(study: Study, section: str, key: str, is_given: bool, needed: str) -> None:
    is_requested = section in study.sections
    if is_requested and not is_given:
        raise study.error(f"{key} is missing, because sections has {section}; give {needed}")
    if is_given and not is_requested:
        raise study.error(f"{key} is given, but sections does not contain {section}; add the section or leave it out")


def _check_all_different(study: Study, problem: str, values: Sequence[Scalar]) -> None:
    if len(set(values)) < len(values):
        raise study.error(f"{problem}: {', '.join(map(level, values))}")
