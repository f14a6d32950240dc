"""How messages name commands, as their reader can type them: of this package, of make in a checkout, and of pip.

The default installation reads, plans, ingests, audits and reports. What measures, and what reaches a
Kubernetes cluster, is in the extras of this package. Standard library only.
"""

from importlib.util import find_spec

from dlperf_study import __version__
from dlperf_study.core.errors import MissingPackageError
from dlperf_study.core.paths import QUICK_SUFFIX
from dlperf_study.core.resources import CHECKOUT

#: The name of the command that is installed with the package.
COMMAND = "dlperf-study"
#: The extra that has a module, and the package that it is in; all other modules come with the package itself.
_EXTRAS = {
    "kubernetes": ("kubernetes", "kubernetes"),
    "cryptography": ("kubernetes", "cryptography"),
    "skimage": ("data", "scikit-image"),
    "PIL": ("data", "pillow"),
    "zmq": ("data", "pyzmq"),
    "pynvml": ("gpu", "nvidia-ml-py"),
    "jupyterlab": ("lab", "jupyterlab"),
    "paddle": ("paddle", "paddlepaddle"),
    "torch": ("torch", "torch"),
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
    "horovod": ("horovod", "horovod"),
    "nvidia": ("dali", "nvidia-dali-cuda120"),
}
#: The extras that a checkout installs by a target of make; those that are not here are in its lock.
_TARGETS = ("torch", "tensorflow", "horovod", "dali")
#: The extra that pip can't compile by itself: a checkout does, into the environment that is active.
_COMPILED = ("horovod",)
#: What to do on a node that has other code of this package.
SAME_PACKAGE = "install this very checkout there" if CHECKOUT else f"`pip install dlperf_study=={__version__}` there"
#: The cluster of commands that name none.
_DEFAULT_CLUSTER = "local"


def command_line(arguments: str) -> str:
    """Return a command of this package as its user types it."""
    return f"{COMMAND} {arguments}"


def make_or(target: str, otherwise: str) -> str:
    """Return a make target in a checkout, else ``otherwise``."""
    if CHECKOUT:
        return f"make {target}"
    return otherwise


def command_of_study(
    command: str, folder: str, cluster: str = _DEFAULT_CLUSTER, *, rerun: bool = False, target: str = ""
) -> str:
    """Return a command about a study: ``run quickstart --quick``.

    ``rerun``: it re-runs every configuration. ``target``: the target of make to name in a checkout instead.
    """
    study, is_elsewhere = folder.removesuffix(QUICK_SUFFIX), cluster != _DEFAULT_CLUSTER
    is_quick = study != folder
    if target and CHECKOUT:
        variables = [f"CLUSTER={cluster}"] * is_elsewhere + ["QUICK=1"] * is_quick + ["RERUN=1"] * rerun
        return " ".join(["make", target, f"STUDY={study}", *variables])
    options = [f"--cluster {cluster}"] * is_elsewhere + ["--quick"] * is_quick + ["--rerun"] * rerun
    return command_line(" ".join([command, study, *options]))


def make_command(name: str) -> str:
    """Return the command of this name, by make in a checkout."""
    return make_or(name, command_line(name))


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra."""
    if CHECKOUT and extra in _TARGETS:
        return f"make {extra}"
    if CHECKOUT:
        return f"pip install -c locks/main.txt -e '.[{extra or 'dev'}]'"
    if extra in _COMPILED:
        return f"make -C CHECKOUT {extra}"
    return f"pip install 'dlperf_study[{extra}]'"


def missing_package(module: str, where: str = "") -> str:
    """Return the message on a missing module, with its install command."""
    extra, package = _EXTRAS.get(module.partition(".")[0], ("", module.partition(".")[0]))
    command = install_command(extra)
    if not extra and not CHECKOUT:
        command = "pip install --upgrade --force-reinstall dlperf_study"
    return f"the package {package} is not installed{where}; `{command}` installs it"


def require_module(module: str) -> None:
    """Raise MissingPackageError if an extra's module is missing."""
    if find_spec(module) is None:
        raise MissingPackageError(missing_package(module))
