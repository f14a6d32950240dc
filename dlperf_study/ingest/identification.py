"""Whose logs lie in a folder: stated beside them, proposed from their names, or confirmed by a person."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dlperf_study.errors import IdentityError
from dlperf_study.ingest.declared_metadata import stated
from dlperf_study.ingest.identity import NEEDED, Identity, Stated, problems_of
from dlperf_study.ingest.identity_file import STUDY_NAME, confirm, read_identity, write_identity
from dlperf_study.ingest.inferred_metadata import proposed
from dlperf_study.ingest.log_files import CONFIGURATION_FILE, IDENTITY_FILE, Found, files_of, stem
from dlperf_study.study.configuration import parameters_of
from dlperf_study.study.grid import format_values
from dlperf_study.study.parameter import Scope
from dlperf_study.terminal import text_table
from dlperf_study.wording import counted, first_of

#: What DLPerf compares with, and so what is proposed.
BASELINE = {"nodes": 1, "devices_per_node": 1}
SCALING = "weak"
#: What of a configuration matters beyond our own way of measuring.
_TELLING = tuple(parameters_of(Scope.WORKLOAD, Scope.NETWORK))


@dataclass(frozen=True)
class Whose:
    """The logs of a folder. ``file``: where what is proposed lies; ``confirmed``: whether a person said it is right."""

    folder: Path
    files: tuple[Found, ...]
    identity: Identity
    file: Path
    confirmed: bool


def whose(folder: Path, name: str = "", accept: bool = False) -> Whose:
    """Return whose logs lie in a folder or an archive, and keep what is proposed of them.

    A proposal is written beside them, never over another one, and none is confirmed that contradicts itself.

    Args:
        folder: the folder, an archive or a single file
        name: of the study; without one, that of the identity file or of the folder
        accept: confirm what is proposed, or what the identity file says

    Raises:
        IdentityError: nothing tells whose logs they are, or the name is none that a study can have.
        StudyFileError: the identity file, or a ``configuration.json``, is none.
        LogError: there is no such folder or file.

    """
    if name and not re.fullmatch(STUDY_NAME, name):
        raise IdentityError(f"{name!r} names no study: letters, digits, and _ . - behind the first of them")
    file = _identity_file(folder.resolve())
    files = tuple(one for one in files_of(folder) if one.source.path != file)
    said, others = stated(files)
    identity, confirmed = read_identity(file) if file.exists() else _proposal(folder, others)
    whole = replace(identity, study=name or identity.study, configurations=(*identity.configurations, *said))
    if not whole.configurations:
        raise IdentityError(_nothing(folder, others))
    _keep(file, replace(identity, study=whole.study), whole, confirmed, accept)
    logs = tuple(one for one in files if one.name != CONFIGURATION_FILE)
    return Whose(folder.resolve(), logs, whole, file, confirmed or accept)


def _proposal(folder: Path, files: Sequence[Found]) -> tuple[Identity, bool]:
    """Return what the names of files tell; only of nothing there is nothing to confirm."""
    configurations = tuple(proposed(files))
    identity = Identity(_study_name(folder.resolve()), SCALING, BASELINE, configurations)
    return identity, not configurations


def _keep(file: Path, identity: Identity, whole: Identity, confirmed: bool, accept: bool) -> None:
    """Write a proposal, or that it is confirmed; what contradicts itself is not confirmed, and so nothing is kept."""
    if accept and any(problems_of(whole.configurations)):
        return
    try:
        if not file.exists() and identity.configurations:
            write_identity(file, identity, accept)
        elif file.exists() and accept and not confirmed:
            confirm(file)
    except OSError as error:
        said = f"can't be written, where it says whose logs these are ({error.strerror})"
        raise IdentityError(f"{file}: {said}: ingest a copy of them") from error


def describe(found: Whose) -> str:
    """Return a proposal as text: the configurations, what nobody states, and what keeps them from being ingested."""
    return "\n".join(_lines(found))


def _lines(found: Whose) -> Iterator[str]:
    configurations = found.identity.configurations
    yield f"Proposed from the names of folders and files and the look of the logs: study {found.identity.study}"
    yield ""
    yield text_table((*NEEDED, "repetitions", "logs"), [_row(stated) for stated in configurations])
    yield ""
    everywhere = [name for name in _TELLING if all(name in stated.unstated for stated in configurations)]
    yield f"Nobody states, and so missing: {', '.join(everywhere)}"
    yield f"Scaling: {found.identity.scaling}. Baseline: the same with {format_values(found.identity.baseline)}"
    others = found.identity.of_no_run(file.place for file in found.files)
    if others:
        yield f"{counted(len(others), 'file')} of no run: {first_of(others)}"
    yield from (f"Not yet: {problem}" for problem in problems_of(configurations))
    yield f"It stands in {found.file}"
    yield "Check it, correct it, then say `confirmed: true` there, or give --accept: without that nothing is ingested."


def _row(stated: Stated) -> tuple[str, ...]:
    repetitions = ", ".join(str(run.repetition) for run in stated.runs)
    logs = str(sum(len(run.logs) for run in stated.runs))
    return (*(str(stated.parameters.get(name, "?")) for name in NEEDED), repetitions, logs)


def _identity_file(path: Path) -> Path:
    return path.with_name(f"{stem(path.stem)}.{IDENTITY_FILE}") if path.is_file() else path / IDENTITY_FILE


def _study_name(folder: Path) -> str:
    """Return a name for the study that a folder of outputs can have."""
    return re.sub(r"[^\w.-]+", "-", stem(folder.stem if folder.is_file() else folder.name)).strip("-.") or "logs"


def _nothing(folder: Path, files: Sequence[Found]) -> str:
    shown = first_of([file.place for file in files]) or "no file"
    return (
        f"{folder}: nothing tells whose logs these are ({shown}): put a {CONFIGURATION_FILE} beside those of a "
        "configuration, name them {N}n{G}g/{model}_b{batch}_{precision}_{repetition}.log, or write an "
        f"{IDENTITY_FILE}, as docs/ingest.md shows"
    )
