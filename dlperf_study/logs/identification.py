"""Identification of logs: their runs, from declared or inferred metadata."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dlperf_study.core.errors import MetadataError
from dlperf_study.core.terminal import text_table
from dlperf_study.core.wording import counted, list_first
from dlperf_study.logs import declared_metadata
from dlperf_study.logs.inferred_metadata import infer_configurations
from dlperf_study.logs.log_files import (
    CONFIGURATION_FILE,
    FORMER_METADATA_FILE,
    METADATA_FILE,
    LogFile,
    find_log_files,
    stem,
)
from dlperf_study.logs.metadata import REQUIRED, StudyMetadata, metadata_problems
from dlperf_study.logs.own_format import FORMAT_FILE, assign_own_formats, format_file_next_to
from dlperf_study.logs.proposed_format import proposed_format
from dlperf_study.logs.tracker_files import collect_tracker_runs
from dlperf_study.study.configuration import parameters_in_scope
from dlperf_study.study.grid import format_values
from dlperf_study.study.parameter import Scope

_BASELINE, _SCALING = {"nodes": 1, "devices_per_node": 1}, "weak"
_MOST_SEARCHED = 5
_EXAMPLE: Mapping[str, str | int] = {
    "framework": "my_program",
    "model": "my_network",
    "nodes": 1,
    "devices_per_node": 8,
    "parameter_servers": 0,
    "batch_per_device": 64,
    "precision": "fp32",
}
#: The parameters of a configuration except those of our own way of measuring.
_SHOWN_PARAMETERS = tuple(parameters_in_scope(Scope.WORKLOAD, Scope.NETWORK))


@dataclass(frozen=True)
class IdentifiedLogs:
    """The logs of a folder, their metadata and identity file."""

    folder: Path
    files: tuple[LogFile, ...]
    study: StudyMetadata
    file: Path
    confirmed: bool
    is_read: bool = False


def identify_logs(folder: Path, name: str = "", confirm: bool = False) -> IdentifiedLogs:
    """Return the logs of a folder, archive or file, with their metadata.

    Inferred metadata are written next to the logs, never over an existing file; contradictory ones are never confirmed.
    ``name``: of the study; if empty, of the metadata file or the folder. ``confirm``: confirm the metadata.

    Raises LogError for a missing folder, StudyFileError for an invalid file, and MetadataError for logs without
    metadata, or an invalid name.
    """
    if name and not re.fullmatch(declared_metadata.STUDY_NAME, name):
        rule = "must start with a letter, a digit or '_' and contain letters, digits, '_', '.' or '-'"
        raise MetadataError(f"invalid study name {name!r}: {rule}")
    root = folder.resolve()
    path = _metadata_path(root)
    candidates = [file for file in find_log_files(folder) if file.source.path != path]
    files = tuple(assign_own_formats([*collect_tracker_runs(candidates), *format_file_next_to(root)]))
    declared, undeclared = declared_metadata.declared_configurations(files)
    is_read = path.exists()
    study, confirmed = declared_metadata.read_metadata_file(path) if is_read else _infer_study(root, undeclared)
    configurations = (*study.configurations, *declared)
    if not configurations:
        raise MetadataError(_no_metadata(folder, undeclared))
    if len(configurations) == 1 and not study.configurations and not is_read:
        # Nobody declared or confirmed a baseline, and there is nothing to compare with.
        study = replace(study, baseline={})
    study = replace(study, name=name or study.name)
    if not (confirm and any(metadata_problems(configurations))):
        try:
            if not path.exists() and study.configurations:
                declared_metadata.write_metadata_file(path, study, confirm)
            elif path.exists() and confirm and not confirmed:
                declared_metadata.confirm(path)
        except OSError as error:
            reason = f"the metadata cannot be written there ({error.strerror})"
            raise MetadataError(f"{path}: {reason}: ingest a copy of the logs") from error
    logs = tuple(file for file in files if file.name != CONFIGURATION_FILE)
    complete = replace(study, configurations=configurations)
    return IdentifiedLogs(root, logs, complete, path, confirmed or confirm, is_read)


def _metadata_path(root: Path) -> Path:
    """Return the path of a metadata file; raises MetadataError if it has its former name."""
    path = root.with_name(f"{stem(root.stem)}.{METADATA_FILE}") if root.is_file() else root / METADATA_FILE
    former = path.with_name(path.name.replace(METADATA_FILE, FORMER_METADATA_FILE))
    if former.exists():
        raise MetadataError(f"{former}: is named {path.name} now; rename it")
    return path


def _infer_study(path: Path, files: Sequence[LogFile]) -> tuple[StudyMetadata, bool]:
    """Return metadata inferred from file names, unconfirmed if there are any."""
    configurations = tuple(infer_configurations(files))
    # A name that a folder of outputs can have.
    study = re.sub(r"[^\w.-]+", "-", stem(path.stem if path.is_file() else path.name)).strip("-.") or "logs"
    return StudyMetadata(study, _SCALING, _BASELINE, configurations), not configurations


def _no_metadata(folder: Path, files: Sequence[LogFile]) -> str:
    shown = list_first([file.relative_path for file in files]) or "no file"
    return (
        f"{folder}: no metadata of these logs ({shown}); put a {CONFIGURATION_FILE} next to the logs of a "
        "configuration, name them {N}n{G}g/{model}_b{batch}_{precision}_{repetition}.log, or write a "
        f"{METADATA_FILE}, as docs/import-logs.md shows{_proposal(files)}"
    )


def _proposal(files: Sequence[LogFile]) -> str:
    """Return a proposed format for unknown logs, or empty."""
    proposals = (proposed_format(file.source) for file in files[:_MOST_SEARCHED])
    proposal = next(filter(None, proposals), None)
    if proposal is None:
        return ""
    meaning = f"{proposal.throughput} is {proposal.unit} of the whole job (else `of: rank` or `of: device`)"
    configuration = json.dumps(_EXAMPLE)
    return (
        f".\nNo format has these lines, which repeat: {proposal.line!r}\n"
        f"If {meaning}, put this {FORMAT_FILE} next to them:\n\n{proposal.text}\n"
        f"and with your own values this {CONFIGURATION_FILE}:\n\n{configuration}"
    )


def describe(logs: IdentifiedLogs) -> str:
    """Return the inferred configurations and open questions as text."""
    study, configurations = logs.study, logs.study.configurations
    unstated = set(_SHOWN_PARAMETERS).intersection(*(metadata.unstated for metadata in configurations))
    rows = []
    for metadata in configurations:
        required = [str(metadata.parameters.get(name, "?")) for name in REQUIRED]
        repetitions = ", ".join(str(run.repetition) for run in metadata.runs)
        rows.append((*required, repetitions, str(len(metadata.logs))))
    origin = "Inferred from the names of folders and files and the format of the logs"
    if logs.is_read:
        origin = "As its file says"
    lines = [
        f"{origin}: study {study.name}",
        "",
        text_table((*REQUIRED, "repetitions", "logs"), rows),
        "",
        f"Not stated, and so missing: {', '.join(filter(unstated.__contains__, _SHOWN_PARAMETERS))}",
        f"Scaling: {study.scaling}. Baseline: the same with {format_values(study.baseline)}",
    ]
    unused = study.unused_files(logs.files)
    if unused:
        lines.append(f"{counted(len(unused), 'file')} of no run: {list_first(unused)}")
    lines += [f"Not yet: {problem}" for problem in metadata_problems(configurations)]
    how_to_confirm = "Check it, correct it, then write `confirmed: true` there, or give --yes."
    file = f"Read from {logs.file}; delete it to infer anew" if logs.is_read else f"Written to {logs.file}"
    lines += [file, f"{how_to_confirm} Until then nothing is ingested."]
    return "\n".join(lines)
