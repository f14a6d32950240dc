"""The package as a user has it: its wheel in an environment of its own, without the checkout and without any extra.

The environment holds exactly what the wheel asks for, in the versions of the lock: each file of these packages is
linked from the environment of the tests, which takes two seconds where pip takes two minutes.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dlperf_study.core.paths import PROJECT
from tools import release

#: Of the environment of the tests, what must not reach the commands of an installed package.
_OF_THE_TESTS = ("PYTHONPATH", "VIRTUAL_ENV", "DLPERF_STUDY_OUTPUTS")


@dataclass(frozen=True)
class Installation:
    """An environment with the package, the archives of a release, and the folder in which its user works."""

    environment: Path
    archives: Path
    workspace: Path

    @property
    def packages(self) -> Path:
        """The folder of its packages."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.environment / "lib" / version / "site-packages"

    def run(self, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run the installed command in the workspace; return how it ended and what it printed."""
        return self._run("dlperf-study", *arguments, **variables)

    def run_module(self, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a module of the package in the workspace."""
        return self._run("python", "-m", *arguments, **variables)

    def _run(self, program: str, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        outer = {name: value for name, value in os.environ.items() if name not in _OF_THE_TESTS}
        command = [str(self.environment / "bin" / program), *arguments]
        environment = {**outer, **variables}
        return subprocess.run(command, cwd=self.workspace, env=environment, capture_output=True, text=True, timeout=300)

    def files(self) -> set[str]:
        """Return the files of the package, without those that Python compiles."""
        package = self.packages / "dlperf_study"
        return {str(path) for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def install(folder: Path, extras: Iterable[str] = ()) -> Installation:
    """Build the wheel from a copy of the tracked files, and install it with these extras into an empty environment."""
    wheel = build_wheel(folder / "source", folder / "wheels")
    installation = Installation(folder / "environment", folder / "wheels", folder / "workspace")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", installation.environment], check=True)
    requested = [sys.executable, "-m", "pip", "--python", str(installation.environment / "bin" / "python"), "install"]
    subprocess.run([*requested, "-q", "--no-deps", "--no-compile", wheel], check=True)
    installed = Distribution.at(next(installation.packages.glob("dlperf_study-*.dist-info")))
    for package in required(installed, frozenset(extras)):
        link_files(package, installation.environment)
    installation.workspace.mkdir()
    return installation


def build_wheel(source: Path, wheels: Path) -> Path:
    """Return the wheel as a release builds it, from the files that git lists, new ones included."""
    listed = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(["git", "-C", PROJECT, *listed], check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (PROJECT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, source / name)
    return release.build(source, wheels)


def required(package: Distribution, extras: frozenset[str]) -> list[Distribution]:
    """Return the installed distributions that a package needs with these extras, each once, and what these need."""
    needed: dict[str, Distribution] = {}
    waiting = [(package, extras)]
    done = set()
    while waiting:
        asking, asked_extras = waiting.pop()
        for requirement in _requirements(asking, asked_extras):
            step = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if step not in done:
                done.add(step)
                needed[step[0]] = distribution(requirement.name)
                waiting.append((needed[step[0]], step[1]))
    return list(needed.values())


def _requirements(package: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    """Yield what a package asks for here."""
    for requirement in map(Requirement, package.requires or ()):
        environments = [{"extra": extra} for extra in ("", *extras)]
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments)):
            yield requirement


def link_files(package: Distribution, environment: Path) -> None:
    """Link the files of a package, also those outside of the folder of packages, into another environment.

    Links are symbolic where the folders are of two file systems.
    """
    here = Path(sysconfig.get_path("data")).resolve()
    for source in filter(Path.exists, _files_of(package)):
        target = environment / source.resolve().relative_to(here)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except FileExistsError:
            continue
        except OSError:
            target.symlink_to(source)


def _files_of(package: Distribution) -> Iterator[Path]:
    """Yield the files of a package, and what Python compiled of them after pip had listed them."""
    for file in package.files or ():
        source = Path(os.path.normpath(package.locate_file(file)))
        yield source
        if source.suffix == ".py":
            yield Path(cache_from_source(str(source)))
