"""The parts that train: their names, and the user's own as files of a run. Imports no library."""

import hashlib
import io
import tarfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.part_search import PARTS_VARIABLE, cached_by_parts, parts_folder
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import unknown_name
from dlperf_study.core.writing import replacing
from dlperf_study.study.communication import STRATEGIES
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import PROGRAM_FOLDER, Job
from dlperf_study.training import data_loaders, frameworks, models

#: The place of a value, given the name of its parameter, as messages name it: ``x.yaml: factors.model[0]``.
Locate = Callable[[str, str], str]


@cached_by_parts
def display_names() -> dict[str, str]:
    """Return what pages call each part, by name."""
    names = {name: strategy.display_name for name, strategy in STRATEGIES.items()}
    names |= {framework.name: framework.display_name for framework in frameworks.all_frameworks()}
    names |= {name: models.load(name).display_name for name in models.names()}
    return names | {name: data_loaders.load(name).display_name for name in data_loaders.names()}


@cached_by_parts
def same_alone() -> tuple[tuple[str, ...], ...]:
    """Return groups of frameworks with one program per device."""
    groups: dict[str, list[str]] = {}
    for framework in sorted(frameworks.all_frameworks(), key=lambda framework: framework.library != framework.alone):
        if framework.alone:
            groups.setdefault(framework.alone, []).append(framework.name)
    return tuple(tuple(names) for names in groups.values())


@cached_by_parts
def strategies() -> tuple[str, ...]:
    """Return all strategies, also refused ones, sorted."""
    names: set[str] = set()
    for framework in frameworks.all_frameworks():
        names.update(framework.strategies, framework.refused_strategies)
    return tuple(sorted(names))


def require_part_names(configuration: Configuration, locate: Locate) -> None:
    """Raise StudyFileError for a name that doesn't exist."""
    # Such a name is an error of the user, unlike one that exists and is not supported: a strategy may be one of another
    # framework, or refused with a reason.
    framework, strategy = configuration.framework, configuration.strategy
    _require(f"{locate('framework', framework)} is", framework, "frameworks", frameworks.names())
    if strategy not in strategies():
        kind, built = f"strategies of {framework}", frameworks.load(framework).strategies
        _require(f"{locate('strategy', strategy)} is", strategy, kind, built)
    model, source = configuration.model, configuration.data_loader
    _require(f"{locate('model', model)} is", model, "models", models.names())
    _require(f"{locate('data_loader', source)} is", source, "data loaders", data_loaders.names())


def require_framework_names(keys: Collection[str], key_title: str) -> None:
    """Raise StudyFileError for a key that is no framework."""
    for name in keys:
        _require(f"{key_title} has a key", name, "frameworks", frameworks.names())


def _require(where: str, name: str, kind: str, choices: Collection[str]) -> None:
    if name not in choices:
        raise StudyFileError(unknown_name(where, name, kind, choices))


#: Larger files are data.
MOST_BYTES = 50 << 20


def add_parts(job: Job, paths: StudyPaths) -> Job:
    """Return a job with the user's parts; raises StudyFileError if too large."""
    contents = {name: file.read_bytes() for name, file in sorted(_files())}
    if (size := sum(map(len, contents.values()))) > MOST_BYTES:
        raise StudyFileError(
            f"{parts_folder()}: {size >> 20} MiB of files, and at most {MOST_BYTES >> 20} are copied for every run"
        )
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\0".encode())
    archive = paths.parts(digest.hexdigest())
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with replacing(archive) as unfinished, tarfile.open(unfinished, "w:gz") as tar:
            for name, content in contents.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    variables = {PARTS_VARIABLE: f"{{run}}/scratch/{PROGRAM_FOLDER}"}
    return replace(job.add_environment(variables), archive=str(archive))


def _files() -> Iterator[tuple[str, Path]]:
    """Yield name and path of each file of parts."""
    folder = parts_folder()
    if folder is None:
        return
    for file in folder.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file.relative_to(folder).as_posix(), file
