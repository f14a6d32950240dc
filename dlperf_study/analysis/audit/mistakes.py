"""All mistakes of a table in one message: who corrects it reads them once."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from dlperf_study.errors import TableError
from dlperf_study.study.words import first_of

#: So many mistakes are told at most.
MOST = 10

Item = TypeVar("Item")
Value = TypeVar("Value")


class Mistakes:
    """What could not be read so far, each mistake once."""

    def __init__(self) -> None:
        """Begin without any."""
        self._said: dict[str, None] = {}

    def sort_out(self, items: Iterable[Item], read: Callable[[Item], Value]) -> Iterator[Value]:
        """Yield what each item is read as; what raises a TableError is kept as a mistake and left out."""
        for item in items:
            try:
                value = read(item)
            except TableError as error:
                self._said[str(error)] = None
            else:
                yield value

    def refuse(self) -> None:
        """Raise one TableError with every mistake, if there was one."""
        if self._said:
            raise TableError(first_of(list(self._said), MOST, "; "))


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Put before the message of a TableError what it is about."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{what}{error}") from None
