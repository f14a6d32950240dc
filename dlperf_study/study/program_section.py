"""The section ``program`` of a study file: a training program of the user's own."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dlperf_study.core.errors import RecordError, StudyFileError
from dlperf_study.study import secrets, validation
from dlperf_study.study.configuration import study_parameters
from dlperf_study.study.program import AMOUNTS, RECORDER, Program

_SECRET_REMEDY = "let your script read it from an environment variable, and name the variable in pass_environment"


def secret_problem(arguments: Sequence[str]) -> str:
    """Return what is wrong with arguments if one has a secret."""
    secret_parts = secrets.secrets_in(arguments)
    if secret_parts:
        return f"has {secret_parts[0]}, which the run records would show; {_SECRET_REMEDY}"
    return ""


def _require_no_secret(arguments: Sequence[str]) -> None:
    # Another error would repeat the value in its message.
    if problem := secret_problem(arguments):
        raise PydanticCustomError("secret", "{error}", {"error": problem})


def _check_command(command: str) -> str:
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"no shell can read it: {error}") from None
    if not arguments:
        raise ValueError("it names no program")
    _require_no_secret(arguments)
    return " ".join(filter(None, map(str.strip, command.splitlines())))


def _check_data(path: str) -> str:
    if ".." in PurePath(path).parts or not PurePath(path).parts:
        raise ValueError("a relative path is one below the program's folder")
    return path


def _check_environment(environment: dict[str, str]) -> dict[str, str]:
    for name, value in environment.items():
        _require_no_secret([f"{name}={value}"])
    return environment


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,39}", name):
        raise ValueError("a name begins with a letter and has at most 40 letters, digits, dots, hyphens or underscores")
    return name


Expression = Annotated[str, Field(min_length=1, max_length=200)] | Annotated[int, Field(ge=1)]


class ProgramSection(validation.Section):
    """A training program of the user, and how a run starts it."""

    name: Annotated[str, AfterValidator(_check_name)] = Field(description="name in the report")
    folder: str = Field(
        default=".", min_length=1, description="its files, from the folder of this file; copied for each run"
    )
    command: Annotated[str, Field(min_length=1), AfterValidator(_check_command)] = Field(
        description="one command line; {name} is a value of a factor, or what a run gives: {nodes}, {host_0}, {steps}"
    )
    launch: Literal["per-node", "first-node", "per-rank"] = Field(
        default="per-node",
        description="where the command is started: per-node for torchrun, first-node for mpirun, or per-rank",
    )
    timing: str = Field(
        default=RECORDER, min_length=1, description="where step times come from: recorder, or the format of its log"
    )
    samples_per_step: Expression | None = Field(
        default=None, description="samples of one step of all processes, as arithmetic: '{global_batch}'"
    )
    tokens_per_step: Expression | None = Field(
        default=None, description="tokens of one step of all processes: '{global_batch} * {block_size}'"
    )
    flops_per_sample: Expression | None = Field(
        default=None, description="floating-point operations of a sample, forward and backward; for its utilisation"
    )
    environment: Annotated[dict[validation.VariableName, str], AfterValidator(_check_environment)] = Field(
        default={}, description="variables of its processes; with placeholders too"
    )
    pass_environment: tuple[validation.VariableName, ...] = Field(
        default=(), strict=False, description="names of variables that it gets from yours"
    )
    data: tuple[Annotated[str, AfterValidator(_check_data)], ...] = Field(
        default=(),
        strict=False,
        description="paths that every node has; those that are relative are linked into the copy of each run",
    )
    booleans: tuple[str, str] = Field(
        default=("False", "True"), strict=False, description="how the command writes false and true"
    )

    def declared(self, folder: Path) -> Program:
        """Return the program for the folder of the study file."""
        log_format = ""
        if self.timing.endswith((".yaml", ".yml")):
            log_format = validation.read_text_file(folder / self.timing)
        declared = dict(self)
        for name in AMOUNTS:
            declared[name] = str(declared[name] or "")
        folder_of_program = folder.joinpath(Path(self.folder).expanduser()).resolve()
        declared |= {"folder": str(folder_of_program), "log_format": log_format, "study_folder": str(folder)}
        return Program(**declared)


class _FromSection:
    """Let pydantic make a Program of a section."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_after_validator_function(_declared, handler.generate_schema(ProgramSection))


def _declared(section: ProgramSection, info: ValidationInfo) -> Program:
    context = info.context or {}
    try:
        return section.declared(context["folder"])
    except RecordError as error:
        message = f"{context['source']}: program.timing is {section.timing!r}: {error}"
        raise StudyFileError(message) from error


DeclaredProgram = Annotated[Program, _FromSection()]


def declared_settings(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the placeholders that only a study gives.

    The file may have any error.
    """
    section = content.get("program")
    if not isinstance(section, dict):
        return ()
    environment = section.get("environment")
    values = [section.get(name) for name in ("command", *AMOUNTS)]
    values += environment.values() if isinstance(environment, dict) else []
    program = Program("", "", " ".join(value for value in values if isinstance(value, str)))
    return tuple(name for name in program.settings if name not in study_parameters())
