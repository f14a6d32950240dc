"""The program ``nvidia-smi`` of a machine with two A100, for machines without."""

from pathlib import Path

import pytest

from tests.shell_program import program

A100 = "NVIDIA A100-SXM4-80GB"
UUIDS = ("GPU-2f9a4c1e-7b4d-11ee-b962-0242ac120002", "GPU-5f1c8a72-7b4d-11ee-b962-0242ac120002")
#: As driver 535 prints them.
_SCRIPT = f"""\
echo "$@" >>"$0-calls"
case "$*" in
-L)
    echo 'GPU 0: {A100} (UUID: {UUIDS[0]})'
    echo 'GPU 1: {A100} (UUID: {UUIDS[1]})' ;;
"--query-gpu=index,uuid,name,driver_version,memory.total --format=csv,noheader")
    echo '0, {UUIDS[0]}, {A100}, 535.129.03, 81920 MiB'
    echo '1, {UUIDS[1]}, {A100}, 535.129.03, 81920 MiB' ;;
"topo -m")
    printf '\\033[4m\\tGPU0\\tGPU1\\tNIC0\\tCPU Affinity\\tNUMA Affinity\\tGPU NUMA ID\\033[0m\\n'
    printf 'GPU0\\t X \\tNV12\\tSYS\\t0-31\\t0\\t\\tN/A\\n'
    printf 'GPU1\\tNV12\\t X \\tSYS\\t32-63\\t1\\t\\tN/A\\n'
    printf 'NIC0\\tSYS\\tSYS\\t X \\n\\nLegend:\\n\\n  X    = Self\\n' ;;
*)
    echo "ERROR: Option $* is not recognized. Please run 'nvidia-smi -h'."
    exit 2 ;;
esac
"""


def two_a100(folder: Path, monkeypatch: pytest.MonkeyPatch, link: str = "NV12") -> Path:
    """Make a machine have two A100, by a program on the PATH; return the file with a line for each of its calls."""
    tools = folder / "nvidia"
    tools.mkdir()
    program(tools, _SCRIPT.replace("NV12", link), "nvidia-smi")
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tools / "nvidia-smi-calls"
