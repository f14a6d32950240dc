"""Turn the errors that pydantic reports about a file into one message: file, key, value, choices."""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dlperf_study.errors import StudyFileError
from dlperf_study.study.strict_yaml import NEEDS_QUOTES, Location, key_path
from dlperf_study.wording import as_yaml, closest

#: What a message says after the key, by pydantic's type of error.
MESSAGES = {
    "missing": "is missing",
    "literal_error": "is {value}; the choices are {expected}",
    "enum": "is {value}; the choices are {expected}",
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
}
#: How many errors one message names, and how many characters of a wrong value.
MAX_ERRORS, MAX_CHARACTERS = 20, 200
NO_KEYS: Mapping[str, Collection[str]] = {}

M = TypeVar("M", bound=BaseModel)


class Section(BaseModel):
    """A mapping in which an unknown key and a wrong type are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def validate(model: type[M], content: dict[str, Any], source: str, keys: Mapping[str, Collection[str]]) -> M:
    """Return ``content`` as ``model``.

    ``keys`` holds the valid keys of each section by the section's name, those of the file itself under "".
    Raises StudyFileError with one line per error.
    """
    try:
        return model.model_validate(content)
    except ValidationError as validation_error:
        errors = validation_error.errors()
        lines = [f"{source}: {error_line(error, content, keys)}" for error in errors[:MAX_ERRORS]]
        if len(errors) > MAX_ERRORS:
            lines.append(f"{source}: and {len(errors) - MAX_ERRORS} more")
        raise StudyFileError("\n".join(lines)) from None


def error_line(error: Any, content: Mapping[str, Any], keys: Mapping[str, Collection[str]] = NO_KEYS) -> str:
    """Return what is wrong with a value of ``content``, by its key; ``error`` is one of pydantic's.

    Only where unknown keys are errors, ``keys`` must hold the valid ones, as in ``validate``.
    """
    location = _location_in_file(error["loc"], content)
    if error["type"] == "extra_forbidden":
        section = next((part for part in reversed(error["loc"][:-1]) if part in keys), "")
        suggestion = closest(str(location[-1]), keys[section])
        return f"unknown key {key_path(location)}; {suggestion}the keys are {', '.join(keys[section])}"
    value = as_yaml(error["input"])
    if len(value) > MAX_CHARACTERS:
        value = f"{value[:MAX_CHARACTERS]}…"
    message = MESSAGES.get(error["type"], "is {value}; pydantic says: {message}")
    details = {"value": value, "message": error["msg"], **error.get("ctx", {})}
    remedy = f"; {NEEDS_QUOTES}" if error["type"] == "string_type" and isinstance(error["input"], (dict, list)) else ""
    return f"{key_path(location)} {message.format(**details)}{remedy}"


def _location_in_file(location: tuple[str | int, ...], content: Any) -> Location:
    """Return pydantic's location without the steps that are not in the file, because it uses a shorter form."""
    in_file: Location = []
    for part in location[:-1]:
        if (part in content) if isinstance(part, str) else isinstance(content, list):
            in_file.append(part)
            content = content[part]
    is_index_of_single_value = isinstance(location[-1], int) and not isinstance(content, list)
    return in_file if is_index_of_single_value else [*in_file, location[-1]]
