"""The table of docs/gpu.md: machines with GPUs, without, and with the wrong software; what commands say of them.

``nvidia-smi`` and the answer of the library are stand-ins, printed as real ones print them; all else is real. What the
cells of the table have in backticks is what the commands must say.
"""

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from dlperf_study import __main__ as command_line
from dlperf_study.core.paths import OUTPUTS_VARIABLE, PROJECT
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.training import frameworks
from tests.command_line import STUDY as TWO_FRAMEWORKS
from tests.shell_program import program

A100, H100, MIG = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB MIG 3g.40gb"
UUID, MIG_UUID = "GPU-2f9a4c1e-7b4d-11ee-b962-0242ac120002", "MIG-3b1d9f0a-58c2-5b8e-9d6f-6f0c1a2b3c4d"
TOO_OLD = "CUDA error(35), CUDA driver version is insufficient for CUDA runtime version"
STUDY = TWO_FRAMEWORKS.partition("include:")[0].replace("[1, 2]", "[1]") + "baseline: {devices_per_node: 1}\n"
LOCAL = "launcher: local\nnodes: 1\ndevices_per_node: auto\ndevice_name: auto\ninterconnect: auto\n"
QUEUE = "launcher: slurm\nnodes: 4\ndevices_per_node: 8\ndevice_name: A100\ninterconnect: 100 Gbit/s InfiniBand\n"


@dataclass(frozen=True)
class Machine:
    """A GPU as nvidia-smi names it, what the library says, and the cluster file; ``processes`` are those on the GPU."""

    gpu: str
    sees: tuple[str, ...] = ()
    cuda: str = "12.6"
    device: str = "gpu"
    obstacle: str = ""
    processes: str = ""
    cluster: str = LOCAL

    @property
    def support(self) -> GpuSupport:
        """What the library says."""
        return GpuSupport(self.cuda, "9.5.1", "2.25.1", self.sees, self.obstacle) if self.cuda else GpuSupport()


#: By the first cell of their row.
MACHINES = {
    "A100": Machine(A100, (A100,)),
    "H100, `device: auto`": Machine(H100, (H100,), device="auto"),
    "a MIG device": Machine(A100, (MIG,)),
    "A100 that others use": Machine(A100, (A100,), processes="4242, python, 30512 MiB"),
    "no GPU, `device: auto`": Machine("", device="auto"),
    "no GPU, `device: gpu`": Machine(""),
    "build for CPUs, `device: auto`": Machine(A100, cuda="", device="auto"),
    "build for CPUs, `device: gpu`": Machine(A100, cuda=""),
    "build for CPUs, cluster with a queue": Machine("", cuda="", cluster=QUEUE),
    "build for GPUs, `device: cpu`": Machine(A100, (A100,), device="cpu"),
    "driver too old, `device: auto`": Machine(A100, device="auto", obstacle=TOO_OLD),
    "driver too old, `device: gpu`": Machine(A100, obstacle=TOO_OLD),
}


def table() -> dict[str, list[str]]:
    """Return the cells of plan, check-cluster and run of the table in docs/gpu.md, by the first cell of their row."""
    page = (PROJECT / "docs" / "gpu.md").read_text(encoding="utf-8")
    rows = re.search(r"\| machine \|.*?\n\|--.*?\n(.*?)\n\n", page, re.DOTALL)
    assert rows
    cells = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[1].splitlines()]
    return {first.strip("| "): [cell.strip("| ") for cell in others] for first, *others in cells}


def test_the_table_has_every_machine():
    assert table().keys() == MACHINES.keys()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """Make this machine that of a row; return the folder with its study.yaml and cluster.yaml."""
    described = MACHINES[request.param]
    tools = tmp_path / "tools"
    tools.mkdir()
    program(tools, nvidia_smi(described), "nvidia-smi")
    answer = json.dumps(vars(described.support))
    library = f"""case "$*" in *"questions gpu"*) echo '{answer}' ;; *) exec {sys.executable} "$@" ;; esac"""
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if MIG in described.sees:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", MIG_UUID)
    python = f"python: {{default: {program(tools, library)}}}\n"
    (tmp_path / "cluster.yaml").write_text(f"{described.cluster}device: {described.device}\n{python}")
    (tmp_path / "study.yaml").write_text(STUDY)
    # One framework is checked in a second; all take ten.
    monkeypatch.setattr(frameworks, "names", lambda: ("paddle_collective",))
    return tmp_path


def nvidia_smi(machine: Machine) -> str:
    """Return the script of the program; without a GPU that of a machine without a driver that works."""
    if not machine.gpu:
        return "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9"
    listed = f"echo 'GPU 0: {machine.gpu} (UUID: {UUID})'; echo '  MIG 3g.40gb     Device  0: (UUID: {MIG_UUID})'"
    queried = f"echo '0, {UUID}, {machine.gpu}, 535.129.03, 81920 MiB'"
    processes = f"echo '{machine.processes}'" if machine.processes else "true"
    return f'case "$1" in -L) {listed} ;; --query-gpu*) {queried} ;; --query-comp*) {processes} ;; *) exit 2 ;; esac'


@pytest.mark.parametrize("machine", MACHINES, indirect=True)
def test_commands_say_what_the_table_says(machine, monkeypatch, capsys, request):
    row = table()[request.node.callspec.params["machine"]]
    study = [str(machine / "study.yaml"), "--cluster"]
    for command, arguments, cell in zip(("plan", "check-cluster", "run"), (study, [], study), row, strict=True):
        # Nobody trains on a stand-in, and a queue needs Slurm.
        if cell.startswith("trains") or "asks the nodes" in cell:
            continue
        code = command_line.main([command, *arguments, str(machine / "cluster.yaml")])
        printed = capsys.readouterr()
        text = " ".join((printed.out + printed.err).split())
        for words in re.findall(r"`([^`]+)`", cell):
            assert words in text, (command, text)
        assert code == cell.startswith(("error", "missing", "not started")), (command, text)
    assert not (machine / "outputs").exists()
