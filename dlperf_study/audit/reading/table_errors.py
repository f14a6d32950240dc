"""The errors of a table: all of them are reported in one message."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from dlperf_study.errors import TableError
from dlperf_study.wording import first_of

#: How many errors are reported at most.
MOST_ERRORS = 10

Item = TypeVar("Item")
Value = TypeVar("Value")


class TableErrors:
    """The errors of a table, each once."""

    def __init__(self) -> None:
        """Begin without any error."""
        self._messages: dict[str, None] = {}

    def parse_each(self, items: Iterable[Item], parse: Callable[[Item], Value]) -> Iterator[Value]:
        """Yield what ``parse`` returns for each item; collect its TableErrors, and leave out those items."""
        for item in items:
            try:
                value = parse(item)
            except TableError as error:
                self._messages[str(error)] = None
            else:
                yield value

    def raise_all(self) -> None:
        """Raise one TableError with the messages of all errors, if there are any."""
        if self._messages:
            raise TableError(first_of(list(self._messages), MOST_ERRORS, "; "))


@contextmanager
def error_prefix(prefix: str) -> Iterator[None]:
    """Add a prefix to the message of a TableError."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{prefix}{error}") from None
