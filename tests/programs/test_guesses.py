"""What is guessed of a repository, and the study that is written from it."""

import sys
from pathlib import Path

import pytest
import yaml

from dlperf_study.core.paths import PROJECT
from dlperf_study.programs.guesses import guess_environment, guess_launch, guess_program, note_python
from dlperf_study.study.new_study import NewStudy
from dlperf_study.study.study_file import load_study
from tests.programs.studies import write_study

SCRIPTS = {
    "torchrun": ("train.py", "import torch.distributed as dist\nparser.add_argument('--batch-size')\n'--max_steps'"),
    "accelerate": ("run_clm.py", "from accelerate import Accelerator\n'--per_device_train_batch_size'"),
    "mpirun": ("main.py", "import horovod.torch as hvd\n'--batch-size'"),
    "deepspeed": ("pretrain.py", "import deepspeed\n'--micro-batch-size'"),
    "{python}": ("tools/train.py", "import numpy"),
}


@pytest.mark.parametrize("launcher", SCRIPTS)
def test_a_launcher_is_guessed_from_what_a_script_imports(tmp_path, launcher):
    name, source = SCRIPTS[launcher]
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(source)
    guess = guess_program(tmp_path)
    assert guess.command.startswith(launcher)
    assert name in guess.command
    assert ("{batch_per_device}" in guess.command) is ("batch" in source)
    assert guess.launch == ("first-node" if launcher == "mpirun" else "per-node")
    assert guess.timing == "log"


@pytest.mark.parametrize(
    ("line", "timing"),
    [
        ("from record import Recorder", "recorder"),
        ("from dlperf_study.record import Recorder", "recorder"),
        ("from dlperf_study import Recorder", "recorder"),
        ("import dlperf_study as ds", "recorder"),
        ("import recordlinkage", "log"),
    ],
)
def test_a_script_with_the_recorder_has_step_times(tmp_path, line, timing):
    (tmp_path / "train.py").write_text(f"{line}\n")
    assert guess_program(tmp_path).timing == timing


def test_the_recorder_of_the_readme_is_recognised(tmp_path):
    readme = (PROJECT / "README.md").read_text()
    [block] = [block for block in readme.split("```python\n")[1:] if "Recorder" in block]
    (tmp_path / "train.py").write_text(block.partition("```")[0])
    assert guess_program(tmp_path).timing == "recorder"


def test_the_options_of_a_trainer_are_those_of_its_parser(tmp_path):
    (tmp_path / "train.py").write_text("parser = transformers.HfArgumentParser(TrainingArguments)")
    command = guess_program(tmp_path).command
    assert "--per_device_train_batch_size={batch_per_device}" in command
    assert "--max_steps={steps}" in command


def test_paddle_is_started_by_its_launcher(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    (tmp_path / "train.py").write_text("import paddle.distributed as dist")
    guess = guess_program(tmp_path)
    assert "paddle.distributed.launch --nnodes {nodes} --rank {node}" in guess.command
    assert any("paddle.distributed.launch" in note for note in guess.notes)
    assert not any("{python}" in note for note in guess.notes)


def test_the_python_of_a_command_is_noted_where_it_is_not_that_of_the_shell(tmp_path, monkeypatch):
    assert note_python("{python} x.py") == "" or str(Path(sys.executable)) in note_python("{python} x.py")
    python = tmp_path / "python"
    python.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert str(python) in note_python("{python} x.py")
    assert note_python("torchrun x.py") == ""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert note_python("{python} x.py") == ""


@pytest.mark.parametrize(
    ("command", "is_set"),
    [("torchrun x.py", True), ("{python} -m torch.distributed.run x.py", True), ("mpirun x", False)],
)
def test_one_process_of_pytorch_gets_as_many_threads_as_each_of_several(monkeypatch, command, is_set):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert guess_environment(command, ["devices_per_node"])[0] == ({"OMP_NUM_THREADS": "1"} if is_set else {})
    assert not guess_environment(command, ["width"])[0]
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert guess_environment(command, ["devices_per_node"])[0] == ({"OMP_NUM_THREADS": "3"} if is_set else {})


def test_a_command_with_a_rank_is_started_for_each():
    assert guess_launch("{python} train.py --rank {rank}") == "per-rank"


@pytest.mark.parametrize("options", ["", "--path a " * 40, "--title 'a  # b'"])
def test_what_is_written_is_the_study_that_was_asked_for(tmp_path, options):
    values = {"devices_per_node": [1, 2], "width": ["0.5", "a: b", "true"]}
    command = f'x --width "{{width}}" {{devices_per_node}} {options}'.strip()
    new = NewStudy(
        "toy",
        command,
        values,
        constants={"batch_per_device": 2},
        data=["a/bé.bin"],
        environment={"A": "1"},
        notes=("a",),
    )
    assert yaml.safe_load(new.as_yaml())["factors"] == values
    # As its owner writes it, and not as an escape.
    assert "a/bé.bin" in new.as_yaml()
    study = load_study(write_study(tmp_path, new.as_yaml()))
    assert (study.factors, study.program.command) == (values, new.command)
    assert (study.program.data, study.program.environment) == (("a/bé.bin",), {"A": "1"})
    assert len(study.points) == 6


def test_a_new_file_is_as_wide_as_its_reader_expects(snapshot):
    """The first line of the command has 100 characters: one more fits nowhere, one less leaves a word over."""
    command = " ".join(["ab", *"c" * 100])
    assert NewStudy("toy", command, {"devices_per_node": [1, 2]}, notes=("a launcher",)).as_yaml() == snapshot
