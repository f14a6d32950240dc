"""Folders as registries: a module of a package is a part, and its name is what a user writes.

A module whose name begins with an underscore is not a part: several parts share it. Standard library only.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from dlperf_study.errors import DlperfStudyError
from dlperf_study.wording import unknown_name

Part = TypeVar("Part")


@dataclass(frozen=True)
class Registry(Generic[Part]):
    """The parts of a package: what each of its modules provides under the name ``attribute``.

    ``kind`` is what messages call a part, in the singular; ``error`` is raised for an unknown name.
    """

    package: str
    attribute: str
    kind: str
    error: type[DlperfStudyError]

    def names(self) -> tuple[str, ...]:
        """Return the names of the parts, in alphabetical order; imports none of them."""
        return _part_names(self.package)

    def load(self, name: str) -> Part:
        """Return the part of that name; raises ``error``, with the valid names, for an unknown one."""
        if name not in self.names():
            raise self.error(unknown_name(f"{self.kind} is", name, f"{self.kind}s", self.names()))
        part: Part = _part(self.package, name, self.attribute)
        return part


@cache
def _part_names(package: str) -> tuple[str, ...]:
    modules = iter_modules(import_module(package).__path__)
    return tuple(sorted(module.name for module in modules if not module.name.startswith("_")))


@cache
def _part(package: str, name: str, attribute: str) -> Any:
    return getattr(import_module(f"{package}.{name}"), attribute)
