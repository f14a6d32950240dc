"""What is worth keeping of a JSON object that a program printed."""

from collections.abc import Mapping
from typing import Any


def numbers_of(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the entries that are numbers, also those printed as text; truth values are none."""
    found = {}
    for name, value in data.items():
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            try:
                found[name] = float(value)
            except (ValueError, OverflowError):
                continue
    return found


def text_facts(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the entries that are one value, as text."""
    return {name: str(value) for name, value in data.items() if isinstance(value, int | float | str)}
