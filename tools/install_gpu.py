"""Replace libraries of this environment by builds for GPUs: `python -m tools.install_gpu paddle=ADDRESS torch=ADDRESS`.

An address is that of a package index with builds for one version of CUDA; `default` is pip's own index, which has
TensorFlow's. The addresses are remembered: without arguments the same builds are installed again, as set-up does after
it made the environment anew.
"""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools.installer import PIP, PROJECT, InstallationError, Log, check_packages, ended, need_free, pins, say

REMEMBERED = PROJECT / ".gpu-indexes.json"
#: Of a library with CUDA: its wheel, those of CUDA, and both unpacked.
NEEDED_MB = 12_000


@dataclass(frozen=True)
class Library:
    """A library: its package for CPUs, that for GPUs, the lock with its version, and a framework that uses it.

    ``extra`` is the extra of the package for GPUs that has CUDA, where the package alone has not.
    """

    cpu_package: str
    gpu_package: str
    lock: str
    framework: str
    extra: str = ""


LIBRARIES = {
    "paddle": Library("paddlepaddle", "paddlepaddle-gpu", "requirements.lock", "paddle_collective"),
    "torch": Library("torch", "torch", "requirements-torch.lock", "torch_ddp"),
    "tensorflow": Library(
        "tensorflow-cpu", "tensorflow", "requirements-tensorflow.lock", "tensorflow_mirrored", extra="[and-cuda]"
    ),
}
#: What to do where two libraries need different versions of what NVIDIA packages for their CUDA.
IN_ONE_ENVIRONMENT = (
    "Libraries for the same CUDA share NVIDIA's packages, and pin different versions of them. Install one of the "
    "libraries in an environment of its own, and name its Python in the cluster file; or take builds for CUDA 12 of "
    "one and for CUDA 13 of the other, where the driver is new enough for both: docs/gpu.md"
)
#: The address of the index that pip uses by itself.
DEFAULT_INDEX = "default"


def install(arguments: Sequence[str]) -> None:
    """Install the builds for GPUs from the indexes in the arguments; without arguments, all that are remembered."""
    indexes = requested(arguments) or remembered()
    if not indexes:
        raise InstallationError(
            "PADDLE_INDEX or TORCH_INDEX is missing: the address of the package index with builds for the CUDA of your "
            "driver, which the installation guides of PaddlePaddle and PyTorch list; or TENSORFLOW_INDEX=default"
        )
    need_free(Path(sys.prefix), NEEDED_MB, "a library with CUDA")
    log = Log("gpu.log")
    for name, index in indexes.items():
        replace_by_gpu_build(name, index, log)
        REMEMBERED.write_text(json.dumps(remembered() | {name: index}, indent=1) + "\n", encoding="utf-8")
    try:
        check_packages()
    except InstallationError as error:
        raise InstallationError(f"{error}\n{IN_ONE_ENVIRONMENT}") from error


def requested(arguments: Sequence[str]) -> dict[str, str]:
    """Return the indexes in the arguments, by library."""
    indexes = {}
    for argument in arguments:
        name, _, index = argument.partition("=")
        if name not in LIBRARIES or not index:
            raise InstallationError(f"{argument!r} is not LIBRARY=ADDRESS; the libraries are {', '.join(LIBRARIES)}")
        indexes[name] = index
    return indexes


def remembered() -> dict[str, str]:
    """Return the indexes of earlier installations, by library."""
    return dict(json.loads(REMEMBERED.read_text(encoding="utf-8"))) if REMEMBERED.is_file() else {}


def replace_by_gpu_build(name: str, index: str, log: Log) -> None:
    """Install a library from an index with builds for GPUs; the one that is installed stays until the wheel is here."""
    library = LIBRARIES[name]
    requirement = f"{library.gpu_package}=={pins(library.lock)[library.cpu_package]}"
    with tempfile.TemporaryDirectory() as folder:
        say(f"{name} 1/3: fetching {requirement}, 1-2 GB (log: {log.path})")
        own_index = [] if index == DEFAULT_INDEX else ["--index-url", index]
        fetch = [*PIP, "download", "--no-deps", *own_index, "--dest", folder, requirement]
        log.run(fetch, f"pip found no {requirement} at {index}; does it have builds for this Python?")
        say(f"{name} 2/3: installing it in place of {library.cpu_package}")
        wheels = [f"{wheel}{library.extra}" for wheel in Path(folder).iterdir()]
        # An older build for GPUs too: pip would take one of this version for installed, although its files are gone.
        packages = dict.fromkeys((library.cpu_package, library.gpu_package))
        log.run([*PIP, "uninstall", "--yes", *packages], f"pip could not remove {library.cpu_package}.")
        put_back = f"To put the one for CPUs back: pip install -r {library.lock}"
        further_index = [] if index == DEFAULT_INDEX else ["--extra-index-url", index]
        log.run([*PIP, "install", *further_index, *wheels], f"pip could not install it. {put_back}")
    say(f"{name} 3/3: {described(name, gpu_support(library, log))}")


def gpu_support(library: Library, log: Log) -> Mapping[str, str]:
    """Return what the library that is installed now says of CUDA and of the GPUs here."""
    command = [sys.executable, "-m", "dlperf_study.machines.cluster.gpu_support", library.framework]
    printed = log.run(command, "It is installed but can't be imported.")
    return dict(json.loads(printed.splitlines()[-1]))


def described(name: str, support: Mapping[str, str]) -> str:
    """Return what a library says in one line; raises InstallationError when it is built without CUDA."""
    if not support["cuda"]:
        raise InstallationError(f"the index has a {name} that is built without CUDA; name one with builds for GPUs")
    gpus = ", ".join(support["gpus"]) or f"no GPU here{': ' + support['obstacle'] if support['obstacle'] else ''}"
    return f"{name} with CUDA {support['cuda']} sees {gpus}"


if __name__ == "__main__":
    sys.exit(ended(partial(install, sys.argv[1:])))
