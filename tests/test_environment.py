"""pyproject.toml, requirements.lock, environment.yml and CITATION.cff say the same."""

import ast
import re
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions, requires
from itertools import chain

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import dlperf_study
from dlperf_study.core.paths import PROJECT
from tests.package_files import FILES, nodes
from tools import horovod_build, install_horovod_tensorflow, installer
from tools.install_dali import DALI
from tools.install_docs import SITE
from tools.install_tensorflow import TENSORFLOW
from tools.install_torch import TORCH

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
DIRECT = [Requirement(text) for text in PYPROJECT["project"]["dependencies"]]
EXTRAS = {
    name: [Requirement(text) for text in texts] for name, texts in PYPROJECT["project"]["optional-dependencies"].items()
}
#: What is installed only where studies compare frameworks, each from a lock of its own.
COMPARED = [*EXTRAS["torch"], *EXTRAS["horovod"], *EXTRAS["tensorflow"], *EXTRAS["dali"]]
#: What the lock has besides: all that one environment of a checkout needs to measure with PaddlePaddle, and to test.
LOCKED_EXTRAS = ("paddle", "kubernetes", "gpu", "data", "lab", "test")
LOCKED = [*DIRECT, *chain.from_iterable(EXTRAS[name] for name in LOCKED_EXTRAS)]
ENVIRONMENT = yaml.safe_load((PROJECT / "environment.yml").read_text(encoding="utf-8"))
LOCKS = ("requirements.lock", TORCH.lock, horovod_build.LOCK, TENSORFLOW.lock)
#: What is imported from a library that a direct dependency brings along, because it is part of how that one is used.
BROUGHT_ALONG = {
    "pydantic-core": "pydantic",
    "typing-extensions": "pydantic",
    "jupyter-client": "nbclient",
    "jupyter-core": "nbclient",
    "urllib3": "kubernetes",
}


def pins(lock: str = "requirements.lock") -> dict[str, Version]:
    """Return the version of every package of a lock, which may hold nothing but pins and comments."""
    lines = (PROJECT / lock).read_text(encoding="utf-8").splitlines()
    pinned = [re.fullmatch(r"([\w.\-]+)==([\w.+!]+)", line) for line in lines if line and not line.startswith("#")]
    assert all(pinned), "the lock holds a line that is not name==version"
    names = [canonicalize_name(pin.group(1)) for pin in pinned if pin]
    assert len(set(names)) == len(names), "a package is pinned twice"
    return {name: Version(pin.group(2)) for name, pin in zip(names, pinned, strict=True) if pin}


def imported() -> set[str]:
    """Return the top-level modules that the package's files import, anywhere in them."""
    names = set()
    for node in chain.from_iterable(map(nodes, FILES)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"dlperf_study"}


@pytest.mark.parametrize("requirement", LOCKED, ids=lambda requirement: requirement.name)
def test_every_dependency_is_pinned_and_fits(requirement):
    pin = pins()[canonicalize_name(requirement.name)]
    assert pin in requirement.specifier, f"the lock has {pin}, pyproject asks for {requirement}"


@pytest.mark.parametrize("lock", LOCKS)
def test_what_is_pinned_runs_with_the_oldest_python_of_the_supported_ones(lock):
    """With 3.11.2 of Debian 12, of which the set-up says how to get it, too: a pin may need a later release of 3.11."""
    installed = {canonicalize_name(each.name): each.metadata["Requires-Python"] for each in distributions()}
    needed = {name: installed[name] for name in pins(lock) if installed.get(name)}
    assert {name: python for name, python in needed.items() if "3.11.2" not in SpecifierSet(python)} == {}


def test_locks_share_no_package_and_have_no_library_for_gpus():
    locks = [set(pins(lock)) for lock in LOCKS]
    assert len(set.union(*locks)) == sum(map(len, locks))
    assert {"paddlepaddle-gpu", "tensorflow"}.isdisjoint(set.union(*locks))


@pytest.mark.parametrize(
    ("part", "page"), [("torch", "horovod.md"), ("horovod", "horovod.md"), ("tensorflow", "tensorflow.md")]
)
def test_a_framework_to_compare_is_pinned_the_same_everywhere(part, page):
    (requirement,) = EXTRAS[part]
    version = pins(f"requirements-{part}.lock")[requirement.name]
    assert str(requirement) == f"{requirement.name}=={version}"
    assert str(requirement) in installer.requirements(installer.pins(f"requirements-{part}.lock"))
    assert str(version) in (PROJECT / "docs" / page).read_text(encoding="utf-8")


def test_horovod_for_tensorflow_is_pinned_by_a_lock_of_its_own():
    pinned = pins(install_horovod_tensorflow.LOCK)
    needed = [Requirement("tensorflow-cpu==2.15.1"), Requirement("numpy<2"), *EXTRAS["horovod"]]
    assert all(pinned[requirement.name] in requirement.specifier for requirement in needed)
    page = (PROJECT / "docs" / "tensorflow.md").read_text(encoding="utf-8")
    assert f"TensorFlow {pinned['tensorflow-cpu']}" in page
    assert f"Horovod {pinned['horovod']}" in page
    assert f"/{install_horovod_tensorflow.ENVIRONMENT.name}/" in (PROJECT / ".gitignore").read_text(encoding="utf-8")


@pytest.mark.parametrize(("extra", "library"), [("dali", DALI), ("docs", SITE)])
def test_what_shares_packages_with_tensorflow_is_pinned_the_same_everywhere(extra, library):
    """It may be installed beside TensorFlow."""
    pinned = pins(library.lock)
    assert [str(requirement) for requirement in EXTRAS[extra]] == [f"{library.package}=={pinned[library.package]}"]
    assert not set(pinned) & set(pins())
    for lock in LOCKS:
        assert {name: pin for name, pin in pins(lock).items() if pinned.get(name, pin) != pin} == {}


@pytest.mark.parametrize(
    "part", ["torch", "horovod", pytest.param("tensorflow-cpu", marks=pytest.mark.needs("tensorflow"))]
)
def test_all_that_a_framework_needs_is_pinned_and_fits(part):
    pinned = {name: pin for lock in LOCKS for name, pin in pins(lock).items()}
    needed = [Requirement(text) for text in requires(part) or []]
    cpu = [need for need in needed if need.marker is None]
    assert cpu
    for need in cpu:
        assert pinned[canonicalize_name(need.name)] in need.specifier, need


@pytest.mark.needs("torch", "horovod", "tensorflow")
def test_what_the_package_imports_is_declared():
    distributions = packages_distributions()
    # DALI and xarray are users' to install, and may be missing here.
    present = imported() - {"nvidia", "xarray"}
    imported_packages = {canonicalize_name(name) for module in present for name in distributions[module]}
    declared = {canonicalize_name(requirement.name) for requirement in [*LOCKED, *COMPARED]}
    assert imported_packages - declared <= set(BROUGHT_ALONG)


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


def test_the_environment_is_the_lock_and_this_project_with_a_python_that_is_supported():
    (pip,) = (entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict))
    assert pip == ["-r requirements.lock", "-e ."]
    assert "pip" in ENVIRONMENT["dependencies"]
    (python,) = (entry for entry in ENVIRONMENT["dependencies"] if str(entry).startswith("python="))
    assert Version(python.removeprefix("python=")) in SpecifierSet(PYPROJECT["project"]["requires-python"])


def test_the_version_and_the_licence_are_the_same_everywhere():
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    version = PYPROJECT["project"]["version"]
    assert (dlperf_study.__version__, str(citation["version"])) == (version, version)
    assert f"## {version}" in (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert PYPROJECT["project"]["license"]["text"] == citation["license"] == "Apache-2.0"
    assert (PROJECT / "LICENSE").read_text(encoding="utf-8").split()[:4] == ["Apache", "License", "Version", "2.0,"]
