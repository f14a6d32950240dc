"""The worked examples of docs/own-programs.md on two processes of this machine, each by the launcher of its name."""

import fcntl
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from shutil import which

import pytest

from dlperf_study.execution.planning import plan_study
from dlperf_study.machines.launchers import local
from dlperf_study.study.study_file import load_study
from tests.programs.examples import AS_ROOT, EXAMPLES, STUDIES, check_recorded, example, path_with, rendered
from tests.requirements import need
from tests.training.frameworks.launching import CLUSTER
from tools.installer import kept_folder

#: What each launcher needs, by the name of its study.
NEEDS = {
    "torchrun": ("torch",),
    "mpirun": ("torch", "mpirun"),
    "paddle_launch": (),
    "per_rank": ("torch",),
    "accelerate": ("torch", "accelerate"),
    "deepspeed": ("torch", "deepspeed"),
}

#: Compiles what DeepSpeed transfers with on CPUs, as its first start on a machine does: 30 s idle, minutes beside other
#: tests. A ninja of another version, as another PATH finds, compiles all again.
COMPILE_DEEPSPEED = "from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder; ShareMemCommBuilder().load()"


def test_every_example_is_started():
    assert set(NEEDS) == {path.stem for path in STUDIES.glob("*.yaml")}


@pytest.mark.parametrize("study", sorted(STUDIES.glob("*.yaml")), ids=lambda path: path.stem)
def test_an_example_can_be_planned(study):
    declared = load_study(study)
    assert len(declared.points) == 4
    if which(shlex.split(declared.program.command)[0]):
        assert [entry.unsupported for entry in plan_study(declared, CLUSTER).entries] == [None] * 4


@pytest.mark.parametrize("name", NEEDS)
def test_two_processes_of_an_example_train_together(name, tmp_path):
    need(*NEEDS[name])
    run = example(name, tmp_path / "study", devices_per_node=2)
    if name == "accelerate":
        # Without GPUs it starts one process unless it is told to start several.
        command = run.program.command.replace("accelerate launch", "accelerate launch --multi_gpu")
        run = replace(run, program=replace(run.program, command=command))
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    variables = {"PATH": path_with(bin_folder), "DS_ACCELERATOR": "cpu", **AS_ROOT}
    if name == "deepspeed":
        variables["TORCH_EXTENSIONS_DIR"] = compiled_extensions({**os.environ, **variables})
    folder = tmp_path / "runs" / "1"
    [result] = local.execute([rendered(run, CLUSTER, folder, **variables)], CLUSTER, 120)
    logs = check_recorded(folder, run, result)
    assert {log.facts["parameters"] for log in logs} == {32 * 64 + 64 + 64 * 10 + 10}
    assert not (folder / "scratch").exists()


def compiled_extensions(environment: dict[str, str]) -> str:
    """Return the folder with what DeepSpeed compiles, kept for later tests on this machine.

    A start that was killed while it compiled has left a lock, for which every later one would wait without end.
    """
    versions = "-".join(f"{name}-{version(name)}" for name in ("deepspeed", "torch"))
    folder = kept_folder(versions)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "compiling", "w") as compiling:
        fcntl.flock(compiling, fcntl.LOCK_EX)
        for left in folder.rglob("lock"):
            left.unlink()
        command = [sys.executable, "-c", COMPILE_DEEPSPEED]
        subprocess.run(command, env=environment | {"TORCH_EXTENSIONS_DIR": str(folder)}, check=True, timeout=540)
    return str(folder)


#: Runs a script, then prints the names of the threads that are left.
THREADS_LEFT = """
import pathlib, runpy, sys
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
print([name.read_text().strip() for name in pathlib.Path("/proc/self/task").glob("*/comm")])
"""


@pytest.mark.needs("torch")
def test_no_thread_of_gloo_is_left_that_could_abort_the_end_of_python():
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    command = [sys.executable, "-c", THREADS_LEFT, "train_torch.py", "--steps", "3"]
    printed = subprocess.check_output(command, cwd=EXAMPLES, env=environment, text=True, timeout=120)
    assert "python" in printed
    assert "gloo" not in printed
