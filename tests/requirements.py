"""What some tests need besides the pinned packages.

Where it is missing, these tests are skipped, and the end of the run lists them with the command that would enable them.
`REQUIRE_ALL=1` makes every skip a failure.
"""

import os
import shutil
import sysconfig
from collections import Counter
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tools import horovod_build

REQUIRE_ALL = "REQUIRE_ALL"
ROOT = "root"
PYTHON_HEADERS = "the headers of Python"
#: An environment of its own, in which TensorFlow is older.
HOROVOD_TENSORFLOW = str(horovod_build.TENSORFLOW_PYTHON)
#: How to get each program.
PROGRAMS = {
    "chromium": "apt install chromium",
    HOROVOD_TENSORFLOW: "make horovod-tensorflow",
    "g++": "apt install g++",
    "make": "apt install make",
    "pdftotext": "apt install poppler-utils",
    "pdflatex": "apt install texlive-latex-extra texlive-latex-recommended",
    PYTHON_HEADERS: "apt install python3-dev",
    **dict.fromkeys(("ip", "tc"), "apt install iproute2"),
    **dict.fromkeys(("unshare", "mount"), "apt install util-linux mount"),
    **dict.fromkeys(("ssh", "ssh-keygen"), "apt install openssh-client"),
    "/usr/sbin/sshd": "apt install openssh-server",
    "mpirun": "apt install openmpi-bin",
    "munged": "apt install munge",
    **dict.fromkeys(("slurmctld", "slurmd", "sbatch"), "apt install slurm-wlm"),
}
#: How to get each package that the extra `dev` does not have.
PACKAGES = {
    "torch": "make torch",
    "horovod": "make horovod",
    "tensorflow": "make tensorflow",
    "nvidia.dali": "make dali",
    "material": "make docs",
    "twine": "python -m tools.install release",
    **dict.fromkeys(
        ("transformers", "lightning", "xarray", "accelerate", "deepspeed"), "python -m tools.install programs"
    ),
}
#: What is too large to be required anywhere, 1 GB and more, or used by users only, whose versions are theirs.
NEVER_REQUIRED = ("nvidia.dali", "transformers", "lightning", "xarray", "accelerate", "deepspeed", HOROVOD_TENSORFLOW)
#: The packages that a framework or a data loader needs, by its name.
PACKAGES_OF = {
    "torch_ddp": {"torch"},
    "torch_zero": {"torch"},
    "torch_tensor": {"torch"},
    "torch_pipeline": {"torch"},
    "horovod_torch": {"horovod", "torch"},
    "tensorflow_mirrored": {"tensorflow"},
    "tensorflow_ps": {"tensorflow"},
    "dali": {"nvidia.dali"},
}


def is_missing(name: str) -> bool:
    """Return whether a program, a package, or the rights of root are missing."""
    if name == ROOT:
        return os.geteuid() != 0
    if name == PYTHON_HEADERS:
        return not Path(sysconfig.get_path("include"), "Python.h").is_file()
    if name in PACKAGES:
        return find_spec(name.partition(".")[0]) is None or find_spec(name) is None
    return shutil.which(name) is None


def need(*names: str) -> None:
    """Skip the test if something is missing; the reason names all of it, and how to get it."""
    missing = [name for name in names if is_missing(name)]
    if not missing:
        return
    commands = sorted({enabling_command(name) for name in missing})
    pytest.skip(f"needs {', '.join(missing)} (enable: {'; '.join(commands)})")


def enabling_command(name: str) -> str:
    """Return what makes a requirement available."""
    return "run the tests as root" if name == ROOT else PACKAGES.get(name) or PROGRAMS.get(name, f"install {name}")


def needs_packages(item: pytest.Item) -> set[str]:
    """Return the packages of PACKAGES that a test asks for: by `needs`, or by a framework among its parameters."""
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    names = {parameter for parameter in parameters if isinstance(parameter, str)}
    packages = {name for marker in item.iter_markers("needs") for name in marker.args}
    for name in names & set(PACKAGES_OF):
        packages |= PACKAGES_OF[name]
    return packages | (names & set(PACKAGES))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a package or a program that is missing."""
    need(*sorted(needs_packages(item)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make a skip a failure where nothing may be skipped."""
    return strict((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Make the skip of a whole file a failure where nothing may be skipped."""
    return strict((yield))


def strict(report: Any) -> Any:
    """Return a report in which nothing is skipped, if everything is required."""
    is_too_large = any(f"needs {name} " in reason(report) for name in NEVER_REQUIRED)
    is_required = os.environ.get(REQUIRE_ALL) == "1" and not is_too_large
    if report.skipped and is_required and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{REQUIRE_ALL}=1, and this was skipped: {reason(report)}"
    return report


def reason(report: Any) -> str:
    """Return why a test was skipped."""
    return str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr).removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List what was skipped, and what would enable it."""
    skipped = Counter(reason(report) for report in terminalreporter.stats.get("skipped", []))
    if skipped:
        terminalreporter.section("skipped on this machine")
    for text, count in skipped.most_common():
        terminalreporter.line(f"{count} test{'s' if count > 1 else ''}: {text}")
