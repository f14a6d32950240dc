"""Whether the keys of a study agree with each other: every disagreement is an error with the key and the remedy."""

import math
from collections.abc import Mapping, Sequence

from dlperf_study.core.wording import closest, level
from dlperf_study.study.configuration import DEFAULTS, GLOBAL_BATCH, SCALE
from dlperf_study.study.job import ROUNDS
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.study import BATCH_OF_SCALING, COMPARISON, PROGRAM_MEASUREMENT, PUBLISHED, Study

#: An interval needs so many runs; further ones are asked for where it is still too wide.
REPEATS_OF_INTERVAL = 3


def check_study(study: Study) -> None:
    """Raise StudyFileError if the keys of a study contradict each other."""
    _check_factors(study)
    _check_size(study)
    _check_precision(study)
    _check_breakdown(study)
    _check_batch(study)
    _check_program(study)
    for index, included in enumerate(study.include):
        missing = [name for name in study.factors if name not in included]
        if missing:
            raise study.error(f"include[{index}] gives no value of {', '.join(missing)}; it must name every factor")
    _check_question(study, COMPARISON, "reference", bool(study.reference), "what to compare with")
    _check_all_different(study, "duplicate source in published", study.published)
    _check_question(study, PUBLISHED, "published", bool(study.published), "the sources to show")
    if study.extras and not study.published:
        raise study.error("extras is given, but published is not; name the source that does not have them")


def _check_factors(study: Study) -> None:
    _check_all_different(study, "duplicate in questions", study.questions)
    for name, levels in study.factors.items():
        if name in study.fixed:
            raise study.error(
                f"{name} is in fixed ({level(study.fixed[name])}) and in factors; it can only be one of them"
            )
        _check_all_different(study, f"duplicate level in factors.{name}", levels)
    for name, parameter in study.parameters.items():
        if parameter.default is None and name != GLOBAL_BATCH.name and not study.gives(name):
            raise study.error(f"{name} is missing; give it in fixed or in factors")


def _check_size(study: Study) -> None:
    """Refuse a study of more points than it allows."""
    points = sum(math.prod(map(len, levels.values())) for levels in (study.factors, *study.include))
    if points > study.max_configurations:
        sources = "factors and include give" if study.include else "factors give"
        raise study.error(
            f"{sources} {points:,} points, more than max_configurations, which is {study.max_configurations:,}; "
            f"leave out a factor or levels, or write max_configurations: {points} if you mean it"
        )


def _check_batch(study: Study) -> None:
    fixed_batch, derived_batch = BATCH_OF_SCALING[study.scaling]
    parts: list[Mapping[str, object]] = [study.fixed, study.factors, *study.include, *study.exclude]
    for rule in (*study.baseline, *study.rules("reference")):
        parts += (rule.where, rule.values)
    if any(derived_batch in part for part in parts):
        raise study.error(f"{derived_batch} can't be given, because scaling is {study.scaling}; give {fixed_batch}")
    if study.scaling == "strong" and study.largest_batch is not None:
        raise study.error("largest_batch can't be given, because scaling is strong: devices share the global batch")
    if study.scaling == "strong" and not study.program and not study.gives(fixed_batch):
        raise study.error(f"{fixed_batch} is missing, because scaling is strong; give it in fixed or in factors")


def _check_precision(study: Study) -> None:
    """Refuse a precision that can't be reached, and limits without one."""
    if study.precision is None:
        if study.max_repeats is not None:
            raise study.error("max_repeats is given, but precision is not; give the precision or leave it out")
        return
    if study.order != ROUNDS:
        raise study.error(f"precision needs order: {ROUNDS}, because blocks have no interval of a ratio")
    repeats = study.measurement.get("repeats", REPEATS_OF_INTERVAL)
    if repeats < REPEATS_OF_INTERVAL:
        raise study.error(f"measurement.repeats is {repeats}; with precision it must be at least {REPEATS_OF_INTERVAL}")
    if study.rounds_at_most < repeats:
        raise study.error(f"max_repeats is {study.rounds_at_most}; it must be at least repeats, which is {repeats}")


def _check_breakdown(study: Study) -> None:
    """Refuse a breakdown in fewer runs than an interval needs."""
    first, repeats = (int(study.measurement.get(name, DEFAULTS[name])) for name in ("breakdown_from", "repeats"))
    most = max(1, repeats - REPEATS_OF_INTERVAL + 1)
    if first > most:
        raise study.error(
            f"measurement.breakdown_from is {first}; with repeats {repeats} it must be at most {most}, so that an "
            f"interval of a part of a step has {REPEATS_OF_INTERVAL} runs"
        )


def _check_program(study: Study) -> None:
    """Refuse placeholders without a value, and factors without an effect."""
    if not study.program:
        return
    placeholders, given = study.program.placeholders, {*study.fixed, *study.factors, *SCALE, *PROGRAM_MEASUREMENT}
    for name in study.program.settings:
        if name not in given and name != GLOBAL_BATCH.name:
            raise study.error(
                f"program: the placeholder {{{name}}} has no value; {closest(name, given)}give it in fixed or in "
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


def _check_question(study: Study, question: str, key: str, is_given: bool, needed: str) -> None:
    """Refuse a question without its key, and a key without its question."""
    is_requested = question in study.questions
    if is_requested and not is_given:
        raise study.error(f"{key} is missing, because questions has {question}; give {needed}")
    if is_given and not is_requested:
        raise study.error(
            f"{key} is given, but questions does not contain {question}; add the question or leave it out"
        )


def _check_all_different(study: Study, problem: str, values: Sequence[Scalar]) -> None:
    if len(set(values)) < len(values):
        raise study.error(f"{problem}: {', '.join(map(level, values))}")
