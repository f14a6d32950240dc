"""Read YAML files in which every error is a message with line, column and key.

Plain values follow the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema). PyYAML reads YAML 1.1,
where ``010`` is 8, ``1:30`` is 90, ``1_000`` is a number, ``yes`` is true and ``1e3`` is a string. Integers with a
leading zero, which the two versions read differently, are refused.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from dlperf_study.core import large_files, resources, wording
from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.paths import StudyPaths

#: How deep lists and mappings may be nested, and how many values a file may have, repeated ones included.
MAX_DEPTH, MAX_VALUES = 20, 100_000
#: No study or cluster file is longer; PyYAML reads 2 MB a second.
MAX_BYTES = 1 << 22
#: No number of a study or a cluster has more; Python itself converts no more than 4300.
MAX_DIGITS = 40

#: Why a text may be read as something else.
NEEDS_QUOTES = "a text that begins with { or [, or contains a colon and a space, needs quotes"

#: The keys and indices that lead to a value.
Location = list[str | int]

_TAG = "tag:yaml.org,2002:"
#: A key is a string, or ``<<``, which takes the keys of another mapping.
_KEY_TAGS = (f"{_TAG}str", f"{_TAG}merge")
#: The pattern of each kind of plain value, and the characters that it may start with.
_PLAIN_VALUES = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    "merge": ("<<", ["<"]),
}


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping a YAML file holds.

    Raises StudyFileError for a syntax error, a tab, a duplicate key, a number that YAML 1.1 and 1.2 read differently,
    too many bytes, too many or too deeply nested values, or anything but a mapping.
    """
    large_files.require_end(path)
    with path.open("rb") as stream:
        return parse_mapping(stream.read(MAX_BYTES + 1), display_path(path))


def parse_mapping(data: bytes, file: str) -> dict[str, Any]:
    """Return the mapping in the bytes of a YAML file named ``file``."""
    if len(data) > MAX_BYTES:
        raise StudyFileError(f"{file}: has more than {MAX_BYTES:,} bytes, the maximum of a study or cluster file")
    try:
        content = yaml.load(data.decode(), Loader=StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        position = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        if "'\\t'" in str(error.problem):
            problem = "a tab; YAML is indented with spaces"
        elif isinstance(error, yaml.constructor.ConstructorError):
            problem = str(error.problem)
        elif line := _line_without_colon(error, data.decode().splitlines()):
            raise StudyFileError(f"{file}, {line}") from None
        else:
            problem = f"not YAML: {', '.join(filter(None, (error.context, error.problem)))}; {NEEDS_QUOTES}"
        raise StudyFileError(f"{file}{position}: {problem}") from None
    except (UnicodeDecodeError, yaml.reader.ReaderError) as error:
        raise StudyFileError(f"{file}: not UTF-8: {error}") from None
    if not isinstance(content, dict):
        kinds = {list: "a list", str: "a string", type(None): "nothing"}
        kind = kinds.get(type(content), wording.as_yaml(content))
        raise StudyFileError(f"{file}: holds {kind}; it must be a mapping of keys to values")
    return content


def _line_without_colon(error: yaml.MarkedYAMLError, lines: Sequence[str]) -> str:
    """Return which line of a file lacks its colon."""
    mark = error.problem_mark
    if mark and (key := re.match(r"\s*(\w+)\s+[\[{]", lines[mark.line] if mark.line < len(lines) else "")):
        return f"line {mark.line + 1}: {key[1]} has no colon"
    if error.context_mark and "could not find expected ':'" in str(error.problem):
        index = error.context_mark.line
    elif mark and "mapping values are not allowed" in str(error.problem):
        index = mark.line - 1
    else:
        return ""
    line = "".join(lines[max(0, index) : index + 1]).strip()
    if re.fullmatch(r"\w+( .*)?", line) and ":" not in line:
        return f"line {index + 1}: {line} has no colon"
    return ""


def find_file(kind: str, name_or_path: str | Path) -> Path:
    """Return the file of a study or cluster by path or name.

    ``kind`` is ``study`` or ``cluster``. Raises StudyFileError, with the valid names, when it doesn't exist.
    """
    if isinstance(name_or_path, Path) or "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        path, name = Path(name_or_path), ""
    else:
        for folder in resources.search_folders(kind):
            path, name = folder / f"{name_or_path}.yaml", name_or_path
            if path.exists():
                break
    if path.is_file():
        return path
    raise StudyFileError(_not_found_message(kind, path, name))


def _not_found_message(kind: str, path: Path, name_of_file: str) -> str:
    if path.exists():
        kind_of_path = "a folder" if path.is_dir() else "a device or a pipe"
        return f"{path} is {kind_of_path}, not a {kind} file; give the path of a file, or a name in {_shown(kind)}"
    if not name_of_file:
        files = map(str, path.parent.glob("*.y*ml")) if path.parent.is_dir() else ()
        return f"there is no file {path}; {wording.closest(str(path), files)}give a path, or a name in {_shown(kind)}"
    names = sorted(resources.named_files(kind))
    [other_kind] = resources.FOLDERS.keys() - {kind}
    suggestion = (
        f"it is a {other_kind}; "
        if name_of_file in resources.named_files(other_kind)
        else wording.closest(name_of_file, names)
    )
    if kind == "study" and StudyPaths.of(name_of_file).plan_file.exists():
        folder = display_path(StudyPaths.of(name_of_file).folder)
        suggestion = f"{folder} belongs to a study file in a different folder, or to logs: give the path of the file; "
    has = "have" if len(_folders(kind)) > 1 else "has"
    return f"there is no {kind} {name_of_file!r}; {suggestion}{_shown(kind)} {has} {', '.join(names) or 'none'}"


def _shown(kind: str) -> str:
    return " and ".join(map(display_path, _folders(kind)))


def _folders(kind: str) -> list[Path]:
    """Return the folders that hold files of a kind only."""
    name = resources.FOLDERS[kind]
    return [folder for folder in resources.search_folders(kind) if folder.name == name and folder.is_dir()]


def key_path(location: Location) -> str:
    """Return a location as messages name it: ``include[0].nodes``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def display_path(path: Path) -> str:
    """Return a path for messages: relative to the workspace if inside."""
    path_in_full, top = path.resolve(), resources.workspace().resolve()
    if path_in_full.is_relative_to(top):
        return str(path_in_full.relative_to(top))
    return str(path)


class StrictLoader(yaml.SafeLoader):
    """Plain data only: no tags or cycles; keys are unique strings."""

    # Nothing inherited: these are the values of YAML 1.1.
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = self._values = 0
        self._values_of: dict[int, int] = {}
        self._location: Location = []
        self._keys: dict[int, str] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> Any:
        """Compose one value, unless it is too deep or one too many."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        values_before, location_of_parent = self._values, self._location
        step = getattr(index, "value", index)
        if isinstance(step, str | int):
            self._location = [*location_of_parent, step]
        if getattr(event, "tag", None):
            problem = f"a tag ({event.tag}); values are plain strings, numbers, true, false or null"
            raise _error(event, problem, key_path(self._location))
        self._count(event, depth=1, values=1)
        node = super().compose_node(parent, index)
        self._keys.setdefault(id(node), key_path(self._location))
        self._location = location_of_parent
        if isinstance(event, yaml.AliasEvent):
            # The values of an anchor count again wherever it is named.
            if id(node) not in self._values_of:
                raise _error(event, "an anchor within its own value; remove it")
            self._count(event, depth=0, values=self._values_of[id(node)] - 1)
        self._values_of[id(node)] = self._values - values_before
        self._depth -= 1
        return node

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        """Compose a text, a number or a key, unless it has a null byte."""
        node = super().compose_scalar_node(anchor)
        if "\0" in node.value:
            # No argument, variable or path of a process can have one.
            raise _error(node, "a null byte (\\0); remove it", key_path(self._location))
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose a mapping whose keys are strings and unique."""
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if key.tag not in _KEY_TAGS:
                raise _error(key, "this key is not a string")
            if key.value in lines:
                raise _error(key, f"duplicate key {key.value!r}; it is already in line {lines[key.value]}")
            lines[key.value] = key.start_mark.line + 1
        return node

    def integer(self, node: yaml.ScalarNode) -> int:
        """Return a decimal, hexadecimal or octal integer."""
        digits = self._digits(node)
        if re.fullmatch(r"[-+]?0[0-9]+", digits):
            problem = (
                f"{digits} starts with a zero, so YAML 1.1 and 1.2 read it differently; remove it, or quote a string"
            )
            raise _error(node, problem, self._keys[id(node)])
        return int(digits, 0)

    def floating_point(self, node: yaml.ScalarNode) -> float:
        """Return a finite number."""
        value = float(self._digits(node).lower().replace(".inf", "inf").replace(".nan", "nan"))
        if not math.isfinite(value):
            raise _error(node, f"{node.value} is not a finite number", self._keys[id(node)])
        return value

    def _digits(self, node: yaml.ScalarNode) -> str:
        if len(node.value) > MAX_DIGITS:
            problem = f"a number of {len(node.value)} digits; the maximum is {MAX_DIGITS}"
            raise _error(node, problem, self._keys[id(node)])
        return str(node.value)

    def _count(self, event: yaml.Event, depth: int, values: int) -> None:
        self._depth, self._values = self._depth + depth, self._values + values
        if self._depth > MAX_DEPTH:
            raise _error(event, f"lists and mappings nested more than {MAX_DEPTH} deep")
        if self._values > MAX_VALUES:
            raise _error(event, f"more than {MAX_VALUES:,} values, including repetitions by anchors")


def _error(node_or_event: Any, problem: str, key: str = "") -> yaml.MarkedYAMLError:
    problem = ": ".join(filter(None, (key, problem)))
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=node_or_event.start_mark)


for _name, (_pattern, _first_characters) in _PLAIN_VALUES.items():
    StrictLoader.add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"^(?:{_pattern})$"), _first_characters)
StrictLoader.add_constructor(f"{_TAG}int", StrictLoader.integer)
StrictLoader.add_constructor(f"{_TAG}float", StrictLoader.floating_point)
