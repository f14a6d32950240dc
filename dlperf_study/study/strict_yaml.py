"""Read YAML files in which every mistake is an error with a place."""

from pathlib import Path
from typing import Any

import yaml

from dlperf_study.errors import StudyFileError
from dlperf_study.paths import PROJECT
from dlperf_study.spelling import closest
from dlperf_study.study.yaml_loader import StrictLoader

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


def shown(path: Path) -> str:
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
        raise StudyFileError(f"{shown(path)}{_place(error.problem_mark)}: {_problem(error)}") from None
    except (UnicodeDecodeError, yaml.reader.ReaderError) as error:
        raise StudyFileError(f"{shown(path)}: not a text in UTF-8: {error}") from None
    if not isinstance(content, dict):
        raise StudyFileError(f"{shown(path)}: holds {_kind(content)}; it must be a mapping of keys to values")
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
