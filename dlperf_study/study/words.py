"""Numbers, names and what a program printed, in sentences."""

from collections.abc import Sequence


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
