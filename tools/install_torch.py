"""Install the pinned PyTorch into this environment, once: `python -m tools.install_torch`."""

import sys
from importlib import metadata
from pathlib import Path

from tools.installer import (
    PIP,
    InstallationError,
    Log,
    Stamp,
    are_installed,
    check_packages,
    ended,
    need_free,
    pins,
    say,
)

LOCK = "requirements-torch.lock"
STAMP = Stamp(".torch-ready")
#: Room for a CPU build. Only pip knows which build it will find; if the disk fills up under a larger one, it says so.
NEEDED_MB = 1500
COMPUTES = "import torch; assert float(torch.ones(2) @ torch.ones(2)) == 2"


def is_done() -> bool:
    """Return whether the PyTorch that is installed is the pinned one and was checked."""
    return are_installed(pins(LOCK)) and STAMP.says(metadata.version("torch"))


def install() -> None:
    """Install what the lock pins, and check that it computes and fits to the other packages."""
    if is_done():
        say(f"torch: {metadata.version('torch')} is installed")
        return
    need_free(Path(sys.prefix), NEEDED_MB, "PyTorch for CPUs (for CUDA about 6000 MB)")
    log = Log("torch.log")
    say(f"torch 1/2: installing PyTorch {pins(LOCK)['torch']}, 1-10 minutes with the network (log: {log.path})")
    log.run([*PIP, "install", "-r", LOCK], "pip could not install PyTorch; is there a network and room on the disk?")
    say(f"torch 2/2: checking {metadata.version('torch')}")
    check_packages()
    log.run([sys.executable, "-c", COMPUTES], "PyTorch is installed but does not compute.")
    if not are_installed(pins(LOCK)):
        raise InstallationError(f"pip installed other versions than {LOCK} pins; does PIP_CONSTRAINT say otherwise?")
    STAMP.write(metadata.version("torch"))


if __name__ == "__main__":
    sys.exit(ended(install))
