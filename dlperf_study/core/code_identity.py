"""Which code a process runs: a digest of what it imports. Standard library only: it runs in training images too.

A run imports the program of its ranks, what starts and watches them, and the parts that its configuration names. From
these, its roots, imports are followed within this package, also those inside of functions, and modules that are started
by name; so are those within the user's parts. Of a size of a transformer its values are in the digest. Comments,
docstrings and line breaks are in no digest, nor is a file that is not imported.
"""

import ast
import hashlib
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from dlperf_study.core.errors import RunError
from dlperf_study.core.part_search import SIZES, file_of_user, find_room, parts_folder, read_sizes
from dlperf_study.core.resources import PACKAGE_FOLDER

PACKAGE = PACKAGE_FOLDER.name
#: What every run imports, whatever it trains: the program of a rank, and the node agent of a node.
COMMON_ROOTS = (f"{PACKAGE}.training.worker", f"{PACKAGE}.machines.node_agent.agent")
#: What every run of a user's program imports: the recorder of its steps, and the node agent of a node.
COMMAND_ROOTS = (f"{PACKAGE}.record", f"{PACKAGE}.machines.node_agent.agent")
#: What is imported and measures nothing: words and values, which a run gets by its configuration and its commands; the
#: cluster file; and the check of a cluster, which is no run.
NOT_MEASURING = (f"{PACKAGE}.core", f"{PACKAGE}.study", f"{PACKAGE}.machines.cluster", f"{PACKAGE}.machines.check")
#: By this a controller tells every process of a run which benchmark code it runs.
CONTROLLER_CODE_VARIABLE = "DLPERF_STUDY_CONTROLLER_CODE"

_MODULE_IN_TEXT = re.compile(rf"\b{PACKAGE}(?:\.\w+)+")


@dataclass(frozen=True)
class _Module:
    """A module: its digest, and names that may be modules."""

    digest: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class MeasuringCode:
    """The code that measures a run, with its ``digest``.

    ``worker``: the name of what all runs import, which takes the times: a digest, or that of earlier code that measures
    alike. ``modules``: a short digest of each module, by name.
    """

    roots: tuple[str, ...] = ()
    digest: str = ""
    worker: str = ""
    modules: Mapping[str, str] = field(default_factory=dict)


def code_digest(roots: Sequence[str]) -> str:
    """Return a digest of all benchmark code that these modules import."""
    if not roots:
        return ""
    return _digest(tuple(roots), PACKAGE_FOLDER, parts_folder())


def module_digests(roots: Sequence[str]) -> dict[str, str]:
    """Return a digest of each measuring module that these import."""
    return _digests(tuple(roots), PACKAGE_FOLDER, parts_folder())


def files_digest(*rooms: str) -> str:
    """Return a digest of the Python files of these rooms."""
    digest = hashlib.sha256()
    for folder in [PACKAGE_FOLDER / room for room in rooms] or [PACKAGE_FOLDER]:
        # An editor may keep a link to nowhere beside a file that is open in it.
        files = [*folder.rglob("*.py"), *folder.rglob(SIZES)]
        for file in sorted(path for path in files if path.is_file()):
            digest.update(os.fsencode(file.relative_to(PACKAGE_FOLDER)) + file.read_bytes())
    return digest.hexdigest()


def imports_parts_of_folders(roots: Sequence[str]) -> bool:
    """Return whether these modules import parts of user folders."""
    return len(roots_without_folders(roots)) < len(module_digests(roots))


def roots_without_folders(roots: Sequence[str]) -> tuple[str, ...]:
    """Return these modules and their imports, without user folders."""
    parts, names = parts_folder(), []
    for name in sorted(module_digests(roots)):
        file = _file(name, PACKAGE_FOLDER, parts)
        if file is None or parts is None or not file.is_relative_to(parts):
            names.append(name)
    return tuple(names)


def check_roots(launcher: str) -> tuple[str, ...]:
    """Return what all runs of this launcher import."""
    return (*COMMON_ROOTS, f"{PACKAGE}.machines.launchers.{launcher}")


def describe_controller_code(roots: Sequence[str]) -> str:
    """Return the value of ``CONTROLLER_CODE_VARIABLE`` for these roots.

    It has the digest of what they import, that of all files of the package, the roots, and the folder of the package.
    """
    return f"{code_digest(roots)} {files_digest()} {','.join(roots)} {PACKAGE_FOLDER}"


def code_of_controller(environment: Mapping[str, str] = os.environ) -> str:
    """Return the digest that this process's controller named, or nothing."""
    return environment.get(CONTROLLER_CODE_VARIABLE, "").partition(" ")[0]


def require_code_of_controller(environment: Mapping[str, str] = os.environ) -> None:
    """Raise RunError if this process runs other code than its controller.

    With two checkouts and one environment of Python, the folder in which a process starts decides which one it runs.
    """
    if CONTROLLER_CODE_VARIABLE not in environment:
        return
    described = environment[CONTROLLER_CODE_VARIABLE]
    controller_code, controller_files, comma_separated, controller_folder = described.split(" ", 3)
    roots = comma_separated.split(",")
    # Parts of the user, in folders or in installed packages, may be among what these modules import.
    has_parts_elsewhere = parts_folder() is not None or any(name.partition(".")[0] != PACKAGE for name in roots)
    # Every rank asks. To compare all files takes a tenth of the time in which the imports of some are followed.
    if not has_parts_elsewhere and controller_files == files_digest():
        return
    if controller_code == code_digest(roots):
        return
    if controller_folder == str(PACKAGE_FOLDER):
        raise RunError(f"the benchmark code in {PACKAGE_FOLDER} has changed since the study started; start it again")
    raise RunError(
        f"other benchmark code: the controller runs the code in {controller_folder}, this process the code in "
        f"{PACKAGE_FOLDER} on {socket.gethostname()}; install one checkout in both"
    )


@cache
def _digest(roots: tuple[str, ...], package: Path, parts: Path | None) -> str:
    lines = [f"{name} {digest}" for name, digest in sorted(_digests(roots, package, parts).items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@cache
def _digests(roots: tuple[str, ...], package: Path, parts: Path | None) -> dict[str, str]:
    """Return the digests of modules; ``folders``: the package's, then users'."""
    digests: dict[str, str] = {}
    packages = {name.partition(".")[0] for name in roots}
    names = [*roots]
    left_out = tuple(f"{room}." for room in NOT_MEASURING)
    while names:
        name = names.pop()
        is_of_packages = name != PACKAGE and name.partition(".")[0] in packages
        if name in digests or not is_of_packages or f"{name}.".startswith(left_out):
            continue
        module = _module(name, package, parts)
        if module:
            digests[name] = module.digest
            names += [name.rpartition(".")[0], f"{name}.__main__", *module.names]
    return digests


@cache
def _module(name: str, package_folder: Path, parts: Path | None) -> _Module | None:
    """Return a module of the package or user, or None.

    Raises RunError where its file can't be read as Python.
    """
    file = _file(name, package_folder, parts)
    if not file:
        return None
    if file.name == SIZES:
        package, _, key = name.rpartition(".")
        values = read_sizes(file.parent)[key]
        return _Module(
            hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest(), (f"{package}._{values['kind']}",)
        )
    try:
        tree = _normalised(ast.parse(file.read_bytes()))
    except SyntaxError as error:
        raise RunError(f"{file}: importing it raises {type(error).__name__}: {error}") from error
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    return _Module(hashlib.sha256(_text(tree).encode()).hexdigest(), tuple(sorted(set(_names(tree, package)))))


def _file(name: str, package_folder: Path, parts: Path | None) -> Path | None:
    if name.partition(".")[0] != PACKAGE:
        return file_of_user(name, parts)
    path = package_folder.joinpath(*name.split(".")[1:])
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if file.is_file():
            return file
    return file_of_user(name, parts) or _sizes_file(name, path.parent, parts)


def _sizes_file(name: str, folder: Path, parts: Path | None) -> Path | None:
    """Return the file of sizes that has a key for a module of this name."""
    package, _, key = name.rpartition(".")
    room = find_room(package)
    if not room:
        return None
    if key in read_sizes(folder):
        return folder / SIZES
    if parts and key in read_sizes(parts / room):
        return parts / room / SIZES
    return None


def _normalised(tree: ast.Module) -> ast.Module:
    """Return syntax without docstrings and Python 3.12.1's empty format ends."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        elif isinstance(node, ast.JoinedStr):
            node.values = [part for part in node.values if not isinstance(part, ast.Constant) or part.value]
    return tree


def _text(node: object) -> str:
    """Return syntax as text that is the same in every Python.

    Fields that are empty are left out: a later Python has more of them.
    """
    if isinstance(node, ast.AST):
        fields = [f"{name}={_text(value)}" for name, value in ast.iter_fields(node) if value not in (None, [])]
        return f"{type(node).__name__}({','.join(fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_text, node))}]"
    return repr(node)


def _names(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the imports of a module, and modules named in texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            # One dot is the package of the module it is in.
            package_of_dots = parents[: len(parents) - node.level + 1] if node.level else []
            module = ".".join([*package_of_dots, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _MODULE_IN_TEXT.findall(node.value)
