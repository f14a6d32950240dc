"""Folders as registries: a module of a package is a part, and its name is what a user writes.

A module whose name begins with an underscore is not a part: several parts share it. A key of ``sizes.yaml`` is one.
The user's parts belong to the registry too, wherever they are found. Standard library only.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Generic, TypeVar

from dlperf_study.core.errors import DlperfStudyError
from dlperf_study.core.part_search import PartLocation, import_part, locations, read_sizes
from dlperf_study.core.wording import unknown_name

Part = TypeVar("Part")


@dataclass(frozen=True)
class Registry(Generic[Part]):
    """The parts of a package: each module's ``attribute``.

    ``kind`` is what messages call a part, in the singular; ``error`` is raised for an unknown name, and for a part of
    the user that can't be used. ``sized`` makes a part of the name and the values of a key of ``sizes.yaml``.
    """

    package: str
    attribute: str
    kind: str
    error: type[DlperfStudyError]
    sized: Callable[[str, Mapping[str, Any]], Part] | None = None

    def names(self) -> tuple[str, ...]:
        """Return the names of the parts, without importing them."""
        return tuple(locations(self.package, self.kind, self.error))

    def load(self, name: str) -> Part:
        """Return the part of that name; raises ``error`` if unknown."""
        parts = locations(self.package, self.kind, self.error)
        if name not in parts:
            raise self.error(unknown_name(f"{self.kind} is", name, f"{self.kind}s", parts))
        part: Part = _part(self, name, parts[name])
        return part


def module_name(package: str, name: str) -> str:
    """Return the module of a part, without importing it."""
    location = locations(package, "part", DlperfStudyError).get(name)
    return location.module if location else f"{package}.{name}"


def part_modules(package: str, kind: str, error: type[DlperfStudyError]) -> Iterator[tuple[PartLocation, ModuleType]]:
    """Yield each part's location and module, users' last.

    Raises ``error`` for one that can't be imported.
    """
    for location in sorted(locations(package, kind, error).values(), key=lambda location: not location.is_built_in):
        yield location, import_part(location, error)


@cache
def _part(registry: Registry[Any], name: str, location: PartLocation) -> Any:
    if registry.sized and location.sizes_folder:
        try:
            return registry.sized(name, read_sizes(location.sizes_folder)[name])
        except DlperfStudyError as reason:
            raise registry.error(f"{location.source}: {reason}") from reason
    module = import_part(location, registry.error)
    part = getattr(module, registry.attribute, None)
    if location.is_built_in:
        return part
    if part is None:
        raise registry.error(f"{location.source}: it has no {registry.attribute}, the declaration of a {registry.kind}")
    declared = getattr(part, "name", name)
    if declared != name:
        raise registry.error(f"{location.source}: its {registry.attribute} has the name {declared!r}, not {name!r}")
    return part
