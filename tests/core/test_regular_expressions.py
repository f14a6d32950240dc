"""No regular expression of the package takes time that grows faster than what it searches."""

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import dlperf_study
from dlperf_study.core.code_identity import PACKAGE_FOLDER
from dlperf_study.logs import formats

#: What texts of strangers repeat.
UNITS = [
    *("a", "A", "1", "_", " ", "\t", "\n", "-", ".", ",", ":", ";", "/", "\\", "=", "*", "|", "+", "%", "@", "#", "~"),
    *("(", ")", "[", "]", "{", "}", "<", ">", '"', "'", "`", "a ", "1 ", "1.", "1,", "a:", "a=1 ", "a-", "[](", "://"),
    *("<a ", "![", "**", "$1", "--", "sk-", "eyJ-", "é", "1e", "a@", "(1", "{a", "'a' "),
]
SHORT, LONG = 3000, 12_000
#: Below it, a search is fast whatever its ratio.
FAST_SECONDS = 0.03


class Expression(NamedTuple):
    """An expression, and whether it is searched for anywhere in a text."""

    pattern: re.Pattern[Any]
    is_searched: bool


def patterns_in(name: str, value: Any, depth: int = 4) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the compiled expressions in a value, each with the name by which code finds it."""
    if isinstance(value, re.Pattern):
        yield name, value
    elif depth and isinstance(value, dict):
        for key, item in value.items():
            yield from patterns_in(name, key, depth - 1)
            yield from patterns_in(name, item, depth - 1)
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from patterns_in(name, item, depth - 1)
    elif depth and (type(value).__module__ or "").startswith("dlperf_study"):
        for attribute, item in getattr(value, "__dict__", {}).items():
            yield from patterns_in(attribute, item, depth - 1)


def searching_names() -> set[str]:
    """Return the names of expressions that are searched for anywhere in a text; others begin at its first character."""
    names: set[str] = set()
    for file in PACKAGE_FOLDER.rglob("*.py"):
        names |= set(re.findall(r"(\w+)(?:\[[^\]]*\])?\.(?:search|subn?|finditer|findall|split)\(", file.read_text()))
    return names


def all_patterns() -> dict[Any, Expression]:
    """Return each expression of the package, and whether it is searched for."""
    found: dict[Any, Expression] = {}
    names = searching_names()
    for module in pkgutil.walk_packages(dlperf_study.__path__, "dlperf_study."):
        if module.name.endswith("__main__"):
            continue
        try:
            content = vars(importlib.import_module(module.name))
        except ImportError:
            # A framework or a loader that is not installed.
            continue
        for global_name, value in content.items():
            for name, pattern in patterns_in(global_name, value):
                is_searched = name in names or (name == global_name and name.islower())
                found[pattern.pattern, pattern.flags] = Expression(pattern, is_searched)
    for expression in written_in_calls():
        found[expression.pattern.pattern, expression.pattern.flags] = expression
    for format_name in formats.names():
        for _, pattern in patterns_in("format", formats.load(format_name), 6):
            found.setdefault((pattern.pattern, pattern.flags), Expression(pattern, is_searched=True))
    return found


def written_in_calls() -> Iterator[Expression]:
    """Yield the expressions that calls such as ``re.search`` have as their first argument."""
    for file in PACKAGE_FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args
            is_of_re = is_call and ast.unparse(node.func.value) == "re" and node.func.attr != "compile"
            if is_of_re and isinstance(node.args[0], ast.Constant):
                is_searched = node.func.attr not in ("match", "fullmatch")
                yield Expression(re.compile(node.args[0].value), is_searched)


def seconds(expression: Expression, unit: str, length: int) -> float:
    text: Any = unit * (length // len(unit)) + "\0"
    pattern = expression.pattern
    if isinstance(pattern.pattern, bytes):
        text = text.encode()
    begun = time.process_time()
    pattern.match(text)
    pattern.fullmatch(text)
    if expression.is_searched:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - begun


@pytest.mark.timeout(300)
def test_the_time_of_each_expression_grows_with_the_length_alone():
    patterns = all_patterns()
    assert len(patterns) > 200
    slow = []
    for expression in patterns.values():
        for unit in UNITS:
            # Other work on the machine takes no time twice in the same way.
            for _ in range(3):
                long = seconds(expression, unit, LONG)
                if long < FAST_SECONDS or long < 8 * seconds(expression, unit, SHORT):
                    break
            else:
                slow.append(f"{expression.pattern.pattern!r} with {unit!r}: {long:.2f} s")
    assert not slow, "\n".join(slow)
