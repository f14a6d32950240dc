"""Read JSON files that may be damaged: a record is valid as a whole, or one message says what is wrong with it.

A record is a dict that a TypedDict declares. Keys that it does not declare are kept, and nothing reads them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from dlperf_study.errors import EvidenceError
from dlperf_study.study.strict_yaml import Location, key_path
from dlperf_study.study.validation import error_line

#: The configuration of every record. Numbers are finite unless a key says otherwise.
RECORD = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)
#: Tables hold integers of 64 bits.
LARGEST_INTEGER = 2**63 - 1
EARLIEST_TIME = datetime(2000, 1, 1, tzinfo=UTC)

Integer = Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
#: A number of things, or an index from 0.
Count = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
#: A number of things of which there is at least one, or an index from 1.
PositiveCount = Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]
Positive = Annotated[float, Field(gt=0)]
#: No study lasts longer than thirty years.
Seconds = Annotated[float, Field(ge=0, le=1e9)]

T = TypeVar("T")


def format_number(number: int) -> AfterValidator:
    """Return a validator of the number of a file's format, of which this program reads one."""

    def check(value: int) -> int:
        if value != number:
            raise ValueError(f"this program reads format {number}")
        return value

    return AfterValidator(check)


def _check_past_time(text: str) -> str:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("it must be a time as in 2024-05-01T10:00:00+00:00") from None
    if time.tzinfo is None:
        raise ValueError("it must have a time zone, as in 2024-05-01T10:00:00+00:00")
    if not EARLIEST_TIME < time < datetime.now(UTC):
        raise ValueError(f"it must be after {EARLIEST_TIME.date()} and not in the future")
    return text


#: An ISO 8601 time with its time zone, not in the future.
PastTime = Annotated[str, AfterValidator(_check_past_time)]


def text_of(path: Path) -> str:
    """Return a file's text; raises EvidenceError when it is missing or can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise EvidenceError(f"{path}: is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise EvidenceError(f"{path}: can't be read: {error}") from error


def object_of(text: str, source: str) -> dict[str, Any]:
    """Return the JSON object in a text; raises EvidenceError when it contains anything else."""
    try:
        value = from_json(text)
    except ValueError as error:
        raise EvidenceError(f"{source}: {_half_pair(text) or f'is not JSON ({error})'}") from error
    if not isinstance(value, dict):
        raise EvidenceError(f"{source}: is not a JSON object")
    return value


def lines_to_end(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a log that its writer ended: one object each, the last of the kind ``end``.

    Raises EvidenceError when it is missing, holds no JSON, or is truncated.
    """
    lines: list[dict[str, Any]] = []
    for line_number, line in enumerate(text_of(path).splitlines(), 1):
        lines.append(object_of(line, f"{path}: line {line_number}"))
    if not lines or lines[-1].get("kind") != "end":
        raise EvidenceError(f"{path}: truncated, it has no end line")
    return lines


def _half_pair(text: str) -> str:
    """Return which string in JSON is half a pair of surrogates, and so no text; or nothing."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    for location, string in _strings(value, []):
        if re.search("[\ud800-\udfff]", string):
            return f"{ascii(key_path(location))[1:-1]} is {string!a}, which is no text: half a pair of surrogates"
    return ""


def _strings(value: Any, location: Location) -> Iterator[tuple[Location, str]]:
    """Yield every string in JSON with its location, keys included."""
    if isinstance(value, str):
        yield location, value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield [*location, key], key
            yield from _strings(entry, [*location, key])
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _strings(entry, [*location, index])


def record_of(kind: TypeAdapter[T], content: Mapping[str, Any], source: str) -> T:
    """Return an object as a record of a kind.

    Raises EvidenceError, with the first key that is wrong and the number of others, when it is none.
    """
    try:
        return kind.validate_python(content)
    except ValidationError as validation_error:
        errors = validation_error.errors()
    # A file of a different format has different keys, so that nothing else is worth a word.
    errors = [error for error in errors if error["loc"] == ("format",)] or errors
    further = f"; {len(errors) - 1} more of its values are wrong" if len(errors) > 1 else ""
    raise EvidenceError(f"{source}: {error_line(errors[0], content)}{further}")
