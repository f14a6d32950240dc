"""pyproject.toml, requirements.lock, environment.yml and CITATION.cff say the same."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import dlperf_study
from dlperf_study.paths import PROJECT

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
DIRECT = [Requirement(text) for text in PYPROJECT["project"]["dependencies"]]
EXTRAS = {
    name: [Requirement(text) for text in texts] for name, texts in PYPROJECT["project"]["optional-dependencies"].items()
}
#: The lock has no GPU: its wheels are not on PyPI.
LOCKED = [*DIRECT, *EXTRAS["test"]]
ENVIRONMENT = yaml.safe_load((PROJECT / "environment.yml").read_text(encoding="utf-8"))
#: What is imported from a library that a direct dependency brings along, because it is part of how that one is used.
BROUGHT_ALONG = {
    "pydantic-core": "pydantic",
    "typing-extensions": "pydantic",
    "jupyter-client": "nbclient",
    "jupyter-core": "nbclient",
}


def pins() -> dict[str, Version]:
    """Return the version of every package of the lock, which may hold nothing but pins and comments."""
    lines = (PROJECT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pinned = [re.fullmatch(r"([\w.\-]+)==([\w.+!]+)", line) for line in lines if line and not line.startswith("#")]
    assert all(pinned), "the lock holds a line that is not name==version"
    names = [canonicalize_name(pin.group(1)) for pin in pinned if pin]
    assert len(set(names)) == len(names), "a package is pinned twice"
    return {name: Version(pin.group(2)) for name, pin in zip(names, pinned, strict=True) if pin}


def imported() -> set[str]:
    """Return the top-level modules that the package's files import, anywhere in them."""
    files = (PROJECT / "dlperf_study").rglob("*.py")
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"dlperf_study"}


@pytest.mark.parametrize("requirement", LOCKED, ids=lambda requirement: requirement.name)
def test_every_dependency_is_pinned_and_fits(requirement):
    pin = pins()[canonicalize_name(requirement.name)]
    assert pin in requirement.specifier, f"the lock has {pin}, pyproject asks for {requirement}"


def test_the_lock_has_no_gpu_wheel():
    assert {canonicalize_name(requirement.name) for requirement in EXTRAS["gpu"]}.isdisjoint(pins())


def test_what_the_package_imports_is_declared():
    distributions = packages_distributions()
    found = {canonicalize_name(name) for module in imported() for name in distributions[module]}
    assert found - {canonicalize_name(requirement.name) for requirement in DIRECT} <= set(BROUGHT_ALONG)


def test_every_dependency_is_in_the_page_on_libraries():
    page = (PROJECT / "docs" / "libraries.md").read_text(encoding="utf-8")
    main, extras = page.split("## Extras")
    assert {name for row in cells(main, column=1) for name in row} == {requirement.name for requirement in DIRECT}
    wanted = {(extra, requirement.name) for extra, listed in EXTRAS.items() for requirement in listed}
    names = zip(cells(extras, column=1), cells(extras, column=2), strict=True)
    assert {(extra, name) for (extra,), several in names for name in several} == wanted


def cells(table: str, column: int) -> list[list[str]]:
    """Return the words in code of each row's cell in a column."""
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return [re.findall(r"`([^`]+)`", line.split("|")[column]) for line in lines]


def test_the_environment_is_the_lock_and_this_project():
    (pip,) = (entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict))
    assert pip == ["-r requirements.lock", "-e ."]
    assert "pip" in ENVIRONMENT["dependencies"], "conda warns when it must guess pip"


def test_its_python_is_one_the_project_supports():
    (python,) = (entry for entry in ENVIRONMENT["dependencies"] if str(entry).startswith("python="))
    assert Version(python.removeprefix("python=")) in SpecifierSet(PYPROJECT["project"]["requires-python"])


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    version = PYPROJECT["project"]["version"]
    assert (dlperf_study.__version__, str(citation["version"])) == (version, version)
    assert f"## {version}" in (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_licence_is_the_same_everywhere():
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    assert PYPROJECT["project"]["license"]["text"] == citation["license"] == "Apache-2.0"
    text = (PROJECT / "LICENSE").read_text(encoding="utf-8")
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text
