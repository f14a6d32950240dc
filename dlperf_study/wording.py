"""Numbers, names and what a program printed, in sentences."""

import difflib
from collections.abc import Iterable, Sequence

# What is said of a name that there is not: the one most like it, and all that there are. Standard library only.


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


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 device``, ``2 devices``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_of(names: Sequence[str], most: int = 10, mark: str = ", ") -> str:
    """Return the first of some names, and how many there are more."""
    more = f"{mark}and {len(names) - most} more" if len(names) > most else ""
    return mark.join(names[:most]) + more


def last_line(text: str) -> str:
    """Return the last line of a text, where programs say why they ended; of one that says nothing, nothing."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def rounded(value: float) -> str:
    """Return a number with four digits that count, and without an exponent: ``19000``."""
    return f"{float(f'{value:.4g}'):.15g}"
