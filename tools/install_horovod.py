"""Build Horovod for the PyTorch of this environment, install and check it, once: `python -m tools.install_horovod`."""

import os
import sys
import sysconfig
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from tools.horovod_build import LOCK, build, build_options, kept_wheel, key, wheel_folder
from tools.install_torch import TORCH
from tools.installer import (
    PIP,
    InstallationError,
    Log,
    Stamp,
    are_installed,
    check_packages,
    ended,
    pins,
    requirements,
    say,
)

STAMP = Stamp(".horovod-ready")
PROCESSES = 2


def is_done(options: Mapping[str, str]) -> bool:
    """Return whether the Horovod that is installed is the one these options make, and was checked."""
    return are_installed(pins(LOCK)) and STAMP.says(key(options))


def install() -> None:
    """Install Horovod, from the wheel of an earlier build where there is one, and check it by a real all-reduce."""
    if not TORCH.is_done():
        raise InstallationError(
            "Horovod is compiled for one PyTorch, so that comes first: python -m tools.install_torch"
        )
    options = build_options(os.environ)
    if is_done(options):
        say(f"horovod: {pins(LOCK)['horovod']} for it is installed and was checked")
        return
    log = Log("horovod.log")
    helpers = {name: version for name, version in pins(LOCK).items() if name != "horovod"}
    say(f"horovod 1/4: installing {' and '.join(requirements(helpers))} (log: {log.path})")
    log.run([*PIP, "install", *requirements(helpers)], "pip could not install them; is there a network?")
    wheel = built_wheel(options, log)
    say("horovod 3/4: installing the wheel")
    STAMP.clear()
    log.run([*PIP, "install", "--no-index", "--no-deps", "--force-reinstall", str(wheel)], "pip refused the wheel.")
    check_packages()
    say(f"horovod 4/4: {PROCESSES} processes communicate a tensor")
    say(f"horovod: {all_reduce(options, wheel, log)}")
    STAMP.write(key(options))


def built_wheel(options: Mapping[str, str], log: Log) -> Path:
    """Return the wheel for these options, compiling it if no earlier build left it."""
    folder = wheel_folder(options)
    wheel = kept_wheel(folder)
    if wheel:
        say(f"horovod 2/4: taking the wheel of an earlier build, {folder.name}")
        return wheel
    torch = metadata.version("torch")
    say(f"horovod 2/4: compiling {pins(LOCK)['horovod']} for PyTorch {torch}, 2-5 minutes on two cores")
    return build(folder, options, log)


def all_reduce(options: Mapping[str, str], wheel: Path, log: Log) -> str:
    """Start processes that add up a tensor, and return what the first of them says of it."""
    controller = "--mpi" if options.get("HOROVOD_WITHOUT_GLOO") == "1" else "--gloo"
    horovodrun = str(Path(sysconfig.get_path("scripts"), "horovodrun"))
    program = [sys.executable, "-m", "tools.all_reduce", str(PROCESSES)]
    failure = f"The all-reduce failed. To compile again, delete {wheel.parent}."
    command = [sys.executable, horovodrun, controller, "-np", str(PROCESSES), *program]
    printed = log.run(command, failure, {**os.environ, "OMP_NUM_THREADS": "1"})
    reports = [line for line in printed.splitlines() if "all-reduce" in line]
    if not reports:
        raise InstallationError(f"{failure} It ended well, but no process reported a sum; see {log.path}")
    return reports[0].partition(">:")[2] or reports[0]


if __name__ == "__main__":
    sys.exit(ended(install))
