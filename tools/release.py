"""Build and check what is published: `python -m tools.release dist v0.1.0` builds both archives into dist/.

The workflow `release.yaml` calls it for a pushed tag, and publishes dist/ if every check passes. The tag must be
the version of pyproject.toml, and the changelog must have a finished section for it. The steps:

1. setuptools builds the source archive, and pip builds the wheel from that archive.
2. twine checks that the package index can show the readme.
3. pip installs the wheel into an empty environment, and the installed command runs.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
#: What the installed command must do, and what it must print.
SMOKE_TESTS = (
    (("--help",), "usage: dlperf-study"),
    (("plan", "quickstart"), "Study quickstart"),
)


class ReleaseError(Exception):
    """The version must not be published, for the reason in the message."""


def check_version(tag: str, pyproject: str, changelog: str) -> str:
    """Return the version; raise ReleaseError if tag, project and changelog do not agree."""
    version = str(tomllib.loads(pyproject)["project"]["version"])
    if tag != f"v{version}":
        raise ReleaseError(f"the tag is {tag}; version {version} of pyproject.toml has the tag v{version}")
    heading = re.search(rf"^## {re.escape(version)}\b.*$", changelog, re.MULTILINE)
    if not heading:
        raise ReleaseError(f"CHANGELOG.md has no section for {version}")
    if "not released" in heading.group():
        raise ReleaseError(f"write the date into the heading of CHANGELOG.md: {heading.group()}")
    return version


def build(source: Path, dist: Path) -> Path:
    """Build the source archive, then the wheel from it; return the wheel."""
    dist.mkdir(parents=True, exist_ok=True)
    program = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, dist.resolve()], cwd=source, check=True, stdout=subprocess.DEVNULL)
    [archive] = dist.glob("*.tar.gz")
    wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", dist, archive]
    subprocess.run(wheel, check=True)
    return next(dist.glob("*.whl"))


def check_archives(dist: Path) -> None:
    """Raise ReleaseError if the package index could not show the description of an archive."""
    archives = sorted(str(file) for file in dist.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *archives], capture_output=True, text=True
    )
    if done.returncode:
        raise ReleaseError(done.stdout + done.stderr)


def install(wheel: Path, environment: Path) -> None:
    """Install the wheel into an empty environment, with the versions of the lock."""
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", PROJECT / "locks" / "main.txt", wheel], check=True)


def smoke_test(environment: Path, folder: Path) -> None:
    """Run the installed command in an empty folder; raise ReleaseError if it fails."""
    for arguments, expected in SMOKE_TESTS:
        command = [str(environment / "bin" / "dlperf-study"), *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode or expected not in done.stdout:
            raise ReleaseError(f"dlperf-study {' '.join(arguments)}:\n{done.stdout}{done.stderr}")


def release(dist: Path, tag: str) -> None:
    """Build both archives and check them; print each step."""
    pyproject = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    version = check_version(tag, pyproject, (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if dist.is_file():
        raise ReleaseError(f"{dist} is a file; name a new or empty folder")
    if dist.exists() and any(dist.iterdir()):
        raise ReleaseError(f"{dist} is not empty")
    if not find_spec("twine"):
        raise ReleaseError("twine is missing: python -m tools.install release")
    print(f"release 1/3: building dlperf_study {version}", flush=True)
    wheel = build(PROJECT, dist)
    print(f"release 2/3: checking {', '.join(sorted(file.name for file in dist.iterdir()))}", flush=True)
    check_archives(dist)
    print("release 3/3: installing the wheel into an empty environment", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "workspace")
        folder.mkdir()
        install(wheel, Path(name, "environment"))
        smoke_test(Path(name, "environment"), folder)
    print(f"release: {dist} can be published", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Build and check a release; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dist", type=Path, help="empty folder for both archives")
    parser.add_argument("tag", help="the pushed tag, such as v0.1.0")
    options = parser.parse_args(arguments)
    try:
        release(options.dist, options.tag)
    except ReleaseError as error:
        print(f"not released: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
