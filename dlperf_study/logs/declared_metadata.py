"""Metadata declared in ``metadata.yaml`` or in ``configuration.json`` next to logs.

``metadata.yaml`` is first inferred from names, for a person to check, correct and confirm.
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field, PositiveInt, create_model

from dlperf_study.core.errors import MetadataError
from dlperf_study.core.wording import counted, shortened
from dlperf_study.core.writing import write_atomically
from dlperf_study.logs.blocks import read_whole
from dlperf_study.logs.inferred_metadata import parse_name_below, runs_of_repetitions
from dlperf_study.logs.log_files import CONFIGURATION_FILE, LogFile
from dlperf_study.logs.metadata import EXTRAS, Extras, LogMetadata, LogRun, StudyMetadata, merge_equal
from dlperf_study.study.configuration import parameters_in_scope, shared_batch, study_parameters
from dlperf_study.study.parameter import Scope
from dlperf_study.study.strict_yaml import MAX_BYTES, display_path, read_mapping
from dlperf_study.study.study_values import Values, value_type
from dlperf_study.study.validation import Section, validate

HEAD = """\
# The runs that these logs are of, inferred from the names of folders and files. Check every line: what no name says
# can be added (image_size, optimizer, data_loader, ...; docs/import-logs.md) and is missing otherwise. Then write
# `confirmed: true`, or call ingest again with --yes.
"""
#: The name of a study is that of a folder of outputs, and no path.
STUDY_NAME = r"^\w[\w.-]*$"
_COUNTS = ("global_batch", "steps_planned", "tokens_per_sample", "samples_per_epoch", "devices_per_process")
#: A higher number is none of a run: a file may declare any.
MOST_REPETITION, _SHOWN_CHARACTERS = 10**18, 40
_NOT_DECLARED = ("study", "repetitions", "quick", "timeout_seconds")
#: Files that programs leave next to their logs.
_NO_LOGS = (".md", ".py", ".sh", ".yaml", ".yml", ".png", ".svg", ".pdf", ".html", ".parquet", ".ipynb")
#: Tables of numbers, which some programs write instead of a log, or next to it.
_TABLES = (".csv", ".csv.gz")


class RunSection(Section):
    """One repetition and its logs; ``part``: which of their consecutive runs."""

    repetition: int = Field(ge=1, le=MOST_REPETITION)
    logs: list[str] = Field(min_length=1)
    part: int = Field(default=0, ge=1)


class MetadataFile(Section):
    """The whole file."""

    confirmed: bool
    study: str = Field(pattern=STUDY_NAME)
    scaling: Literal["weak", "strong"]
    baseline: Values
    configurations: list[dict[str, Any]] = Field(default=[])


def _metadata_section() -> type[BaseModel]:
    """Return the allowed keys of a configuration."""
    declarations = parameters_in_scope(Scope.WORKLOAD, Scope.NETWORK, Scope.MEASUREMENT)
    types: dict[str, Any] = {name: value_type(parameter) for name, parameter in declarations.items()}
    types |= dict.fromkeys(("study", "cluster", "precision"), str) | {"quick": bool}
    types |= dict.fromkeys(EXTRAS, str) | dict.fromkeys(_COUNTS, PositiveInt)
    optional: dict[str, Any] = {name: (value | None, None) for name, value in types.items()}
    return create_model("MetadataSection", __base__=Section, **optional, runs=(list[RunSection], []))


MetadataSection = _metadata_section()


def read_metadata_file(path: Path) -> tuple[StudyMetadata, bool]:
    """Return the metadata of an identity file, and whether they are confirmed."""
    keys = {"": tuple(MetadataFile.model_fields), "baseline": tuple(study_parameters())}
    file = validate(MetadataFile, read_mapping(path), display_path(path), keys)
    configurations = []
    for index, content in enumerate(file.configurations):
        configurations.append(_parse_metadata(content, f"{display_path(path)}: configurations[{index}]"))
    return StudyMetadata(file.study, file.scaling, file.baseline, tuple(configurations)), file.confirmed


def write_metadata_file(path: Path, study: StudyMetadata, confirmed: bool) -> None:
    """Write an identity file."""
    configurations = []
    for metadata in study.configurations:
        extras = {}
        for name, value in asdict(metadata.extras).items():
            if value not in (None, ""):
                extras[name] = value
        runs = []
        for run in metadata.runs:
            stored: dict[str, Any] = {"repetition": run.repetition, "logs": list(run.logs)}
            if run.part:
                stored["part"] = run.part
            runs.append(stored)
        configurations.append({**metadata.parameters, **extras, "runs": runs})
    content = {
        "confirmed": confirmed,
        "study": study.name,
        "scaling": study.scaling,
        "baseline": dict(study.baseline),
        "configurations": configurations,
    }
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None, width=118)
    write_atomically(path, HEAD + text)


def confirm(path: Path) -> None:
    """Mark an identity file as confirmed; everything else in it stays."""
    content = path.read_text(encoding="utf-8")
    write_atomically(path, re.sub(r"^confirmed:.*\n?", "confirmed: true\n", content, flags=re.MULTILINE))


def declared_configurations(files: Sequence[LogFile]) -> tuple[list[LogMetadata], list[LogFile]]:
    """Return the declared configurations, and all other files."""
    declarations = {}
    for file in files:
        if file.name == CONFIGURATION_FILE:
            declarations[file.parts[:-1]] = file
    logs: dict[tuple[str, ...], list[LogFile]] = defaultdict(list)
    undeclared = []
    for file in files:
        if file.name == CONFIGURATION_FILE:
            continue
        folder = file.parts[:-1]
        while folder and folder not in declarations:
            folder = folder[:-1]
        if not folder:
            undeclared.append(file)
        else:
            logs[folder].append(file)
    configurations = []
    for folder, file in declarations.items():
        # Tables are logs only where nothing else is.
        tables = [log for log in logs[folder] if log.name.lower().endswith(_TABLES)]
        text_logs = []
        for log in logs[folder]:
            if not log.name.lower().endswith((*_NO_LOGS, *_TABLES)):
                text_logs.append(log)
        configurations.append(_read_configuration_file(file, text_logs or tables))
    return merge_equal(configurations), undeclared


def _read_configuration_file(file: LogFile, logs: Sequence[LogFile]) -> LogMetadata:
    stored = read_whole(file.source, MAX_BYTES)
    try:
        content = json.loads(stored, object_pairs_hook=_refuse_repeated_names)
    except (ValueError, RecursionError) as error:
        raise MetadataError(f"{file.source}: can't be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise MetadataError(f"{file.source}: is a {type(content).__name__}; it must be an object of names and values")
    repetition = content.pop("repetition", None)
    if repetition is not None and (type(repetition) is not int or not 1 <= repetition <= MOST_REPETITION):
        shown = shortened(repr(repetition), _SHOWN_CHARACTERS)
        raise MetadataError(
            f"{file.source}: repetition is {shown}, which is not an integer from 1 to {MOST_REPETITION:,}"
        )
    metadata = _parse_metadata(content, file.relative_path)
    devices = int(metadata.parameters.get("nodes", 1)) * int(metadata.parameters.get("devices_per_node", 1))
    repetitions: dict[int, list[tuple[str, LogFile]]] = defaultdict(list)
    for log in logs:
        # The repetition is declared, or in the names directly below the folder, or 1.
        number_in_name, printer = parse_name_below(log.parts[len(file.parts) - 1 :])
        repetitions[repetition or number_in_name or 1].append((printer, log))
    return replace(metadata, runs=runs_of_repetitions(repetitions, devices))


def _refuse_repeated_names(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raises ValueError for a repeated name."""
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise ValueError(f"{name!r} appears twice")
        content[name] = value
    return content


def _parse_metadata(content: dict[str, Any], source: str) -> LogMetadata:
    """Return validated metadata; raises StudyFileError."""
    keys = {"": tuple(MetadataSection.model_fields), "runs": tuple(RunSection.model_fields)}
    values = validate(MetadataSection, content, source, keys).model_dump(exclude_none=True)
    runs = []
    for run in values.pop("runs"):
        runs.append(LogRun(run["repetition"], tuple(run["logs"]), run["part"]))
    extras = Extras(**{name: values.pop(name) for name in EXTRAS if name in values})
    if extras.global_batch and {"nodes", "devices_per_node"} <= values.keys():
        devices = values["nodes"] * values["devices_per_node"]
        batch = values.get("batch_per_device")
        if batch is not None and batch * devices != extras.global_batch:
            product = f"batch_per_device {batch} × {counted(devices, 'device')} is {batch * devices}"
            raise MetadataError(f"{source}: {product}, but global_batch is {extras.global_batch}; state one of the two")
        values["batch_per_device"] = shared_batch(extras.global_batch, devices)
    for name in _NOT_DECLARED:
        values.pop(name, None)
    return LogMetadata(values, tuple(runs), source, extras)
