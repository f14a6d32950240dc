"""The files of the package as the lint tests read them: each is parsed once a session."""

import ast
from functools import cache
from pathlib import Path

from dlperf_study.core.paths import PROJECT

PACKAGE = PROJECT / "dlperf_study"
FILES = tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def tree(file: Path) -> ast.Module:
    """Return a parsed file."""
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """Return everything in a file."""
    return tuple(ast.walk(tree(file)))
