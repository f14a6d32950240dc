"""Study files: strict YAML to a Study."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dlperf_study.core import part_search, resources
from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.paths import QUICK_SUFFIX, SELFTEST, is_selftest
from dlperf_study.study import grid, program_section, strict_yaml, study_values, validation
from dlperf_study.study.configuration import parameters_in_scope, study_parameters
from dlperf_study.study.parameter import Scope
from dlperf_study.study.study import TARGET_CI_KEYS, LargestBatchSection, QuickSection, Study, StudyFile
from dlperf_study.study.study_checks import check_study

#: The sections with values of parameters, and of the settings of a user's program.
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
        raise StudyFileError(f"{file}: a name that begins with {SELFTEST} is one of the self-test's; rename it")
    ours = resources.PARAMS / "studies" / f"{name}.yaml"
    if ours.is_file() and ours != path.resolve():
        shown = strict_yaml.display_path(ours)
        raise StudyFileError(f"{file}: its name is that of {shown}, and both would write to outputs/{name}; rename it")


def _study(name: str, source: str, content: dict[str, Any], folder: Path, quick: bool) -> Study:
    settings = program_section.declared_settings(content)
    valid_keys = {section: (*keys, *settings) if section in _WITH_SETTINGS else keys for section, keys in KEYS.items()}
    context = {study_values.SETTINGS: settings, "folder": folder, "source": source}
    try:
        file = validation.validate(StudyFile, content, source, valid_keys, context)
    except StudyFileError as error:
        missing = f"{source}: baseline is missing"
        lines = [
            f"{line}{grid.baseline_example(content)}" if line == missing else line for line in str(error).splitlines()
        ]
        raise StudyFileError("\n".join(lines)) from None
    _require_no_secret(file, settings, source)
    study = Study.model_construct(**dict(file), name=name, source=source, is_quick=quick)
    check_study(study)
    return study


def _require_no_secret(file: StudyFile, settings: Sequence[str], source: str) -> None:
    given: list[tuple[str, str, object]]
    given = [("factors", name, level) for name, levels in file.factors.items() for level in levels]
    given += [("constants", name, level) for name, level in file.constants.items()]
    given += [(f"include[{at}]", name, level) for at, point in enumerate(file.include) for name, level in point.items()]
    for section, name, level in given:
        if name in settings and (problem := program_section.secret_problem([f"{name}={level}"])):
            raise StudyFileError(f"{source}: {section}.{name} {problem}")
