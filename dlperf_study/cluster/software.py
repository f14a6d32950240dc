"""The measuring code and the installed packages of a Python. Standard library only: it runs in training images too.

``python -m dlperf_study.cluster.software`` prints both as one line of JSON.
"""

import hashlib
import json
import os
import platform
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from dlperf_study import data_sources, frameworks
from dlperf_study.errors import RunError
from dlperf_study.paths import PROJECT

#: The module that prints them.
MODULE = "dlperf_study.cluster.software"
#: What takes part in a run besides the libraries that train.
COMMON_PACKAGES = (
    *("dlperf_study", "protobuf", "numpy"),
    *("papermill", "nbclient", "ipykernel", "jupyterlab", "pandas"),
)
PACKAGE_FOLDER = PROJECT / "dlperf_study"
#: By this a driver tells every process of a run which measuring code it runs.
DRIVER_CODE_VARIABLE = "DLPERF_STUDY_DRIVER_CODE"
#: The code that measures. Reports may change without a new measurement. Listed and not computed: whoever adds a room
#: decides whether a change in it means that everything is measured again.
MEASURING = (
    *("worker", "frameworks", "models", "data_sources", "image_sets", "launchers", "guard", "slurm", "kubernetes"),
)
MEASURING_FILES = ("evidence/rank_log_writer.py", "evidence/telemetry_writer.py")


@cache
def measuring_code() -> str:
    """Return a digest of the source of all measuring code."""
    digest = hashlib.sha256()
    package = PROJECT / "dlperf_study"
    files = [file for room in MEASURING for file in sorted((package / room).rglob("*.py"))]
    for file in (*files, *(package / name for name in MEASURING_FILES)):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def code_identity() -> str:
    """Return the value of ``DRIVER_CODE_VARIABLE`` for this code: its digest, and the folder of the package."""
    return f"{measuring_code()} {PACKAGE_FOLDER}"


def require_code_of_driver(environment: Mapping[str, str] = os.environ) -> None:
    """Raise RunError if this process runs other measuring code than the driver that is named in its environment.

    With two checkouts and one environment of Python, the folder in which a process starts decides which one it runs.
    """
    driver_code, _, driver_folder = environment.get(DRIVER_CODE_VARIABLE, "").partition(" ")
    if not driver_code or driver_code == measuring_code():
        return
    if driver_folder == str(PACKAGE_FOLDER):
        raise RunError(f"the measuring code in {PACKAGE_FOLDER} has changed since the study started; start it again")
    raise RunError(
        f"other measuring code: the driver runs that in {driver_folder}, this process that in {PACKAGE_FOLDER} "
        f"on {socket.gethostname()}; install one checkout in both, or start the study in the checkout installed"
    )


@cache
def software() -> dict[str, Any]:
    """Return the versions of Python, the system and the packages that take part."""
    system = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "executable": Path(sys.executable).name,
    }
    packages = [*COMMON_PACKAGES, *chain(*packages_of_libraries().values(), *packages_of_data_sources().values())]
    return system | _versions(packages)


def installed(packages: Sequence[str] = ()) -> dict[str, Any]:
    """Return ``code``, a digest, and ``software``, versions, those of ``packages`` too, of this Python."""
    return {"code": measuring_code(), "software": software() | _versions(packages)}


@cache
def packages_of_libraries() -> dict[str, tuple[str, ...]]:
    """Return the libraries that train, each with its packages; the first one that is installed has its version."""
    return {framework.library: framework.packages for framework in frameworks.all_frameworks()}


@cache
def packages_of_data_sources() -> dict[str, tuple[str, ...]]:
    """Return the data sources, each with the packages that it needs."""
    return {name: data_sources.load(name).packages for name in data_sources.names()}


def training_libraries(versions: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of the libraries that train, by library, given those of packages; without their build."""
    libraries = {}
    for library, packages in packages_of_libraries().items():
        installed_versions = [versions[package] for package in packages if package in versions]
        if installed_versions:
            libraries[library] = installed_versions[0].partition("+")[0]
    return libraries


def main() -> None:
    """Print the installed packages of this Python, also those named by the arguments."""
    print(json.dumps(installed(sys.argv[1:])))


def _versions(packages: Sequence[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


if __name__ == "__main__":
    main()
