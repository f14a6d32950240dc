"""JSON read with suspicion: every key is there, of its type, and within its bounds."""

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
    """Return the JSON object a text holds; raises EvidenceError when it holds anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{source}: is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise EvidenceError(f"{source}: is not a JSON object")
    return value


def need(values: Object, source: str, **types: Types) -> None:
    """Check that every key is there with its type; a truth value is no number."""
    for key, expected in types.items():
        value = values.get(key)
        accepted = expected if isinstance(expected, tuple) else (expected,)
        if key not in values or not isinstance(value, accepted) or (type(value) is bool and bool not in accepted):
            raise EvidenceError(f"{source}: {key} is {value!r}, which is not what belongs there")


def need_not_negative(values: Object, source: str, *keys: str) -> None:
    """Check numbers that have no sign: each finite and at least 0, or null."""
    for key in keys:
        value = values[key]
        if value is not None and not 0 <= value < math.inf:
            raise EvidenceError(f"{source}: {key} is {value}; it must be at least 0")


def need_positive(values: Object, source: str, *keys: str) -> None:
    """Check numbers that something is divided by: each finite and above 0, or null."""
    for key in keys:
        value = values[key]
        if value is not None and not 0 < value < math.inf:
            raise EvidenceError(f"{source}: {key} is {value}; it must be above 0")


def need_past_time(values: Object, source: str, key: str) -> None:
    """Check an ISO 8601 time with its zone, which can't lie ahead."""
    try:
        time = datetime.fromisoformat(values[key])
    except ValueError as error:
        raise EvidenceError(f"{source}: {key} is {values[key]!r}, which is not a time: {error}") from error
    if time.tzinfo is None:
        raise EvidenceError(f"{source}: {key} is {values[key]!r}, a time without its zone")
    if time > datetime.now(UTC):
        raise EvidenceError(f"{source}: {key} is {values[key]!r}, which is yet to come")
