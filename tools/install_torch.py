"""Install the pinned PyTorch into this environment, once: `python -m tools.install_torch`."""

import sys

from tools.installer import ended
from tools.pinned_library import PinnedLibrary

TORCH = PinnedLibrary(
    name="torch",
    title="PyTorch",
    lock="requirements-torch.lock",
    package="torch",
    # For a CPU build. Only pip knows which build it will find; if the disk fills up under a larger one, it says so.
    needed_mb=1500,
    purpose="PyTorch for CPUs (for CUDA about 6000 MB)",
    computes="import torch; assert float(torch.ones(2) @ torch.ones(2)) == 2",
)

if __name__ == "__main__":
    sys.exit(ended(TORCH.install))
