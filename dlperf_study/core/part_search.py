"""Where parts are: in this package, in folders ``parts/<room>/`` of the user, and in installed packages.

A part is a file, or a key of ``sizes.yaml``. A part of the user is imported as a module of the room's package, so that
it imports what its room shares by the same names as the parts of the room do. Installed packages name their parts as
entry points of the group ``dlperf_study.<room>``. Standard library only.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module, invalidate_caches
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, TypeVar

from dlperf_study.core.errors import DlperfStudyError, StudyFileError
from dlperf_study.core.resources import folders_of, workspace
from dlperf_study.core.wording import unknown_name

Value = TypeVar("Value")
#: The folders with parts of the user, as ``PATH`` has them; a driver sets it for every process of a run.
PARTS_VARIABLE = "DLPERF_STUDY_PARTS"
PARTS = "parts"
#: The file of a folder with parts that are values alone.
SIZES = "sizes.yaml"
_SIZE_NAME, _SIZE_VALUE = re.compile(r"(?P<name>\w+): *"), re.compile(r" +(?P<key>\w+): +(?P<value>\S.*?) *")
_WORDS = {"true": True, "false": False}
#: The folders of the user's parts in which Python looks for modules of a package, by that package.
_SEARCHED: dict[str, tuple[Path, ...]] = {}
#: The folders of the user's parts within a block in which none is added; None outside of one.
_FIXED_FOLDERS: ContextVar[tuple[Path, ...] | None] = ContextVar("_FIXED_FOLDERS", default=None)
#: The folders that may be in ``parts/``, each named like the package of its room.
ROOMS = ("checks", "data_sources", "formats", "frameworks", "image_sets", "metrics", "models")


@dataclass(frozen=True)
class PartLocation:
    """Where one part is: the name of its module, its file or entry point for messages, and who provides it.

    ``sizes_folder``: of a part that is a key of ``sizes.yaml``, and no module.
    """

    module: str
    source: str
    is_built_in: bool
    sizes_folder: Path | None = None


def parts_folders() -> tuple[Path, ...]:
    """Return the folders of the user's parts: those of the environment, else those of the workspace and its studies."""
    fixed = _FIXED_FOLDERS.get()
    return _parts_folders(os.environ.get(PARTS_VARIABLE), os.getcwd()) if fixed is None else fixed


@contextmanager
def fixed_parts_folders() -> Iterator[None]:
    """Ask for the folders of the user's parts once for the block: a plan needs parts a dozen times a configuration."""
    token = _FIXED_FOLDERS.set(parts_folders())
    try:
        yield
    finally:
        _FIXED_FOLDERS.reset(token)


@cache
def _parts_folders(given: str | None, current_folder: str) -> tuple[Path, ...]:
    """Return the folders for a value of the variable and a current folder; a plan asks for them at each parameter."""
    if given is not None:
        return tuple(Path(folder) for folder in given.split(os.pathsep) if folder)
    near = dict.fromkeys(folder / PARTS for folder in (workspace(), *folders_of("study")))
    return tuple(filter(_has_rooms, near))


def parts_value() -> str:
    """Return the value of ``PARTS_VARIABLE`` with which another process finds the same parts."""
    return os.pathsep.join(map(str, parts_folders()))


def use_parts_next_to(folder: Path) -> None:
    """Let this process, and those that it starts, find the parts beside a study file or logs in this folder, too."""
    new = folder.resolve() / PARTS
    if _has_rooms(new) and new not in parts_folders():
        os.environ[PARTS_VARIABLE] = os.pathsep.join(map(str, (new, *parts_folders())))


def cached_by_parts(function: Callable[[], Value]) -> Callable[[], Value]:
    """Return a function that computes its value once for the same folders of the user's parts."""
    values: dict[tuple[Path, ...], Value] = {}

    @wraps(function)
    def value() -> Value:
        folders = parts_folders()
        if folders not in values:
            values[folders] = function()
        return values[folders]

    return value


def locations(package: str, kind: str, error: type[DlperfStudyError]) -> Mapping[str, PartLocation]:
    """Return where the parts of a package are, by name in alphabetical order; imports none of them.

    Raises ``error`` for a folder in ``parts/`` that is no room's, and for two parts of one name.
    """
    folders = parts_folders()
    if _SEARCHED.get(package) != folders:
        _set_search_path(package, folders)
        _SEARCHED[package] = folders
    # To mypy the class of an error has no hash.
    return _locations(package, kind, error, folders)  # type: ignore[arg-type]


@cache
def _locations(
    package: str, kind: str, error: type[DlperfStudyError], folders: tuple[Path, ...]
) -> Mapping[str, PartLocation]:
    for folder in folders:
        for entry in sorted(folder.iterdir() if folder.is_dir() else ()):
            if entry.is_dir() and entry.name not in (*ROOMS, "__pycache__") and not entry.name.startswith("."):
                raise error(unknown_name(f"{folder} has a folder", entry.name, "folders of parts", ROOMS))
    by_name: dict[str, PartLocation] = {}
    for name, location in _all_locations(package, folders):
        if name in by_name:
            where = f"{location.source}: there is a {kind} {name!r} already, {by_name[name].source}"
            raise error(f"{where}; give the file another name")
        by_name[name] = location
    return dict(sorted(by_name.items()))


def import_part(location: PartLocation, error: type[DlperfStudyError]) -> ModuleType:
    """Import a part; raises ``error``, with the file and the reason, where a part of the user can't be imported."""
    try:
        return import_module(location.module)
    except Exception as reason:
        if location.is_built_in:
            raise
        raise error(f"{location.source}: importing it raises {type(reason).__name__}: {reason}") from reason


@cache
def _all_locations(package: str, folders: tuple[Path, ...]) -> tuple[tuple[str, PartLocation], ...]:
    """Return name and location of each part: those of the package, then of the folders, then of installed packages."""
    parts = []
    for name in _names_in(_package_folder(package)):
        parts.append((name, PartLocation(f"{package}.{name}", f"{package}.{name}", is_built_in=True)))
    parts += _sizes_in(_package_folder(package), package, is_built_in=True)
    if room := room_of(package):
        for folder in folders:
            for name in _names_in(folder / room):
                source = str(folder / room / f"{name}.py")
                parts.append((name, PartLocation(f"{package}.{name}", source, is_built_in=False)))
            parts += _sizes_in(folder / room, package, is_built_in=False)
        for point in entry_points(group=f"dlperf_study.{room}"):
            parts.append((point.name, PartLocation(point.module, f"entry point {point.value}", is_built_in=False)))
    return tuple(parts)


def _sizes_in(folder: Path, package: str, is_built_in: bool) -> Iterator[tuple[str, PartLocation]]:
    for name in read_sizes(folder):
        source = f"{name} in {folder / SIZES}"
        yield name, PartLocation(f"{package}.{name}", source, is_built_in, sizes_folder=folder)


def read_sizes(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the values of each size in a folder by name; nothing without ``sizes.yaml``.

    It is read without PyYAML, which a training image may lack. It is YAML of two levels: names, and indented below each
    its keys with a number, a boolean or a text.
    """
    file, parts = folder / SIZES, dict[str, dict[str, Any]]()
    if not file.is_file():
        return parts
    name = ""
    for line_number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if match := _SIZE_NAME.fullmatch(line):
            name = match["name"]
            parts[name] = {}
        elif name and (match := _SIZE_VALUE.fullmatch(line)):
            parts[name][match["key"]] = _size_value(match["value"])
        else:
            raise StudyFileError(f"{file}:{line_number}: neither a name nor an indented `key: value`: {line!r}")
    return parts


def _size_value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return _WORDS.get(text, text.strip('"'))


def room_of(package: str) -> str:
    """Return the folder in ``parts/`` with further parts of a package; empty if users can add none."""
    name = package.rpartition(".")[2]
    return name if name in ROOMS else ""


def file_of_user(module: str, folders: tuple[Path, ...]) -> Path | None:
    """Return the file of a module of the user, in a folder of parts or in an installed package; None if there is none.

    Nothing but the top of an installed package is looked up, and nothing is imported.
    """
    package, _, name = module.rpartition(".")
    if package.startswith("dlperf_study."):
        candidates = [folder / room_of(package) / name for folder in folders if room_of(package)]
    else:
        candidates = [path.joinpath(*module.split(".")[1:]) for path in _folders_of_package(module.partition(".")[0])]
    files = (file for path in candidates for file in (path / "__init__.py", path.with_suffix(".py")))
    return next(filter(Path.is_file, files), None)


@cache
def _folders_of_package(name: str) -> tuple[Path, ...]:
    spec = find_spec(name)
    if spec and spec.submodule_search_locations:
        return tuple(map(Path, spec.submodule_search_locations))
    return (Path(spec.origin).with_suffix(""),) if spec and spec.origin else ()


def _has_rooms(folder: Path) -> bool:
    """Return whether a folder has parts: one of this name may hold anything else."""
    return any((folder / room).is_dir() for room in ROOMS)


def _names_in(folder: Path) -> list[str]:
    return [module.name for module in iter_modules([str(folder)]) if not module.name.startswith("_")]


def _package_folder(package: str) -> Path:
    return Path(str(import_module(package).__file__)).parent


def _set_search_path(package: str, folders: tuple[Path, ...]) -> None:
    """Let Python import parts of these folders as modules of a package; forget those of other folders."""
    module, room = import_module(package), room_of(package)
    path = [str(_package_folder(package)), *(str(folder / room) for folder in folders if room)]
    former = {folder for folder in module.__path__ if folder not in path}
    if list(module.__path__) == path:
        return
    for name, imported in list(sys.modules.items()):
        if name.startswith(f"{package}.") and str(Path(str(getattr(imported, "__file__", ""))).parent) in former:
            del sys.modules[name]
    module.__path__[:] = path
    invalidate_caches()
