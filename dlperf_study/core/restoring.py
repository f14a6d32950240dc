"""Dataclasses from what JSON has of them, by their declarations. Standard library only."""

import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def restored(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return the dataclass of which ``asdict`` returned these values."""
    hints = _hints(kind)  # type: ignore[arg-type]
    return kind(**{name: _value(hints[name], value) for name, value in values.items()})


_hints = cache(get_type_hints)


def _value(kind: Any, value: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        kinds = [member for member in get_args(kind) if member is not type(None)]
        if value is None or len(kinds) > 1:
            return value
        kind = kinds[0]
    if is_dataclass(kind) and isinstance(kind, type):
        return restored(kind, value)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value)
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], entry) for entry in value)
    return value
