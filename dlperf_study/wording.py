"""How messages write numbers, names and unknown names."""

import difflib
from collections.abc import Iterable, Sequence


def unknown_name(where: str, name: str, kind: str, valid: Iterable[str]) -> str:
    """Return the message about a name that is not among the valid ones, of which ``kind`` is the plural.

    ``study a: framework is 'padle_ps'; did you mean paddle_ps? the frameworks are horovod_torch, …``.
    """
    choices = list(valid)
    return f"{where} {name!r}; {closest(name, choices)}the {kind} are {', '.join(choices)}"


def closest(name: str, choices: Iterable[str]) -> str:
    """Return a question that suggests the choice most like ``name``, or nothing."""
    matches = difflib.get_close_matches(name, list(choices), n=1)
    return f"did you mean {matches[0]}? " if matches else ""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 device``, ``2 devices``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_of(names: Sequence[str], most: int = 10, mark: str = ", ") -> str:
    """Return the first names, and how many more there are: ``a, b, and 2 more``."""
    more = f"{mark}and {len(names) - most} more" if len(names) > most else ""
    return mark.join(names[:most]) + more


def last_line(output: str) -> str:
    """Return the last line of a program's output, which often says why it ended; of empty output, nothing."""
    lines = output.strip().splitlines()
    return lines[-1] if lines else ""


def rounded(value: float) -> str:
    """Return a number with four significant digits and without an exponent: ``19000``."""
    return f"{float(f'{value:.4g}'):.15g}"
