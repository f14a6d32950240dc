"""Names that a user writes: those of parts, one a module of a folder, and what is said of one that there is not.

A module that several parts share has a name that begins with an underscore, and is no part. Standard library only.
"""

import difflib
from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules


def names(package: str) -> tuple[str, ...]:
    """Return the names of a package's parts, in alphabetical order; imports none of them."""
    modules = iter_modules(import_module(package).__path__)
    return tuple(sorted(module.name for module in modules if not module.name.startswith("_")))


def unknown(where: str, name: str, kind: str, valid: Iterable[str]) -> str:
    """Return what is wrong with a name that is none of the valid ones, of which ``kind`` is the plural.

    ``study a: framework is 'padle_ps'; did you mean paddle_ps? the frameworks are horovod_torch, …``.
    """
    choices = list(valid)
    return f"{where} {name!r}; {closest(name, choices)}the {kind} are {', '.join(choices)}"


def closest(word: str, choices: Iterable[str]) -> str:
    """Return a question that names the choice most like ``word``, or nothing."""
    found = difflib.get_close_matches(word, list(choices), n=1)
    return f"did you mean {found[0]}? " if found else ""
