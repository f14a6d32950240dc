"""What a file must hold, and one message about one that does not: file, key, value, choices.

A YAML file is a ``Section``, in which unknown keys are errors. A JSON file, which may be damaged, is a record: a dict
that a TypedDict declares, of which further keys are kept and read by nothing.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json

from dlperf_study.core import large_files, wording
from dlperf_study.core.errors import RecordError, StudyFileError
from dlperf_study.study import renamed
from dlperf_study.study.configuration import FORMER_PARAMETERS
from dlperf_study.study.strict_yaml import NEEDS_QUOTES, Location, key_path

#: What a message says after the key, by pydantic's type of error.
MESSAGES = {
    "missing": "is missing",
    "literal_error": "is {value}; {suggestion}the choices are {expected}",
    "enum": "is {value}; {suggestion}the choices are {expected}",
    "finite_number": "is {value}, which is not a finite number",
    "greater_than_equal": "is {value}; it must be at least {ge}",
    "greater_than": "is {value}; it must be more than {gt}",
    "less_than_equal": "is {value}; it must be at most {le}",
    "too_short": "is empty; it needs at least {min_length}",
    "string_too_short": "is empty",
    "int_type": "is {value}, which is not an integer",
    "float_type": "is {value}, which is not a number",
    "bool_type": "is {value}, which is not true or false",
    "string_type": "is {value}, which is not a string",
    "list_type": "is {value}, which is not a list",
    "tuple_type": "is {value}, which is not a list",
    "dict_type": "is {value}, which is not a mapping",
    "model_type": "is {value}, which is not a mapping",
    "value_error": "is {value}; {error}",
    "secret": "{error}",
}
#: How many errors one message names, and how many characters of a wrong value.
MAX_ERRORS, MAX_CHARACTERS = 20, 200
#: What is a number of these types without its quotes.
_UNQUOTED = {"int_type": r"[-+]?[0-9]+", "float_type": r"[-+]?[0-9]+(\.[0-9]+)?"}
#: The section that a message names first, of those in which a key is valid.
_PREFERRED = ("measurement", "constants")
NO_KEYS: Mapping[str, Collection[str]] = {}

M = TypeVar("M", bound=BaseModel)


class Section(BaseModel):
    """A mapping with strict types and no unknown keys."""

    # A command reads a few of the files that have a model: the others are not built.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def validate(
    model: type[M], content: dict[str, Any], source: str, keys: Mapping[str, Collection[str]], context: Any = None
) -> M:
    """Return ``content`` as ``model``.

    ``keys`` holds the valid keys of each section by the section's name, those of the file itself under "". ``context``
    is for the validators of the model.
    Raises StudyFileError with one line per error.
    """
    try:
        return model.model_validate(content, context=context)
    except ValidationError as validation_error:
        # A tuple whose entries are wrong is empty for pydantic.
        errors = [error for error in validation_error.errors() if error["type"] != "too_short" or not error["input"]]
        # A required key that is there by its old name has that error.
        old_keys = {renamed.KEYS.get(str(error["loc"][-1])) for error in errors if error["type"] == "extra_forbidden"}
        errors = [error for error in errors if error["type"] != "missing" or error["loc"][-1] not in old_keys]
        lines = [f"{source}: {error_line(error, content, keys)}" for error in errors[:MAX_ERRORS]]
        if len(errors) > MAX_ERRORS:
            lines.append(f"{source}: and {len(errors) - MAX_ERRORS} more")
        raise StudyFileError("\n".join(lines)) from None


def error_line(error: Any, content: Mapping[str, Any], keys: Mapping[str, Collection[str]] = NO_KEYS) -> str:
    """Return one error of pydantic as a sentence with its key.

    Only where unknown keys are errors, ``keys`` must hold the valid ones, as in ``validate``.
    """
    location = _location_in_file(error["loc"], content)
    if error["type"] == "extra_forbidden":
        if former := FORMER_PARAMETERS.get(str(location[-1])):
            return f"unknown key {key_path(location)}; {former}"
        section = next((part for part in reversed(error["loc"][:-1]) if part in keys), "")
        new = renamed.KEYS.get(str(location[-1]))
        if new in keys[section]:
            return f"unknown key {key_path(location)}; it was renamed to {new}"
        if new in keys.get("", ()):
            return f"unknown key {key_path(location)}; it was renamed to {new}, at the top of the file"
        if elsewhere := _other_section(str(location[-1]), section, keys):
            return f"unknown key {key_path(location)}; move it {elsewhere}"
        return f"unknown key {key_path(location)}; {wording.suggestion(str(location[-1]), 'keys', keys[section])}"
    if location[-1] == "order" and error["input"] in tuple(renamed.ORDERS):
        return f"order is {error['input']!r}; it was renamed to {renamed.ORDERS[error['input']]}"
    if location[0] == "constants" and isinstance(error["input"], list):
        return f"{key_path(location)} is a list; list several values under factors"
    value = wording.as_yaml(error["input"])
    if len(value) > MAX_CHARACTERS:
        value = f"{value[:MAX_CHARACTERS]}…"
    message = MESSAGES.get(error["type"], "is {value}, which is invalid: {message}")
    details = {"value": value, "message": error["msg"], **error.get("ctx", {})}
    # Records are written by programs, which do not misspell.
    choices = re.findall("'([^']*)'", str(details.get("expected", ""))) if keys else []
    details["suggestion"] = wording.closest(str(error["input"]), choices)
    return f"{key_path(location)} {message.format(**details)}{_remedy(error['type'], error['input'])}"


def _other_section(key: str, section: str, keys: Mapping[str, Collection[str]]) -> str:
    """Return where a key is valid if that is not in ``section``: ``below constants``."""
    if section not in ("", *_PREFERRED):
        return ""
    sections = [name for name in keys if name != section and key in keys[name]]
    if "" in sections:
        return "to the top of the file"
    preferred = [name for name in _PREFERRED if name in sections]
    return "".join(f"to {name}" for name in (*preferred, *sections)[:1])


def _remedy(kind: str, given: Any) -> str:
    """Return how to write a value of the wrong type, or nothing."""
    if kind == "string_type" and isinstance(given, (dict, list)):
        return f"; {NEEDS_QUOTES}"
    if len(str(given)) > MAX_CHARACTERS:
        return ""
    if kind in ("list_type", "tuple_type") and isinstance(given, (str, int, float)):
        return f"; write [{wording.value_text(given)}]"
    if kind in _UNQUOTED and isinstance(given, str) and re.fullmatch(_UNQUOTED[kind], given):
        return f"; write {given} without quotes"
    return ""


def _location_in_file(location: tuple[str | int, ...], content: Any) -> Location:
    """Return pydantic's location without steps that the file lacks."""
    in_file: Location = []
    for part in location[:-1]:
        if (part in content) if isinstance(part, str) else isinstance(content, list):
            in_file.append(part)
            content = content[part]
    is_index_of_single_value = isinstance(location[-1], int) and not isinstance(content, list)
    return in_file if is_index_of_single_value else [*in_file, location[-1]]


EARLIEST_TIME = datetime(2000, 1, 1, tzinfo=UTC)

T = TypeVar("T")


def matching(pattern: str, requirement: str) -> AfterValidator:
    """Return a validator of strings by a pattern."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"it must be {requirement}")
        return text

    return AfterValidator(check)


VariableName = Annotated[str, matching(r"[A-Za-z_]\w*", "the name of an environment variable")]


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


def read_text_file(path: Path) -> str:
    """Return a file's text; raises RecordError if it is unreadable."""
    try:
        large_files.require_end(path)
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise RecordError(f"{path}: is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: can't be read: {error}") from error


def parse_object(text: str, source: str) -> dict[str, Any]:
    """Return the JSON object in a text; raises RecordError without one."""
    try:
        value = from_json(text)
    except ValueError as error:
        raise RecordError(f"{source}: {_half_pair(text) or f'is not JSON ({error})'}") from error
    if not isinstance(value, dict):
        raise RecordError(f"{source}: is not a JSON object")
    return value


def lines_of_log(
    path: Path, first: Sequence[str], repeated: str, why_unended: Callable[[dict[str, Any]], str] = lambda last_line: ""
) -> list[dict[str, Any]]:
    """Return the lines of a complete log, one object each.

    ``first``: the kinds of its first lines, in order; ``repeated``: the kind of all between them and the last;
    ``why_unended``: what the last line says of a log that was not ended, or nothing.
    Raises RecordError when it is missing, holds no JSON, is truncated, or has lines of other kinds.
    """
    lines: list[dict[str, Any]] = []
    for line_number, line in enumerate(read_text_file(path).splitlines(), 1):
        lines.append(parse_object(line, f"{path}: line {line_number}"))
    if not lines or lines[-1].get("kind") != "end":
        reason = why_unended(lines[-1]) if lines else ""
        raise RecordError(f"{path}: {reason or 'truncated, it has no end line'}")
    kinds = [str(line.get("kind")) for line in lines]
    if kinds[: len(first)] != [*first] or set(kinds[len(first) : -1]) - {repeated}:
        expected = ", ".join((*first, repeated))
        raise RecordError(f"{path}: its lines are {wording.list_first(kinds)}, not {expected}, …, end")
    return lines


def _half_pair(text: str) -> str:
    """Return which string in JSON has half a surrogate pair."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    for location, string in _strings(value, []):
        if re.search("[\ud800-\udfff]", string):
            return f"{ascii(key_path(location))[1:-1]} is {string!a}, which is not text: half a pair of surrogates"
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


def validate_record(kind: TypeAdapter[T], content: Mapping[str, Any], source: str) -> T:
    """Return an object as a record of a kind.

    Raises RecordError, with the first key that is wrong and the number of others, when it is none.
    """
    try:
        return kind.validate_python(content, context=source)
    except ValidationError as validation_error:
        errors = validation_error.errors()
    # A file of a different format has different keys, so that nothing else is worth a word.
    errors = [error for error in errors if error["loc"] == ("format",)] or errors
    message = f"{source}: {error_line(errors[0], content)}"
    if len(errors) > 1:
        message += f"; {len(errors) - 1} more of its values are wrong"
    raise RecordError(message)
