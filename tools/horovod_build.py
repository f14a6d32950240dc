"""How Horovod is compiled for the PyTorch of this environment, and under which key the wheel is kept."""

import hashlib
import os
import re
import shlex
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import psutil

from tools.installer import PIP, InstallationError, Log, kept_folder, need_free, pins

LOCK = "requirements-horovod.lock"
NEEDED_MB = 500
#: Those of the standard library that Horovod uses without including them; before GCC 13 others brought them along.
MISSING_HEADERS = ("cstdint", "functional", "memory", "stdexcept", "string")
#: What the heaviest source file takes to compile.
BYTES_PER_JOB = 2_500_000_000
#: Horovod's own build options, the CUDA toolkit and the compiler. Its run-time settings do not match.
BUILD_OPTION = re.compile(
    r"HOROVOD_(WITH(OUT)?_\w+|GPU\w*|CPU_OPERATIONS|NCCL_\w+|NVTX_\w+|BUILD_\w+|(CUDA|ROCM)_HOME|ALLOW_MIXED_GPU_IMPL|CMAKE)"
    r"|CUDA_HOME|CXX"
)
DEFAULT_OPTIONS = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}


def build_options(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a build: those that the user set, and the defaults that they do not contradict."""
    user_options = {name: value for name, value in environment.items() if BUILD_OPTION.fullmatch(name)}
    kept = {name: value for name, value in DEFAULT_OPTIONS.items() if opposite(name) not in user_options}
    return {**kept, **user_options}


def opposite(option: str) -> str:
    """Return the option that asks for the contrary."""
    if "_WITHOUT_" in option:
        return option.replace("_WITHOUT_", "_WITH_")
    return option.replace("_WITH_", "_WITHOUT_")


def key(options: Mapping[str, str]) -> str:
    """Return the name of everything that a wheel depends on, readable but for the digest of the options."""
    digest = hashlib.sha256(repr(sorted(options.items())).encode()).hexdigest()[:10]
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    versions = f"horovod-{pins(LOCK)['horovod']}-torch-{metadata.version('torch')}"
    return f"{versions}-{python}-{sysconfig.get_platform()}-{digest}"


def wheel_folder(options: Mapping[str, str]) -> Path:
    """Return where the wheel of these options is kept for every environment of this user."""
    return kept_folder("wheels", key(options))


def kept_wheel(folder: Path) -> Path | None:
    """Return the wheel that an earlier build left."""
    return next(folder.glob("horovod-*.whl"), None)


def check_tools(environment: Mapping[str, str]) -> None:
    """Raise InstallationError that names everything that is missing for a build."""
    compiler = shlex.split(environment.get("CXX") or "g++")[0]
    missing = [name for name in (compiler, "make") if not shutil.which(name, path=environment.get("PATH"))]
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        missing.append("the headers of Python")
    # Horovod's build asks it where those headers are; since Python 3.12 only setuptools brings it.
    if not find_spec("distutils"):
        missing.append("distutils (pip install setuptools)")
    if missing:
        raise InstallationError(
            f"{', '.join(missing)} not found, and Horovod has to be compiled; "
            "install them (Debian: apt install g++ make python3-dev; conda: conda install cxx-compiler make)"
        )
    need_free(Path(tempfile.gettempdir()), NEEDED_MB, "compiling Horovod")


def build(folder: Path, options: Mapping[str, str], log: Log) -> Path:
    """Compile Horovod without its build's own ideas of PyTorch, and keep the wheel in a folder."""
    check_tools(os.environ)
    wanted = f"horovod=={pins(LOCK)['horovod']}"
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        # A wheel from pip's cache or from a local collection may be one for another PyTorch.
        command = [*PIP, "wheel", "-v", "--no-cache-dir", "--no-binary=horovod", "--no-build-isolation", "--no-deps"]
        log.run([*command, wanted, "-w", name], "Horovod was not built.", build_environment(scratch, options))
        return keep(next(scratch.glob("*.whl")), folder)


def build_environment(scratch: Path, options: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the build."""
    return {
        **os.environ,
        "HOROVOD_CMAKE": str(Path(sysconfig.get_path("scripts"), "cmake")),
        **options,
        "CXX": str(compiler_for_torch(scratch, options.get("CXX") or "g++")),
        # Horovod and what it carries along ask for older policies than cmake 4 knows.
        "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
        "MAKEFLAGS": f"-j{jobs()}",
    }


def compiler_for_torch(scratch: Path, compiler: str) -> Path:
    """Write a compiler that adds, after all flags, what PyTorch's headers need and what Horovod's lack.

    Horovod sets C++14 and strips every other `-std`; PyTorch 2 needs C++17. CXXFLAGS come too early to matter, and a
    launcher set from outside is replaced when ccache is found.
    """
    wrapper = scratch / "c++17"
    included = " ".join(f"-include {header}" for header in MISSING_HEADERS)
    wrapper.write_text(f'#!/bin/sh\nexec {compiler} "$@" -std=c++17 {included}\n', encoding="utf-8")
    wrapper.chmod(0o755)
    return wrapper


def jobs() -> int:
    """Return how many source files to compile at once: as many as there are CPUs, and memory for."""
    return max(1, min(len(os.sched_getaffinity(0)), psutil.virtual_memory().available // BYTES_PER_JOB))


def keep(wheel: Path, folder: Path) -> Path:
    """Move a wheel into its folder, where it appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{wheel.name}.{os.getpid()}"
    shutil.copy(wheel, partial)
    return partial.replace(folder / wheel.name)
