"""Read YAML files in which every mistake is an error with a place."""

import math
import re
from pathlib import Path
from typing import Any

import yaml

from dlperf_study.errors import StudyFileError
from dlperf_study.paths import PROJECT
from dlperf_study.wording import closest

# YAML 1.2 in which nothing is read as something else than it looks.
#
# PyYAML reads YAML 1.1, where ``010`` is 8, ``1:30`` is 90, ``1_000`` is a number, ``yes`` is true and ``1e3`` is
# a text. Here plain values follow the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema);
# numbers with zeros in front, which the two read differently, are refused.


#: How deep lists and mappings may lie in each other, and how many values a file may have, repeated ones included.
MOST_LEVELS, MOST_VALUES = 20, 10_000
#: No number of a study or a cluster has more; Python itself converts no more than 4300.
MOST_DIGITS = 40
KIND = "tag:yaml.org,2002:"
#: A text, and ``<<``, which takes the keys of another mapping.
KEY_TAGS = (f"{KIND}str", f"{KIND}merge")
PLAIN_VALUES = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    "merge": ("<<", ["<"]),
}


class StrictLoader(yaml.SafeLoader):
    """Plain data only: no tags, no value that holds itself; keys are texts and come once."""

    # Nothing inherited: these are the values of YAML 1.1.
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._levels = self._values = 0
        self._values_of: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> Any:
        """Compose one value, if it is neither too deep nor one too many."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        before = self._values
        if getattr(event, "tag", None):
            raise refused(event, f"a tag ({event.tag}); values are plain texts, numbers, true, false or null")
        self._count(event, levels=1, values=1)
        node = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent):
            self._repeat(event, node)
        self._values_of[id(node)] = self._values - before
        self._levels -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose a mapping whose keys are texts that come once."""
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if key.tag not in KEY_TAGS:
                raise refused(key, "this key is not a text")
            if key.value in lines:
                raise refused(key, f"the key {key.value!r} comes twice; it is already in line {lines[key.value]}")
            lines[key.value] = key.start_mark.line + 1
        return node

    def whole_number(self, node: yaml.ScalarNode) -> int:
        """Return a decimal, hexadecimal or octal number."""
        text = self._short(node)
        if re.fullmatch(r"[-+]?0[0-9]+", text):
            raise refused(
                node, f"{text} starts with a zero, so YAML 1.1 and 1.2 read it differently; drop it, or quote a text"
            )
        return int(text, 0)

    def real_number(self, node: yaml.ScalarNode) -> float:
        """Return a finite number."""
        number = float(self._short(node).lower().replace(".inf", "inf").replace(".nan", "nan"))
        if not math.isfinite(number):
            raise refused(node, f"{node.value} is not a finite number")
        return number

    def _short(self, node: yaml.ScalarNode) -> str:
        if len(node.value) > MOST_DIGITS:
            raise refused(node, f"a number of {len(node.value)} digits; the most are {MOST_DIGITS}")
        return str(node.value)

    def _repeat(self, event: yaml.AliasEvent, node: yaml.Node | None) -> None:
        """Count the values of an anchor again, wherever it is named."""
        if id(node) not in self._values_of:
            raise refused(event, "an anchor named within itself: the value would never end")
        self._count(event, levels=0, values=self._values_of[id(node)] - 1)

    def _count(self, event: yaml.Event, levels: int, values: int) -> None:
        self._levels, self._values = self._levels + levels, self._values + values
        if self._levels > MOST_LEVELS:
            raise refused(event, f"more than {MOST_LEVELS} lists and mappings within each other")
        if self._values > MOST_VALUES:
            raise refused(event, f"more than {MOST_VALUES} values, those that anchors repeat included")


def refused(place: Any, problem: str) -> yaml.MarkedYAMLError:
    """Return the error for what stands at this node or event."""
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=place.start_mark)


for _name, (_pattern, _first) in PLAIN_VALUES.items():
    StrictLoader.add_implicit_resolver(f"{KIND}{_name}", re.compile(rf"^(?:{_pattern})$"), _first)
StrictLoader.add_constructor(f"{KIND}int", StrictLoader.whole_number)
StrictLoader.add_constructor(f"{KIND}float", StrictLoader.real_number)


PARAMS = PROJECT / "params"


def find_file(kind: str, name_or_path: str | Path) -> Path:
    """Return the file of a study or cluster, given by its name in ``params/`` or by a path.

    ``kind`` is ``study`` or ``cluster``. Raises StudyFileError, with the names there are, when it doesn't exist.
    """
    folder = PARAMS / {"study": "studies", "cluster": "clusters"}[kind]
    is_path = isinstance(name_or_path, Path) or "/" in name_or_path or name_or_path.endswith((".yaml", ".yml"))
    path = Path(name_or_path) if is_path else folder / f"{name_or_path}.yaml"
    if path.is_file():
        return path
    if is_path:
        raise StudyFileError(f"there is no file {path}; {_beside(path)}give a path, or a name in params/{folder.name}")
    names = sorted(file.stem for file in folder.glob("*.yaml"))
    raise StudyFileError(
        f"there is no {kind} {str(name_or_path)!r}; {closest(path.stem, names)}"
        f"params/{folder.name} has {', '.join(names) or 'none'}"
    )


def _beside(path: Path) -> str:
    """Return a question that names the YAML file beside a path that is most like it, or nothing."""
    return closest(str(path), map(str, path.parent.glob("*.y*ml"))) if path.parent.is_dir() else ""


def display_path(path: Path) -> str:
    """Return a path as messages name it: from the project's folder, where it lies in it."""
    return str(path.resolve().relative_to(PROJECT) if path.resolve().is_relative_to(PROJECT) else path)


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping a YAML file holds.

    Raises StudyFileError for a syntax error, a tab, a key that comes twice, a number that YAML 1.1 and 1.2 read
    differently, too many or too deep values, and anything but a mapping.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=StrictLoader)
    except yaml.MarkedYAMLError as error:
        raise StudyFileError(f"{display_path(path)}{_place(error.problem_mark)}: {_problem(error)}") from None
    except (UnicodeDecodeError, yaml.reader.ReaderError) as error:
        raise StudyFileError(f"{display_path(path)}: not a text in UTF-8: {error}") from None
    if not isinstance(content, dict):
        raise StudyFileError(f"{display_path(path)}: holds {_kind(content)}; it must be a mapping of keys to values")
    return content


def _place(mark: yaml.Mark | None) -> str:
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _problem(error: yaml.MarkedYAMLError) -> str:
    if "'\\t'" in str(error.problem):
        return "a tab; YAML is indented with spaces"
    if isinstance(error, yaml.constructor.ConstructorError):
        return str(error.problem)
    return f"not YAML: {', '.join(filter(None, (error.context, error.problem)))}"


def _kind(content: object) -> str:
    kinds = {list: "a list", str: "a text", type(None): "nothing"}
    return kinds.get(type(content), f"a {type(content).__name__}")
