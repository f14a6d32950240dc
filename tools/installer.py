"""What every installation needs: the lock, pip, one line per step, a log, and one clear message if it fails."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
#: The versions of everything that can be installed together. pip takes it as constraints.
MAIN_LOCK = "locks/main.txt"
CONSTRAINED = ("-c", str(PROJECT / MAIN_LOCK))
#: What is worth showing of a log that ends in a failure.
TELLING = re.compile(r"\berror\b ?:|cmake error|no space left|no such file|killed", re.IGNORECASE)


class InstallationError(Exception):
    """The installation failed for the reason in the message."""


def pins(lock: str = MAIN_LOCK) -> dict[str, str]:
    """Return the version of each package of a lock of the project."""
    lines = (PROJECT / lock).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def lock_digest(lock: str = MAIN_LOCK) -> str:
    """Return a digest of the pins of a lock."""
    return hashlib.sha256(repr(sorted(pins(lock).items())).encode()).hexdigest()[:10]


def extra_requirements(extra: str) -> list[str]:
    """Return what an extra of pyproject.toml needs, as pip takes it."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["optional-dependencies"][extra])


def is_installed(package: str) -> bool:
    """Return whether this environment has a package."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def need_free(folder: Path, megabytes: int, purpose: str) -> None:
    """Raise InstallationError if the disk of a folder is too full."""
    free = shutil.disk_usage(folder).free // 2**20
    if free < megabytes:
        raise InstallationError(f"{free} MB free on the disk of {folder}; {purpose} needs about {megabytes} MB")


def kept_folder(*parts: str) -> Path:
    """Return the folder in the user's cache for what takes long to make."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "dlperf_study", *parts)


def say(line: str) -> None:
    """Print a step at once, also into a pipe."""
    print(line, flush=True)


@dataclass(frozen=True)
class Stamp:
    """A file in an environment with the key of the installation that was finished and checked."""

    path: Path

    def matches(self, key: str) -> bool:
        """Return whether the installation with this key is finished."""
        return self.path.is_file() and self.path.read_text(encoding="utf-8") == key

    def write(self, key: str) -> None:
        """Record that the installation is finished and checked."""
        self.path.write_text(key, encoding="utf-8")

    def clear(self) -> None:
        """Record that the installation is about to change."""
        self.path.unlink(missing_ok=True)


class Log:
    """The output of all commands of one installation, in a file of this environment."""

    def __init__(self, name: str) -> None:
        self.path = Path(sys.prefix) / name
        self.path.write_text("", encoding="utf-8")

    def run(self, command: Sequence[str], failure: str, environment: Mapping[str, str] | None = None) -> str:
        """Run a command and return its output; raise InstallationError with the telling lines if it fails."""
        start = self.path.stat().st_size
        with self.path.open("ab") as file:
            ended = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment, cwd=PROJECT)
        printed = self.path.read_bytes()[start:].decode(errors="replace")
        if ended.returncode:
            raise InstallationError(f"{failure} From {self.path}:\n{telling_lines(printed)}")
        return printed


def telling_lines(printed: str, most: int = 8) -> str:
    """Return the first lines that name an error, and the last lines."""
    lines = printed.splitlines()
    early = [line for line in lines[:-most] if TELLING.search(line)][:most]
    return "\n".join(f"  {line}" for line in [*early, *lines[-most:]])


def compile_packages(since: float) -> None:
    """Compile the packages that were installed since a time, on all cores; pip would use one."""
    new = [str(path) for path in Path(sysconfig.get_path("purelib")).iterdir() if path.stat().st_mtime >= since]
    if new:
        # Some packages have a template that is no Python. It fails here; pip ignores it too.
        subprocess.run([sys.executable, "-m", "compileall", "-qq", "-j", "0", *new])


def check_packages() -> None:
    """Raise InstallationError if the packages of this environment do not fit together."""
    done = subprocess.run([*PIP, "check"], capture_output=True, text=True)
    if done.returncode and (wrong := misfits(done.stdout, [each.name for each in metadata.distributions()])):
        raise InstallationError("\n".join(["The packages do not fit together:", *wrong]))


def misfits(printed: str, installed: Sequence[str]) -> list[str]:
    """Return the lines of `pip check` that are right.

    pip reports Paddle as missing if its build for GPUs, a package with a different name, is installed.
    """
    lines = printed.strip().splitlines()
    if "paddlepaddle-gpu" in installed:
        lines = [line for line in lines if not line.endswith("requires paddlepaddle, which is not installed.")]
    return lines
