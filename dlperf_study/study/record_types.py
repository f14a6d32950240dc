"""The types of values in records, with their bounds: declared once for who writes and who reads. Standard library only.

Who writes is told by mypy what is missing; who reads has pydantic, which follows the rules.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

if TYPE_CHECKING:
    from typing import TypedDict
else:
    # Before Python 3.12 pydantic reads no other; where only a framework is installed, nothing is read.
    try:
        from typing_extensions import TypedDict
    except ImportError:
        from typing import TypedDict

__all__ = ["TypedDict"]

#: How every record is read: numbers are finite unless a key says otherwise. A command reads a few kinds of them: the
#: readers of the others are not built.
READING_RULES = {"extra": "allow", "strict": True, "allow_inf_nan": False, "defer_build": True}
#: Tables hold integers of 64 bits.
LARGEST_INTEGER = 2**63 - 1

T = TypeVar("T")


class Rule:
    """The unit of a value, and its limits as pydantic names them."""

    def __init__(self, unit: str = "", **demands: Any) -> None:
        self.unit, self.demands = unit, demands

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        schema = {**handler.resolve_ref_schema(handler(source)), **self.demands}
        # It is no longer the one to which others refer.
        schema.pop("ref", None)
        return schema


class FormatNumber:
    """The number of a file's format, of which this program reads one."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, value: int) -> int:
        if value > self._number:
            raise ValueError(f"a later version of this package wrote it; this version reads format {self._number}")
        if value < self._number:
            raise ValueError(f"this program reads format {self._number}")
        return value


def record_type(declaration: type[T]) -> type[T]:
    """Let a TypedDict be read as a record, which may have more keys."""
    declaration.__pydantic_config__ = READING_RULES  # type: ignore[attr-defined]
    return declaration


Integer = Annotated[int, Rule(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
#: A number of things, or an index from 0.
Count = Annotated[int, Rule(ge=0, le=LARGEST_INTEGER)]
#: A number of things of which there is at least one, or an index from 1.
PositiveCount = Annotated[int, Rule(ge=1, le=LARGEST_INTEGER)]
Positive = Annotated[float, Rule(gt=0)]
#: No study lasts longer than thirty years.
Seconds = Annotated[float, Rule("s", ge=0, le=1e9)]
