"""What is said of a name that there is not: the one most like it, and all that there are. Standard library only."""

import difflib
from collections.abc import Iterable


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
