"""Read YAML files in which every mistake is an error with a place."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from dlperf_study.errors import StudyFileError
from dlperf_study.paths import PROJECT

PARAMS = PROJECT / "params"
#: A text, and ``<<``, which takes the keys of another mapping.
KEY_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")


def find_file(kind: str, name_or_path: str | Path) -> Path:
    """Return the file of a study or cluster, given by its name in ``params/`` or by a path.

    ``kind`` is ``study`` or ``cluster``. Raises StudyFileError, with the names there are, when it doesn't exist.
    """
    folder = PARAMS / {"study": "studies", "cluster": "clusters"}[kind]
    is_path = isinstance(name_or_path, Path) or name_or_path.endswith((".yaml", ".yml"))
    path = Path(name_or_path) if is_path else folder / f"{name_or_path}.yaml"
    if path.is_file():
        return path
    names = sorted(file.stem for file in folder.glob("*.yaml"))
    raise StudyFileError(
        f"there is no {kind} {str(name_or_path)!r}; {closest(path.stem, names)}"
        f"params/{folder.name} has {', '.join(names) or 'none'}"
    )


def closest(word: str, choices: Iterable[str]) -> str:
    """Return a question that names the choice most like ``word``, or nothing."""
    found = difflib.get_close_matches(word, list(choices), n=1)
    return f"did you mean {found[0]}? " if found else ""


def shown(path: Path) -> str:
    """Return a path as messages name it: from the project's folder, where it lies in it."""
    return str(path.resolve().relative_to(PROJECT) if path.resolve().is_relative_to(PROJECT) else path)


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping a YAML file holds.

    Raises StudyFileError for a syntax error, a tab, a key that comes twice, and anything but a mapping.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        raise StudyFileError(f"{shown(path)}{_place(error.problem_mark)}: {_problem(error)}") from None
    except (UnicodeDecodeError, yaml.reader.ReaderError) as error:
        raise StudyFileError(f"{shown(path)}: not a text in UTF-8: {error}") from None
    if not isinstance(content, dict):
        raise StudyFileError(f"{shown(path)}: holds {_kind(content)}; it must be a mapping of keys to values")
    return content


class _StrictLoader(yaml.SafeLoader):
    """Plain data only; keys are texts and come once; ``1e12`` is a number, as in YAML 1.2."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if key.tag not in KEY_TAGS:
                raise _refused(key, "this key is not a text")
            if key.value in lines:
                raise _refused(key, f"the key {key.value!r} comes twice; it is already in line {lines[key.value]}")
            lines[key.value] = key.start_mark.line + 1
        return super().construct_mapping(node, deep)


def _refused(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)


_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


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
