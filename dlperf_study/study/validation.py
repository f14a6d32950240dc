"""Turn what pydantic finds wrong in a file into one message: file, key, value, choices."""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dlperf_study.errors import StudyFileError
from dlperf_study.wording import closest

RULES = {
    "missing": "is missing",
    "literal_error": "is {value}; the choices are {expected}",
    "greater_than_equal": "is {value}; it must be at least {ge}",
    "greater_than": "is {value}; it must be more than {gt}",
    "less_than_equal": "is {value}; it must be at most {le}",
    "too_short": "is empty; it needs at least {min_length}",
    "string_too_short": "is empty",
    "int_type": "is {value}, which is not a whole number",
    "float_type": "is {value}, which is not a number",
    "bool_type": "is {value}, which is not true or false",
    "string_type": "is {value}, which is not a text",
    "list_type": "is {value}, which is not a list",
    "tuple_type": "is {value}, which is not a list",
    "dict_type": "is {value}, which is not a mapping",
    "model_type": "is {value}, which is not a mapping",
    "value_error": "is {value}; {error}",
}
#: How many mistakes one message names, and how many characters of a wrong value.
MOST_MISTAKES, MOST_CHARACTERS = 20, 200

M = TypeVar("M", bound=BaseModel)


class Section(BaseModel):
    """A mapping in which an unknown key and a wrong type are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def validate(model: type[M], content: dict[str, Any], source: str, keys: Mapping[str, Collection[str]]) -> M:
    """Return ``content`` as ``model``.

    ``keys`` holds the valid keys of each section by the section's name, those of the file itself under "".
    Raises StudyFileError with one line per mistake.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = [f"{source}: {_line(found, content, keys)}" for found in error.errors()[:MOST_MISTAKES]]
        rest = error.error_count() - len(lines)
        raise StudyFileError("\n".join([*lines, f"{source}: and {rest} more" if rest else ""]).rstrip()) from None


def _line(found: Any, content: dict[str, Any], keys: Mapping[str, Collection[str]]) -> str:
    where = _written(found["loc"], content)
    if found["type"] == "extra_forbidden":
        section = next((part for part in reversed(found["loc"][:-1]) if part in keys), "")
        return _unknown_key(where, keys[section])
    rule = RULES.get(found["type"], "is {value}; pydantic says: {message}")
    details = {"value": _value(found["input"]), "message": found["msg"], **found.get("ctx", {})}
    return f"{_key(where)} {rule.format(**details)}"


def _value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _unknown_key(where: list[str | int], choices: Collection[str]) -> str:
    return f"unknown key {_key(where)}; {closest(str(where[-1]), choices)}the keys are {', '.join(choices)}"


def _written(location: tuple[str | int, ...], content: Any) -> list[str | int]:
    """Return the location without the steps that stand for what the file writes shorter."""
    where: list[str | int] = []
    for part in location[:-1]:
        if (part in content) if isinstance(part, str) else isinstance(content, list):
            where.append(part)
            content = content[part]
    index_of_one = isinstance(location[-1], int) and not isinstance(content, list)
    return where if index_of_one else [*where, location[-1]]


def _key(where: list[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return text.removeprefix(".")
