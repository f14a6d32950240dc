"""Install what the default environment lacks, and check that it computes: `python -m tools.install torch`.

The extras of pyproject.toml decide which packages are installed, and locks/main.txt decides their versions. What is
installed and checked is not installed again.

`gpu` replaces libraries with builds for GPUs: `python -m tools.install gpu paddle=ADDRESS torch=ADDRESS`. An address is
a package index with builds for one version of CUDA; `default` is pip's own index, which has TensorFlow's. The addresses
are remembered: without addresses the same builds are installed again, as set-up does after it made a new environment.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from tools import horovod_build
from tools.installer import (
    CONSTRAINED,
    MAIN_LOCK,
    PIP,
    PROJECT,
    InstallationError,
    Log,
    Stamp,
    check_packages,
    compile_packages,
    extra_requirements,
    is_installed,
    lock_digest,
    need_free,
    pins,
    say,
)


@dataclass(frozen=True)
class Library:
    """The packages of one extra.

    Attributes:
        name: the extra; also the name of the log and the stamp.
        title: the name that its makers use.
        needed_mb: free disk space.
        check: a program that fails if the library does not compute.
        is_compiled: whether all its modules are compiled at once.
        gpu_package: the package with its build for GPUs, if that one has a different name.

    """

    name: str
    title: str
    needed_mb: int
    check: str
    is_compiled: bool = True
    gpu_package: str = ""

    @property
    def packages(self) -> list[str]:
        """The packages that the extra names."""
        return [Requirement(text).name for text in extra_requirements(self.name)]

    @property
    def stamp(self) -> Stamp:
        """The stamp in this environment."""
        return Stamp(Path(sys.prefix) / f".{self.name}-ready")

    def versions(self) -> str:
        """Return the installed packages with their versions."""
        return ", ".join(f"{package} {metadata.version(package)}" for package in self.packages)

    def key(self) -> str:
        """Return the installed versions and the digest of the lock."""
        return f"{self.versions()}, lock {lock_digest()}"

    def is_done(self) -> bool:
        """Return whether the pinned version is installed and was checked."""
        return all(map(is_installed, self.packages)) and self.stamp.matches(self.key())


DALI_PIPELINE = """
from nvidia.dali import Pipeline, fn
# DALI needs device_id=None if there is no GPU.
with Pipeline(batch_size=1, num_threads=1, device_id=None) as pipeline:
    pipeline.set_outputs(fn.constant(idata=[1]))
assert int(pipeline.run()[0].as_array()[0, 0]) == 1
"""
TORCH_SUM = "import torch; assert float(torch.ones(2) @ torch.ones(2)) == 2"
TENSORFLOW_SUM = "import tensorflow as tf; assert float(tf.reduce_sum(tf.ones(2) * tf.ones(2))) == 2"
LIBRARIES = {
    # The space is for a build for CPUs; one for CUDA needs about 6000 MB. pip reports a full disk.
    "torch": Library("torch", "PyTorch", 1500, TORCH_SUM),
    "tensorflow": Library("tensorflow", "TensorFlow", 2000, TENSORFLOW_SUM, gpu_package="tensorflow"),
    "dali": Library("dali", "DALI", 2000, DALI_PIPELINE),
    "docs": Library("docs", "mkdocs-material", 200, "import material, mkdocs"),
    # Tests import few of their thousands of modules.
    "programs": Library("programs", "the libraries of user programs", 500, "import xarray", is_compiled=False),
    "release": Library("release", "twine", 100, "import twine"),
}


@dataclass(frozen=True)
class GpuBuild:
    """A library with builds for GPUs: its packages, and a framework that imports it.

    ``extra`` is the extra with CUDA of the package for GPUs, if the package alone has none.
    """

    cpu_package: str
    gpu_package: str
    framework: str
    extra: str = ""


GPU_BUILDS = {
    "paddle": GpuBuild("paddlepaddle", "paddlepaddle-gpu", "paddle_collective"),
    "torch": GpuBuild("torch", "torch", "torch_ddp"),
    "tensorflow": GpuBuild("tensorflow-cpu", "tensorflow", "tensorflow_mirrored", extra="[and-cuda]"),
}
REMEMBERED = PROJECT / ".gpu-indexes.json"
#: For a library with CUDA: its wheel, the wheels of CUDA, and both unpacked.
GPU_NEEDED_MB = 12_000
#: The name of the index that pip uses by itself.
DEFAULT_INDEX = "default"
#: What to do if two libraries need different versions of NVIDIA's packages.
IN_ONE_ENVIRONMENT = (
    "Libraries for the same CUDA share NVIDIA's packages, and pin different versions of them. Install one of the "
    "libraries in an environment of its own, and name its Python in the cluster file. Or take builds for CUDA 12 of "
    "one and for CUDA 13 of the other, if the driver is new enough for both: docs/gpu.md"
)
NAMES = (*LIBRARIES, *horovod_build.BUILDS, "gpu")


def install_library(library: Library) -> None:
    """Install an extra with the versions of the lock, and check that it computes."""
    name, title = library.name, library.title
    if library.gpu_package and is_installed(library.gpu_package):
        say(f"{name}: its build for GPUs is installed")
        return
    if library.is_done():
        say(f"{name}: installed and checked: {library.versions()}")
        return
    need_free(Path(sys.prefix), library.needed_mb, title)
    log = Log(f"{name}.log")
    requirements = extra_requirements(name)
    say(f"{name} 1/2: installing {', '.join(requirements)}, 1-10 minutes with the network (log: {log.path})")
    started = time.time()
    failure = f"pip could not install {title}. Is there a network, and space on the disk?"
    log.run([*PIP, "install", "--no-compile", *CONSTRAINED, *requirements], failure)
    if library.is_compiled:
        compile_packages(since=started)
    say(f"{name} 2/2: checking {title}")
    check_packages()
    log.run([sys.executable, "-c", library.check], f"{title} is installed and does not compute.")
    library.stamp.write(library.key())


def install_gpu_builds(arguments: Sequence[str]) -> None:
    """Install the builds for GPUs from the given indexes, or else from all that are remembered."""
    indexes = requested_indexes(arguments) or remembered_indexes()
    if not indexes:
        raise InstallationError(
            "PADDLE_INDEX or TORCH_INDEX is missing: the address of the package index with builds for the CUDA of your "
            "driver. The installation guides of PaddlePaddle and PyTorch list them. For TensorFlow: "
            "TENSORFLOW_INDEX=default"
        )
    need_free(Path(sys.prefix), GPU_NEEDED_MB, "a library with CUDA")
    log = Log("gpu.log")
    for name, index in indexes.items():
        replace_by_gpu_build(name, index, log)
        REMEMBERED.write_text(json.dumps(remembered_indexes() | {name: index}, indent=1) + "\n", encoding="utf-8")
    try:
        check_packages()
    except InstallationError as error:
        raise InstallationError(f"{error}\n{IN_ONE_ENVIRONMENT}") from error


def requested_indexes(arguments: Sequence[str]) -> dict[str, str]:
    """Return the indexes in the arguments, by library."""
    indexes = {}
    for argument in arguments:
        name, _, index = argument.partition("=")
        if name not in GPU_BUILDS or not index:
            raise InstallationError(f"{argument!r} is not LIBRARY=ADDRESS; the libraries are {', '.join(GPU_BUILDS)}")
        indexes[name] = index
    return indexes


def remembered_indexes() -> dict[str, str]:
    """Return the indexes of earlier installations, by library."""
    if not REMEMBERED.is_file():
        return {}
    return dict(json.loads(REMEMBERED.read_text(encoding="utf-8")))


def replace_by_gpu_build(name: str, index: str, log: Log) -> None:
    """Install a library from an index with builds for GPUs; the installed one stays until the wheel is here."""
    build = GPU_BUILDS[name]
    requirement = f"{build.gpu_package}=={pins()[build.cpu_package]}"
    own_index: list[str] = []
    further_index: list[str] = []
    if index != DEFAULT_INDEX:
        own_index = ["--index-url", index]
        further_index = ["--extra-index-url", index]
    with tempfile.TemporaryDirectory() as folder:
        say(f"{name} 1/3: fetching {requirement}, 1-2 GB (log: {log.path})")
        fetch = [*PIP, "download", "--no-deps", *own_index, "--dest", folder, requirement]
        log.run(fetch, f"pip found no {requirement} at {index}. Does the index have builds for this Python?")
        say(f"{name} 2/3: installing it in place of {build.cpu_package}")
        wheels = [f"{wheel}{build.extra}" for wheel in Path(folder).iterdir()]
        # An older build for GPUs too: pip would take one of this version for installed, although its files are gone.
        packages = dict.fromkeys((build.cpu_package, build.gpu_package))
        log.run([*PIP, "uninstall", "--yes", *packages], f"pip could not remove {build.cpu_package}.")
        put_back = f"To restore the build for CPUs: pip install -c {MAIN_LOCK} {build.cpu_package}"
        log.run([*PIP, "install", *further_index, *wheels], f"pip could not install it. {put_back}")
    say(f"{name} 3/3: {describe_gpus(name, gpu_support(build, log))}")


def gpu_support(build: GpuBuild, log: Log) -> Mapping[str, str]:
    """Return what the installed library reports about CUDA and the GPUs of this machine."""
    command = [sys.executable, "-m", "dlperf_study.machines.cluster.gpu_support", build.framework]
    printed = log.run(command, "It is installed and can't be imported.")
    return dict(json.loads(printed.splitlines()[-1]))


def describe_gpus(name: str, support: Mapping[str, str]) -> str:
    """Return the CUDA version and the GPUs in one line; raise InstallationError if the build has no CUDA."""
    if not support["cuda"]:
        raise InstallationError(f"the index has a {name} that is built without CUDA; name one with builds for GPUs")
    gpus = ", ".join(support["gpus"])
    if not gpus:
        gpus = "no GPU here"
        if support["obstacle"]:
            gpus += f": {support['obstacle']}"
    return f"{name} with CUDA {support['cuda']} sees {gpus}"


def install(names: Sequence[str]) -> None:
    """Install everything that is named, in this order; the arguments of `gpu` follow it."""
    if names[0] == "gpu":
        install_gpu_builds(names[1:])
        return
    for name in names:
        if name in LIBRARIES:
            install_library(LIBRARIES[name])
            continue
        if name == "horovod":
            # Horovod is compiled for the PyTorch that is installed.
            install_library(LIBRARIES["torch"])
        horovod_build.install(horovod_build.BUILDS[name])


def main(arguments: Sequence[str]) -> int:
    """Run an installation and return its exit code; a failure is one message."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.install", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help=", ".join(NAMES))
    names = parser.parse_args(arguments).names
    unknown = [name for name in names if name not in NAMES]
    if unknown and names[0] != "gpu":
        parser.error(f"there is no {unknown[0]}; choose from {', '.join(NAMES)}")
    if "gpu" in names[1:]:
        parser.error("gpu must be the first name")
    try:
        install(names)
    except InstallationError as error:
        print(f"installation failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("installation interrupted; the same command starts it again", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
