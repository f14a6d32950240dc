"""Horovod: compile it for one library, keep the wheel in the user's cache, install it, and check an all-reduce."""

import hashlib
import os
import re
import shlex
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import psutil

from tools.installer import (
    CONSTRAINED,
    MAIN_LOCK,
    PROJECT,
    InstallationError,
    Log,
    Stamp,
    check_packages,
    is_installed,
    kept_folder,
    lock_digest,
    need_free,
    pins,
    say,
)

NEEDED_MB = 500
#: Headers of the standard library that Horovod uses without including them; GCC before 13 includes them by itself.
MISSING_HEADERS = ("cstdint", "functional", "memory", "stdexcept", "string")
#: Memory to compile the heaviest source file.
BYTES_PER_JOB = 2_500_000_000
#: Horovod's own build options, the CUDA toolkit and the compiler. Its run-time settings do not match.
BUILD_OPTION = re.compile(
    r"HOROVOD_(WITH(OUT)?_\w+|GPU\w*|CPU_OPERATIONS|NCCL_\w+|NVTX_\w+|BUILD_\w+|(CUDA|ROCM)_HOME|ALLOW_MIXED_GPU_IMPL|CMAKE)"
    r"|CUDA_HOME|CXX"
)
PROCESSES = 2


@dataclass(frozen=True)
class Build:
    """Horovod for one library.

    Attributes:
        name: the name in messages, and of the log.
        framework: its name in tools/all_reduce.py and in Horovod's build options.
        package: the package of the library.
        lock: pins Horovod and the library.
        python: of the environment in which both are installed.
        needed_mb: free disk space for an environment of its own; 0 if Horovod is installed into this environment.

    """

    name: str
    framework: str
    package: str
    lock: str
    python: Path
    needed_mb: int = 0

    @property
    def is_separate(self) -> bool:
        """Whether it has an environment of its own."""
        return self.needed_mb > 0

    @property
    def version(self) -> str:
        """The version of Horovod."""
        return pins(self.lock)["horovod"]

    @property
    def library(self) -> str:
        """The library and its version, with its build such as `+cpu`."""
        if self.is_separate:
            return f"{self.package}-{pins(self.lock)[self.package]}"
        return f"{self.package}-{metadata.version(self.package)}"

    @property
    def stamp(self) -> Stamp:
        """The stamp in the environment of this Horovod."""
        return Stamp(self.python.parents[1] / ".horovod-ready")


TENSORFLOW_PYTHON = PROJECT / ".horovod-tensorflow" / "bin" / "python"
BUILDS = {
    "horovod": Build("horovod", "torch", "torch", MAIN_LOCK, Path(sys.executable)),
    # Horovod 0.28.1 needs TensorFlow 2.15.1, which needs an older numpy than this project.
    "horovod-tensorflow": Build(
        "horovod-tensorflow",
        "tensorflow",
        "tensorflow-cpu",
        "locks/horovod-tensorflow.txt",
        TENSORFLOW_PYTHON,
        needed_mb=2500,
    ),
}


def install(build: Build) -> None:
    """Install Horovod, from a kept wheel if there is one, and check it by an all-reduce."""
    name, options = build.name, build_options(build, os.environ)
    if is_done(build, options):
        say(f"{name}: {build.version} is installed in {build.python.parents[1]} and was checked")
        return
    log = Log(f"{name}.log")
    if build.is_separate:
        make_environment(build, options, log)
    else:
        helpers = ["cloudpickle", "cmake"]
        say(f"{name} 1/4: installing {' and '.join(helpers)} (log: {log.path})")
        run_pip(
            build, log, "install", *CONSTRAINED, *helpers, failure="pip could not install them; is there a network?"
        )
    wheel = built_wheel(build, options, log)
    say(f"{name} 3/4: installing the wheel")
    build.stamp.clear()
    replaced = ("install", "--no-index", "--no-deps", "--force-reinstall", str(wheel))
    run_pip(build, log, *replaced, failure="pip refused the wheel.")
    if not build.is_separate:
        check_packages()
    say(f"{name} 4/4: {PROCESSES} processes communicate a tensor")
    say(f"{name}: {all_reduce(build, options, wheel, log)}")
    build.stamp.write(stamp_key(build, options))
    if build.is_separate:
        say(f"{name}: name its Python in your cluster file: python: {{horovod_tensorflow: {build.python}}}")


def is_done(build: Build, options: Mapping[str, str]) -> bool:
    """Return whether Horovod is installed with these options, and was checked."""
    is_there = build.python.exists() if build.is_separate else is_installed("horovod")
    return is_there and build.stamp.matches(stamp_key(build, options))


def build_options(build: Build, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the user, and the defaults that they do not contradict."""
    default_options = {f"HOROVOD_WITH_{library_option(build)}": "1", "HOROVOD_WITH_GLOO": "1"}
    for name in ("MPI", "PYTORCH", "TENSORFLOW", "MXNET"):
        if name != library_option(build):
            default_options[f"HOROVOD_WITHOUT_{name}"] = "1"
    user_options = {name: value for name, value in environment.items() if BUILD_OPTION.fullmatch(name)}
    kept = {name: value for name, value in default_options.items() if opposite(name) not in user_options}
    return {**kept, **user_options}


def library_option(build: Build) -> str:
    """Return the name of the library in Horovod's build options."""
    return {"torch": "PYTORCH", "tensorflow": "TENSORFLOW"}[build.framework]


def opposite(option: str) -> str:
    """Return the option with the contrary meaning."""
    if "_WITHOUT_" in option:
        return option.replace("_WITHOUT_", "_WITH_")
    return option.replace("_WITH_", "_WITHOUT_")


def key(build: Build, options: Mapping[str, str]) -> str:
    """Return a name with everything that a wheel depends on; the options are a digest."""
    digest = hashlib.sha256(repr(sorted(options.items())).encode()).hexdigest()[:10]
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"horovod-{build.version}-{build.library}-{python}-{sysconfig.get_platform()}-{digest}"


def stamp_key(build: Build, options: Mapping[str, str]) -> str:
    """Return everything that an installation depends on: the lock too, if all of it is installed."""
    if build.is_separate:
        return f"{key(build, options)} lock {lock_digest(build.lock)}"
    return key(build, options)


def wheel_folder(build: Build, options: Mapping[str, str]) -> Path:
    """Return the folder in the user's cache for the wheel with these options."""
    return kept_folder("wheels", key(build, options))


def make_environment(build: Build, options: Mapping[str, str], log: Log) -> None:
    """Make the environment of this Horovod, with its library and this checkout, which training processes import."""
    if not kept_wheel(wheel_folder(build, options)):
        check_tools(os.environ)
    folder = build.python.parents[1]
    need_free(PROJECT, build.needed_mb, "TensorFlow with Horovod")
    say(f"{build.name} 1/4: installing TensorFlow in {folder}, 1-10 minutes (log: {log.path})")
    log.run([sys.executable, "-m", "venv", "--clear", str(folder)], f"{folder} can't be made.")
    pinned = [f"{name}=={version}" for name, version in pins(build.lock).items() if name != "horovod"]
    run_pip(build, log, "install", *pinned, failure="pip could not install TensorFlow; is there a network?")
    editable = ("install", "--no-deps", "--no-build-isolation", "-e", str(PROJECT))
    run_pip(build, log, *editable, failure="pip could not install this checkout.")


def built_wheel(build: Build, options: Mapping[str, str], log: Log) -> Path:
    """Return the wheel with these options, compiled if no earlier build left it."""
    folder = wheel_folder(build, options)
    wheel = kept_wheel(folder)
    if wheel:
        say(f"{build.name} 2/4: taking the wheel of an earlier build, {folder.name}")
        return wheel
    say(f"{build.name} 2/4: compiling {build.version} for {build.library}, 2-5 minutes on two cores")
    check_tools(os.environ)
    with tempfile.TemporaryDirectory() as scratch:
        # A wheel from pip's cache or from a local folder may be one for a different library.
        from_source = ("wheel", "-v", "--no-cache-dir", "--no-binary=horovod", "--no-build-isolation", "--no-deps")
        environment = build_environment(build, Path(scratch), options)
        arguments = (*from_source, f"horovod=={build.version}", "-w", scratch)
        run_pip(build, log, *arguments, failure="Horovod was not built.", environment=environment)
        return keep(next(Path(scratch).glob("*.whl")), folder)


def kept_wheel(folder: Path) -> Path | None:
    """Return the wheel that an earlier build left."""
    return next(folder.glob("horovod-*.whl"), None)


def check_tools(environment: Mapping[str, str]) -> None:
    """Raise InstallationError that names everything that is missing for a build."""
    compiler = shlex.split(environment.get("CXX") or "g++")[0]
    missing = [name for name in (compiler, "make") if not shutil.which(name, path=environment.get("PATH"))]
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        missing.append("the headers of Python")
    # Horovod's build finds those headers with it; since Python 3.12 only setuptools has it.
    if not find_spec("distutils"):
        missing.append("distutils (pip install setuptools)")
    if missing:
        raise InstallationError(
            f"{', '.join(missing)} not found, and Horovod must be compiled. "
            "Install them (Debian: apt install g++ make python3-dev; conda: conda install cxx-compiler make)"
        )
    need_free(Path(tempfile.gettempdir()), NEEDED_MB, "compiling Horovod")


def build_environment(build: Build, scratch: Path, options: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of the build."""
    return {
        **os.environ,
        "HOROVOD_CMAKE": str(build.python.with_name("cmake")),
        **options,
        "CXX": str(write_compiler(scratch, options.get("CXX") or "g++")),
        # Horovod and the libraries inside it need older policies than cmake 4 has.
        "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
        "MAKEFLAGS": f"-j{jobs()}",
    }


def write_compiler(scratch: Path, compiler: str) -> Path:
    """Write a compiler that adds, after all flags, what the headers of the library and of Horovod need.

    Horovod sets C++14 and strips every other `-std`; PyTorch 2 and TensorFlow 2.15 need C++17. CXXFLAGS come too early
    to matter, and a launcher that is set from outside is replaced if ccache is found.
    """
    wrapper = scratch / "c++17"
    included = " ".join(f"-include {header}" for header in MISSING_HEADERS)
    wrapper.write_text(f'#!/bin/sh\nexec {compiler} "$@" -std=c++17 {included}\n', encoding="utf-8")
    wrapper.chmod(0o755)
    return wrapper


def jobs() -> int:
    """Return how many source files to compile at once: limited by CPUs and by memory."""
    return max(1, min(len(os.sched_getaffinity(0)), psutil.virtual_memory().available // BYTES_PER_JOB))


def keep(wheel: Path, folder: Path) -> Path:
    """Move a wheel into its folder; the folder has the whole wheel or none."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{wheel.name}.{os.getpid()}"
    shutil.copy(wheel, partial)
    return partial.replace(folder / wheel.name)


def all_reduce(build: Build, options: Mapping[str, str], wheel: Path, log: Log) -> str:
    """Start processes that add up a tensor, and return the report of the first one."""
    controller = "--mpi" if options.get("HOROVOD_WITHOUT_GLOO") == "1" else "--gloo"
    launcher = [str(build.python), "-m", "horovod.runner.launch", controller, "-np", str(PROCESSES)]
    program = [str(build.python), "-m", "tools.all_reduce", build.framework, str(PROCESSES)]
    failure = f"The all-reduce failed. To compile again, delete {wheel.parent}."
    printed = log.run([*launcher, *program], failure, {**os.environ, "OMP_NUM_THREADS": "1"})
    reports = [line for line in printed.splitlines() if "all-reduce" in line]
    if not reports:
        raise InstallationError(
            f"The all-reduce exited with 0, but no process printed a sum; see {log.path}. "
            f"To compile again, delete {wheel.parent}."
        )
    return reports[0].partition(">:")[2] or reports[0]


def run_pip(
    build: Build, log: Log, *arguments: str, failure: str, environment: Mapping[str, str] | None = None
) -> None:
    """Run pip in the environment of this Horovod."""
    log.run([str(build.python), "-m", "pip", "--disable-pip-version-check", *arguments], failure, environment)
