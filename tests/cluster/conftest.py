"""What the tests of this room share."""

from pathlib import Path

import pytest

from tests.shell_program import program

_SMI = """\
if [ "$1" = -L ]; then
    printf 'GPU 0: First (UUID: GPU-aa)\\n'
    printf '  MIG 1g.5gb      Device  0: (UUID: MIG-cc)\\n  MIG 2g.10gb     Device  1: (UUID: MIG-dd)\\n'
    printf 'GPU 1: Second (UUID: GPU-bb)\\n'
else
    printf '0, GPU-aa, First, 550.1, 40 MiB\\n1, GPU-bb, Second, 550.1, 80 MiB\\n'
fi
"""


@pytest.fixture
def smi(tmp_path: Path) -> str:
    """Return a command that answers as nvidia-smi does where there are two GPUs, the first in two MIG devices."""
    return program(tmp_path, _SMI, "nvidia-smi")
