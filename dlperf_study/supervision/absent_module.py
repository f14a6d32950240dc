"""Faster imports: of libraries that import an optional module which this package does not use."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def absent_module(name: str) -> Iterator[None]:
    """Let a module be missing for imports meanwhile; one that is already imported stays."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]
