"""JSON that may be damaged: every key must be there, have its type, and be within its bounds."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dlperf_study.errors import EvidenceError

Object = Mapping[str, Any]
Types = type | tuple[type, ...]


def text_of(path: Path) -> str:
    """Return a file's text; raises EvidenceError when it is missing or can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise EvidenceError(f"{path}: is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise EvidenceError(f"{path}: can't be read: {error}") from error


def object_of(text: str, source: str) -> Object:
    """Return the JSON object in a text; raises EvidenceError when it contains anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{source}: is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise EvidenceError(f"{source}: is not a JSON object")
    return value


def check_types(values: Object, source: str, **types: Types) -> None:
    """Check that every key is there with its type; a boolean is not a number."""
    for key, expected in types.items():
        value = values.get(key)
        accepted = expected if isinstance(expected, tuple) else (expected,)
        if key not in values or not isinstance(value, accepted) or (type(value) is bool and bool not in accepted):
            names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in accepted)
            raise EvidenceError(f"{source}: {key} is {value!r}; its type must be {names}")


def check_not_negative(values: Object, source: str, *keys: str) -> None:
    """Check numbers that must be finite and at least 0, or null."""
    for key in keys:
        value = values[key]
        if value is not None and not 0 <= value < math.inf:
            raise EvidenceError(f"{source}: {key} is {value}; it must be at least 0")


def check_positive(values: Object, source: str, *keys: str) -> None:
    """Check numbers by which something is divided: they must be finite and above 0, or null."""
    for key in keys:
        value = values[key]
        if value is not None and not 0 < value < math.inf:
            raise EvidenceError(f"{source}: {key} is {value}; it must be above 0")


def check_past_time(values: Object, source: str, key: str) -> None:
    """Check an ISO 8601 time with its time zone, which can't be in the future."""
    try:
        time = datetime.fromisoformat(values[key])
    except ValueError as error:
        raise EvidenceError(f"{source}: {key} is {values[key]!r}, which is not a time: {error}") from error
    if time.tzinfo is None:
        raise EvidenceError(f"{source}: {key} is {values[key]!r}, a time without a time zone")
    if time > datetime.now(UTC):
        raise EvidenceError(f"{source}: {key} is {values[key]!r}, which is in the future")
