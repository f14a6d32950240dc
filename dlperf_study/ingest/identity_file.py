"""``identity.yaml``: what is proposed about logs, for a person to check, correct and confirm."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field, PositiveInt, create_model

from dlperf_study.ingest.identity import EXTRAS, Extras, Identity, LogRun, Stated
from dlperf_study.paths import write_atomically
from dlperf_study.study.configuration import parameters_of, study_parameters
from dlperf_study.study.parameter import Scope
from dlperf_study.study.parameter_types import Values, value_type
from dlperf_study.study.strict_yaml import display_path, read_mapping
from dlperf_study.study.validation import Section, validate

HEAD = """\
# Whose logs these are, as the names of folders and files tell it: a proposal. Check every line: what no name says can
# be added (image_size, optimizer, data_source, ...; docs/ingest.md), and stays missing otherwise. Then say
# `confirmed: true`, or call ingest again with --accept.
"""
#: The name of a study is that of a folder of outputs, and no path.
STUDY_NAME = r"^\w[\w.-]*$"
_COUNTS = ("steps_planned", "tokens_per_sample", "devices_per_process")
_SETTLED_ELSEWHERE = ("study", "repeats", "quick", "timeout_seconds", "trace_steps")


class RunSection(Section):
    """One repetition and its logs."""

    repetition: int = Field(ge=1)
    logs: list[str] = Field(min_length=1)


class IdentityFile(Section):
    """The whole file."""

    confirmed: bool
    study: str = Field(pattern=STUDY_NAME)
    scaling: Literal["weak", "strong"]
    baseline: Values
    configurations: list[dict[str, Any]] = Field(default=[])


def _statement() -> type[BaseModel]:
    """Return what may be stated of a configuration: our parameters, any precision, and what helps to read its logs."""
    declarations = parameters_of(Scope.WORKLOAD, Scope.NETWORK, Scope.MEASUREMENT)
    kinds: dict[str, Any] = {name: value_type(parameter) for name, parameter in declarations.items()}
    kinds |= dict.fromkeys(("study", "cluster", "precision"), str) | {"quick": bool}
    kinds |= {name: PositiveInt if name in _COUNTS else str for name in EXTRAS}
    optional: dict[str, Any] = {name: (kind | None, None) for name, kind in kinds.items()}
    return create_model("StatementSection", __base__=Section, **optional, runs=(list[RunSection], []))


StatementSection = _statement()


def stated_of(content: dict[str, Any], source: str) -> Stated:
    """Return one configuration as a mapping states it; raises StudyFileError for unknown names and wrong values."""
    keys = {"": tuple(StatementSection.model_fields), "runs": tuple(RunSection.model_fields)}
    said = validate(StatementSection, content, source, keys).model_dump(exclude_none=True)
    runs = tuple(LogRun(run["repetition"], tuple(run["logs"])) for run in said.pop("runs"))
    extras = Extras(**{name: said.pop(name) for name in EXTRAS if name in said})
    return Stated({k: v for k, v in said.items() if k not in _SETTLED_ELSEWHERE}, runs, source, extras)


def read_identity(path: Path) -> tuple[Identity, bool]:
    """Read an identity file; return what it states and whether it is confirmed.

    Raises:
        StudyFileError: it is no such file; the message names every key that is wrong.

    """
    keys = {"": tuple(IdentityFile.model_fields), "baseline": tuple(study_parameters())}
    file = validate(IdentityFile, read_mapping(path), display_path(path), keys)
    configurations = tuple(
        stated_of(content, f"{display_path(path)}: configurations[{index}]")
        for index, content in enumerate(file.configurations)
    )
    return Identity(file.study, file.scaling, file.baseline, configurations), file.confirmed


def write_identity(path: Path, identity: Identity, confirmed: bool) -> None:
    """Write a proposal."""
    content = {
        "confirmed": confirmed,
        "study": identity.study,
        "scaling": identity.scaling,
        "baseline": dict(identity.baseline),
        "configurations": [_as_mapping(stated) for stated in identity.configurations],
    }
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None, width=118)
    write_atomically(path, HEAD + text)


def confirm(path: Path) -> None:
    """Say in an identity file that it is confirmed; everything else in it stays."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    text = "".join("confirmed: true\n" if line.startswith("confirmed:") else line for line in lines)
    write_atomically(path, text)


def _as_mapping(stated: Stated) -> Mapping[str, Any]:
    extras = {name: value for name, value in asdict(stated.extras).items() if value not in (None, "")}
    runs = [{"repetition": run.repetition, "logs": list(run.logs)} for run in stated.runs]
    return {**stated.parameters, **extras, "runs": runs}
