"""What the installers share: pins, one line per step, a log, and one clear message when it can't go on."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.version import Version

PROJECT = Path(__file__).resolve().parents[1]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
#: What is worth showing of a log that ends in a failure.
TELLING = re.compile(r"\berror\b ?:|cmake error|no space left|no such file|killed", re.IGNORECASE)


class InstallationError(Exception):
    """The installation can't go on, for the reason in the message."""


def pins(lock: str) -> dict[str, str]:
    """Return the version of each package of a lock file of the project."""
    lines = (PROJECT / lock).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def requirements(pinned: Mapping[str, str]) -> list[str]:
    """Return pins as pip takes them on its command line."""
    return [f"{name}=={version}" for name, version in pinned.items()]


def are_installed(pinned: Mapping[str, str]) -> bool:
    """Return whether this environment has these versions, of whatever build (`2.13.0+cpu` is a 2.13.0)."""
    try:
        return all(Version(metadata.version(name)).public == version for name, version in pinned.items())
    except metadata.PackageNotFoundError:
        return False


def need_free(folder: Path, megabytes: int, purpose: str) -> None:
    """Raise InstallationError when the disk of a folder has less room than this."""
    free = shutil.disk_usage(folder).free // 2**20
    if free < megabytes:
        raise InstallationError(f"{free} MB free on the disk of {folder}; {purpose} needs about {megabytes} MB")


def kept_folder(*parts: str) -> Path:
    """Return where what takes long to make is kept for every environment of this user."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "dlperf_study", *parts)


def say(line: str) -> None:
    """Print a step at once, also into a pipe."""
    print(line, flush=True)


@dataclass(frozen=True)
class Stamp:
    """A file in this environment that says for what an installation was finished and checked."""

    name: str

    @property
    def path(self) -> Path:
        """Return its path in the environment, with which it is deleted."""
        return Path(sys.prefix) / self.name

    def says(self, key: str) -> bool:
        """Return whether the installation was finished for this key."""
        return self.path.is_file() and self.path.read_text(encoding="utf-8") == key

    def write(self, key: str) -> None:
        """Record that the installation is finished and checked."""
        self.path.write_text(key, encoding="utf-8")

    def clear(self) -> None:
        """Record that what is installed is about to change, and may stay half done."""
        self.path.unlink(missing_ok=True)


class Log:
    """Everything that the commands of one installation print, in a file of this environment."""

    def __init__(self, name: str) -> None:
        self.path = Path(sys.prefix) / name
        self.path.write_text("", encoding="utf-8")

    def run(self, command: Sequence[str], failure: str, environment: Mapping[str, str] | None = None) -> str:
        """Run a command, return what it printed, and raise InstallationError with the telling lines if it fails."""
        start = self.path.stat().st_size
        with self.path.open("ab") as file:
            ended = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment, cwd=PROJECT)
        printed = self.path.read_bytes()[start:].decode(errors="replace")
        if ended.returncode:
            raise InstallationError(f"{failure} From {self.path}:\n{telling_lines(printed)}")
        return printed


def compile_packages(since: float) -> None:
    """Compile what pip has installed since this time without doing so: on all cores, where pip would on one."""
    new = [str(path) for path in Path(sysconfig.get_path("purelib")).iterdir() if path.stat().st_mtime >= since]
    if new:
        # Of some packages a file is a template and no Python, for which this fails and pip would not.
        subprocess.run([sys.executable, "-m", "compileall", "-qq", "-j", "0", *new])


def check_packages() -> None:
    """Raise InstallationError if the packages of this environment do not fit together."""
    done = subprocess.run([*PIP, "check"], capture_output=True, text=True)
    if done.returncode and (wrong := misfits(done.stdout, [each.name for each in metadata.distributions()])):
        raise InstallationError("\n".join(["The packages do not fit together:", *wrong]))


def misfits(printed: str, installed: Sequence[str]) -> list[str]:
    """Return the lines of `pip check` that are right.

    pip misses Paddle where its build for GPUs, a package of another name, is installed in its place.
    """
    lines = printed.strip().splitlines()
    if "paddlepaddle-gpu" in installed:
        lines = [line for line in lines if not line.endswith("requires paddlepaddle, which is not installed.")]
    return lines


def telling_lines(printed: str, most: int = 8) -> str:
    """Return the first lines that name an error, and the last lines."""
    lines = printed.splitlines()
    early = [line for line in lines[:-most] if TELLING.search(line)][:most]
    return "\n".join(f"  {line}" for line in [*early, *lines[-most:]])


def ended(install: Callable[[], None]) -> int:
    """Run an installer and return its exit code; a failure is one message."""
    try:
        install()
    except InstallationError as error:
        print(f"installation failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("installation interrupted; the same command starts it again", file=sys.stderr)
        return 130
    return 0
