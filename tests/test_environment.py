"""pyproject.toml, the locks, environment.yml and CITATION.cff fit together."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, distributions, packages_distributions
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
from tools import horovod_build
from tools.installer import MAIN_LOCK

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
DIRECT = [Requirement(text) for text in PYPROJECT["project"]["dependencies"]]
EXTRAS = {
    name: [Requirement(text) for text in texts] for name, texts in PYPROJECT["project"]["optional-dependencies"].items()
}
[DEV] = EXTRAS.pop("dev")
ENVIRONMENT = yaml.safe_load((PROJECT / "environment.yml").read_text(encoding="utf-8"))
HOROVOD_TENSORFLOW = horovod_build.BUILDS["horovod-tensorflow"]
#: Each supported Python, as the markers of requirements name it.
PYTHONS = [{"python_version": version, "python_full_version": f"{version}.2"} for version in ("3.11", "3.12", "3.13")]
#: What is imported from a library that a direct dependency brings along, because it is part of how that one is used.
BROUGHT_ALONG = {
    "pydantic-core": "pydantic",
    "typing-extensions": "pydantic",
    "jupyter-client": "nbclient",
    "jupyter-core": "nbclient",
    "urllib3": "kubernetes",
}


def pins(lock: str = MAIN_LOCK) -> dict[str, Version]:
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


def needed_packages(*extras: str, python: dict[str, str] | None = None) -> dict[str, list[Requirement]]:
    """Return every package that the extras need, also indirectly, with what is required of it.

    Packages that are not installed here, such as DALI, are in it without their own requirements.
    """
    needed: dict[str, list[Requirement]] = {}
    waiting = [*DIRECT, *chain.from_iterable(EXTRAS[extra] for extra in extras)]
    done = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        needed.setdefault(name, []).append(requirement)
        step = (name, frozenset(requirement.extras))
        if step not in done:
            done.add(step)
            waiting += required_by(name, requirement.extras, python or {})
    return needed


def required_by(name: str, extras: set[str], python: dict[str, str]) -> list[Requirement]:
    """Return the requirements of an installed package with extras on a version of Python."""
    try:
        requirements = [Requirement(text) for text in distribution(name).requires or ()]
    except PackageNotFoundError:
        return []
    variables = [{"extra": extra, **python} for extra in ("", *extras)]
    return [each for each in requirements if each.marker is None or any(map(each.marker.evaluate, variables))]


@pytest.mark.parametrize("python", PYTHONS, ids=lambda python: python["python_version"])
def test_every_package_that_the_extras_need_is_pinned_and_fits(python):
    pinned = pins()
    for name, requirements in needed_packages(*EXTRAS, python=python).items():
        assert name in pinned, f"{MAIN_LOCK} does not pin {name}"
        for requirement in requirements:
            assert pinned[name] in requirement.specifier, f"{MAIN_LOCK} has {pinned[name]}, needed is {requirement}"


@pytest.mark.ci
@pytest.mark.needs("torch", "horovod", "tensorflow", "material", "xarray", "twine")
def test_every_pin_is_needed():
    """cmake compiles Horovod; of DALI, which may be missing, nobody here knows the requirements."""
    needed = set().union(*(needed_packages(*EXTRAS, python=python) for python in PYTHONS))
    left = {name for name in set(pins()) - needed if not name.startswith("nvidia-")}
    assert left <= {"cmake", "libcst", "makefun", "nvtx"}


def test_set_up_counts_its_packages():
    script = (PROJECT / "tools" / "setup.sh").read_text(encoding="utf-8")
    assert f"\nPACKAGES={len(needed_packages(*DEV.extras))}\n" in script


@pytest.mark.parametrize("lock", [MAIN_LOCK, HOROVOD_TENSORFLOW.lock])
def test_what_is_pinned_runs_with_the_oldest_python_of_the_supported_ones(lock):
    """A pin may need a later release of 3.11 than 3.11.2 of Debian 12."""
    installed = {canonicalize_name(each.name): each.metadata["Requires-Python"] for each in distributions()}
    needed = {name: installed[name] for name in pins(lock) if installed.get(name)}
    assert {name: python for name, python in needed.items() if "3.11.2" not in SpecifierSet(python)} == {}


def test_the_lock_has_no_library_for_gpus():
    assert {"paddlepaddle-gpu", "tensorflow"}.isdisjoint(pins())


def test_a_framework_has_one_version_in_the_extra_the_lock_and_the_page():
    page = (PROJECT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    assert f"PaddlePaddle {pins()['paddlepaddle']}" in page
    names = {"torch": "PyTorch", "horovod": "Horovod", "tensorflow": "TensorFlow"}
    for extra, name in names.items():
        [requirement] = EXTRAS[extra]
        version = pins()[requirement.name]
        assert str(requirement) == f"{requirement.name}=={version}"
        assert f"{name} {version}" in page


def test_horovod_for_tensorflow_is_pinned_by_a_lock_of_its_own():
    pinned = pins(HOROVOD_TENSORFLOW.lock)
    needed = [Requirement("tensorflow-cpu==2.15.1"), Requirement("numpy<2"), *EXTRAS["horovod"]]
    assert all(pinned[requirement.name] in requirement.specifier for requirement in needed)
    page = (PROJECT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    assert f"TensorFlow {pinned['tensorflow-cpu']}" in page
    assert f"Horovod {pinned['horovod']}" in page
    folder = HOROVOD_TENSORFLOW.python.parents[1].name
    assert f"/{folder}/" in (PROJECT / ".gitignore").read_text(encoding="utf-8")


@pytest.mark.needs("torch", "horovod", "tensorflow")
def test_what_the_package_imports_is_declared():
    distributions = packages_distributions()
    # DALI and xarray are users' to install, and may be missing here.
    present = imported() - {"nvidia", "xarray"}
    imported_packages = {canonicalize_name(name) for module in present for name in distributions[module]}
    declared = {canonicalize_name(requirement.name) for requirement in chain(DIRECT, *EXTRAS.values())}
    assert imported_packages - declared <= set(BROUGHT_ALONG)


def test_every_dependency_is_in_the_table_of_libraries():
    page = (PROJECT / "docs" / "plugins.md").read_text(encoding="utf-8")
    main, extras = page.split("## Libraries\n")[1].split("### Extras\n")
    assert {name for row in cells(main, column=1) for name in row} == {requirement.name for requirement in DIRECT}
    wanted = {(extra, requirement.name) for extra, listed in EXTRAS.items() for requirement in listed}
    names = zip(cells(extras, column=1), cells(extras, column=2), strict=True)
    assert {(extra, name) for (extra,), several in names for name in several} == wanted


def cells(table: str, column: int) -> list[list[str]]:
    """Return the words in code of each row's cell in a column."""
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return [re.findall(r"`([^`]+)`", line.split("|")[column]) for line in lines]


def test_pip_resolves_the_packages_of_the_conda_environment(tmp_path):
    """The tests run in the same packages: pip finds every requirement satisfied, and needs no network."""
    for name in ("pyproject.toml", "locks", "environment.yml"):
        (shutil.copytree if (PROJECT / name).is_dir() else shutil.copy)(PROJECT / name, tmp_path / name)
    [pip] = [entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict)]
    (tmp_path / "condaenv.txt").write_text("\n".join(pip))
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-build-isolation"]
    variables = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    done = subprocess.run([*command, "-r", "condaenv.txt"], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall("^Would install (.*)$", done.stdout, re.MULTILINE) == ["dlperf_study-0.1.0"]
    assert "pip" in ENVIRONMENT["dependencies"]


def test_the_version_and_the_licence_are_the_same_everywhere():
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    version = PYPROJECT["project"]["version"]
    assert (dlperf_study.__version__, str(citation["version"])) == (version, version)
    assert f"## {version}" in (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert PYPROJECT["project"]["license"]["text"] == citation["license"] == "Apache-2.0"
    assert (PROJECT / "LICENSE").read_text(encoding="utf-8").split()[:4] == ["Apache", "License", "Version", "2.0,"]
