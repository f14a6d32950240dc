"""Where parts are: in this package, in the folder ``parts/`` beside the study, and in installed packages.

A part is a file, or a key of ``sizes.yaml``. A part of the user is imported as a module of the room's package, so that
it imports what its room shares by the same names as the parts of the room do. Installed packages name their parts as
entry points of the group ``dlperf_study.<room>``. Standard library only.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from importlib import abc, import_module, machinery, util
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, TypeVar

from dlperf_study.core.errors import DlperfStudyError, StudyFileError
from dlperf_study.core.resources import FOLDERS, workspace
from dlperf_study.core.wording import unknown_name

Value = TypeVar("Value")
#: The folder of the user's parts; a controller sets it for every process of a run. Empty: there is none.
PARTS_VARIABLE = "DLPERF_STUDY_PARTS"
PARTS = "parts"
#: The file of a folder with parts that are values alone.
SIZES = "sizes.yaml"
_SIZE_NAME, _SIZE_VALUE = re.compile(r"(?P<name>\w+): *"), re.compile(r" +(?P<key>\w+): +(?P<value>\S.*?) *")
_WORDS = {"true": True, "false": False}
#: The folders that may be in ``parts/``, each named like the package of its room.
ROOMS = ("checks", "data_loaders", "formats", "frameworks", "image_datasets", "metrics", "models")


@dataclass(frozen=True)
class PartLocation:
    """The location of a part: module, file or entry point, provider."""

    module: str
    source: str
    is_built_in: bool
    sizes_folder: Path | None = None


def parts_folder() -> Path | None:
    """Return the folder of the user's parts: of the environment, else the one beside the studies of the workspace."""
    return _parts_folder(os.environ.get(PARTS_VARIABLE), os.getcwd())


@cache
def _parts_folder(given: str | None, current_folder: str) -> Path | None:
    if given is not None:
        return Path(given) if given else None
    for folder in (workspace() / FOLDERS["study"], workspace(), Path(current_folder)):
        if _has_rooms(folder / PARTS):
            return folder / PARTS
    return None


def parts_value() -> str:
    """Return the ``PARTS_VARIABLE`` by which processes find the same parts."""
    return str(parts_folder() or "")


def use_parts_next_to(folder: Path) -> None:
    """Let this process and its children find the folder's parts."""
    parts = folder.resolve() / PARTS
    if _has_rooms(parts):
        os.environ[PARTS_VARIABLE] = str(parts)


def cached_by_parts(function: Callable[[], Value]) -> Callable[[], Value]:
    """Return a function cached for the same folders of parts."""
    values: dict[Path | None, Value] = {}

    @wraps(function)
    def value() -> Value:
        folder = parts_folder()
        if folder not in values:
            values[folder] = function()
        return values[folder]

    return value


def locations(package: str, kind: str, error: type[DlperfStudyError]) -> Mapping[str, PartLocation]:
    """Return where the parts of a package are, by name.

    Raises ``error`` for a folder in ``parts/`` that is no room's, and for two parts of one name.
    """
    # To mypy the class of an error has no hash.
    return _locations(package, kind, error, parts_folder())  # type: ignore[arg-type]


@cache
def _locations(
    package: str, kind: str, error: type[DlperfStudyError], folder: Path | None
) -> Mapping[str, PartLocation]:
    if folder and folder.is_dir():
        for entry in sorted(folder.iterdir()):
            if entry.is_dir() and entry.name not in (*ROOMS, "__pycache__") and not entry.name.startswith("."):
                raise error(unknown_name(f"{folder} has a folder", entry.name, "folders of parts", ROOMS))
    by_name: dict[str, PartLocation] = {}
    for name, location in _all_locations(package, folder):
        if name in by_name:
            where = f"{location.source}: there is a {kind} {name!r} already, {by_name[name].source}"
            raise error(f"{where}; give the file another name")
        by_name[name] = location
    return dict(sorted(by_name.items()))


def _all_locations(package: str, folder: Path | None) -> Iterator[tuple[str, PartLocation]]:
    """Return all parts: of the package, folders, then installed packages."""
    package_folder = Path(str(import_module(package).__file__)).parent
    for name in _names_in(package_folder):
        yield name, PartLocation(f"{package}.{name}", f"{package}.{name}", is_built_in=True)
    yield from _sizes_in(package_folder, package, is_built_in=True)
    room = find_room(package)
    if folder and room:
        for name in _names_in(folder / room):
            source = str(folder / room / f"{name}.py")
            yield name, PartLocation(f"{package}.{name}", source, is_built_in=False)
        yield from _sizes_in(folder / room, package, is_built_in=False)
    if room:
        for point in _entry_points(tuple(sys.path)).select(group=f"dlperf_study.{room}"):
            yield point.name, PartLocation(point.module, f"entry point {point.value}", is_built_in=False)


@cache
def _entry_points(path: tuple[str, ...]) -> Any:
    """Return the entry points of all packages that are installed on a path of Python."""
    # Few commands look for parts, and its import takes a while.
    from importlib import metadata

    return metadata.entry_points()


def import_part(location: PartLocation, error: type[DlperfStudyError]) -> ModuleType:
    """Import a part; raises ``error``, with its file, if impossible."""
    _FINDER.forget_other_folders()
    try:
        return import_module(location.module)
    except Exception as reason:
        if location.is_built_in:
            raise
        raise error(f"{location.source}: importing it raises {type(reason).__name__}: {reason}") from reason


class _PartFinder(abc.MetaPathFinder):
    """Lets Python import the files of the user's folder as modules of the packages of their rooms."""

    def __init__(self) -> None:
        self._files: dict[str, Path] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        """Return where a module is that this package does not have; None if the user has none of this name either."""
        if not name.startswith("dlperf_study."):
            return None
        file = file_of_user(name, parts_folder())
        if file is None:
            return None
        self._files[name] = file
        return util.spec_from_file_location(name, file)

    def forget_other_folders(self) -> None:
        """Forget the modules that were imported from another folder than that of now."""
        folder = parts_folder()
        for name, file in list(self._files.items()):
            if folder is None or not file.is_relative_to(folder):
                sys.modules.pop(name, None)
                del self._files[name]


_FINDER = _PartFinder()
sys.meta_path.append(_FINDER)


def file_of_user(module: str, folder: Path | None) -> Path | None:
    """Return the file of a user's module, or None.

    Nothing but the top of an installed package is looked up, and nothing is imported.
    """
    package, _, name = module.rpartition(".")
    top, *parts = module.split(".")
    candidates: list[Path] = []
    if package.startswith("dlperf_study."):
        if folder and find_room(package):
            candidates.append(folder / find_room(package) / name)
    else:
        candidates = [path.joinpath(*parts) for path in _package_folders(top)]
    for path in candidates:
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                return file
    return None


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
            raise StudyFileError(f"{file}:{line_number}: expected a name or an indented `key: value`, not {line!r}")
    return parts


def _size_value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return _WORDS.get(text, text.strip('"'))


def find_room(package: str) -> str:
    """Return the folder in ``parts/`` for a package; empty if none."""
    name = package.rpartition(".")[2]
    if name in ROOMS:
        return name
    return ""


@cache
def _package_folders(name: str) -> tuple[Path, ...]:
    spec = util.find_spec(name)
    if spec and spec.submodule_search_locations:
        return tuple(map(Path, spec.submodule_search_locations))
    if spec and spec.origin:
        return (Path(spec.origin).with_suffix(""),)
    return ()


def _has_rooms(folder: Path) -> bool:
    return any((folder / room).is_dir() for room in ROOMS)


def _names_in(folder: Path) -> list[str]:
    return [module.name for module in iter_modules([str(folder)]) if not module.name.startswith("_")]
