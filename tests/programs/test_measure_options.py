"""The options of ``measure``: what is refused before anything is written."""

import re
from pathlib import Path

import pytest

from dlperf_study.__main__ import main
from dlperf_study.cli import measuring, own_program
from dlperf_study.cli.command_line import INTERRUPTED
from dlperf_study.cli.parser import command_parser
from dlperf_study.core.errors import HeldError, RecordError
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.execution import controller
from tests.evidence_factory import Planned, Recipe, configuration, write_study

#: Options of ``measure`` that are refused, each with the error that it has.
REFUSED = {
    "no values": ("--sweep", "width"),
    "a value that is a list": ("--sweep", "width=[1"),
    "several values of what is fixed": ("--sweep", "width=1,2", "--set", "devices_per_node=1,2"),
    "no value of what is fixed": ("--sweep", "width=1,2", "--set", "devices_per_node="),
    "a misspelt placeholder": ("--sweep", "widht=1,2"),
    "a misspelt parameter": ("--sweep", "width=1,2", "--set", "batch_per_devic=3"),
    "a factor of no command": ("--sweep", "width=1,2", "--sweep", "image_size=1,2"),
    "tokens of an unknown batch": ("--sweep", "width=1,2", "--tokens-per-step", "{global_batch} * 3"),
    "a format that does not exist": ("--sweep", "width=1,2", "--timing", "nanogtp"),
    "too many devices": ("--sweep", "width=1,2", "--sweep", "devices_per_node=4000,4001"),
    "a secret": ("--sweep", "width=1,2"),
    "a column": ("--sweep", "width=1,2", "--sweep", "throughput=1,2"),
    "a word of Python": ("--sweep", "width=1,2", "--sweep", "lambda=1,2"),
    "a placeholder twice": ("--sweep", "width=1", "--sweep", "width=2"),
    "a batch twice": ("--sweep", "width=1,2", "--set", "batch_per_device=3", "--batch-per-device", "4"),
}
#: What only some of their commands end with.
FURTHER = {"a secret": "--api-key=abcdef", "a column": "{throughput}", "a word of Python": "{lambda}"}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_command_leaves_no_study_in_the_way(tmp_path, monkeypatch, capsys, snapshot, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    command = f"{{python}} train.py --width={{width}} {FURTHER.get(name, '')}"
    assert main(["measure", *REFUSED[name], "--", *command.split()]) == 1
    # What follows depends on the parts and the cores of this machine.
    assert re.split("the choices are|cluster local has", capsys.readouterr().err)[0] == snapshot
    assert not list(tmp_path.glob("studies/*"))


def test_an_interrupted_measurement_continues(tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_program, "run_study_file", interrupted)
    command = ["measure", "--sweep", "width=1,2", "--", "python", "train.py", "--width={width}"]
    for _ in range(2):
        assert main(command) == INTERRUPTED
        assert "continues" in capsys.readouterr().err


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_study_file_stays_unless_nothing_of_it_completed(tmp_path, monkeypatch, status):
    def ended(*arguments, **options):
        recipe = Recipe(status=status, reason="" if status == "completed" else "node-0 exited with code 1")
        write_study(StudyPaths.of("python"), [Planned(configuration(study="python"), recipe)])
        return 1

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    monkeypatch.setattr(own_program, "run_study_file", ended)
    assert main(["measure", "--sweep", "width=1,2", "--", "python", "train.py", "--width={width}"]) == 1
    assert (tmp_path / "studies" / "python.yaml").exists() == (status == "completed")


def test_a_failed_report_keeps_the_study_file_of_completed_runs(tmp_path, monkeypatch):
    def ended(*arguments, **options):
        write_study(StudyPaths.of("python"), [Planned(configuration(study="python"), Recipe())])
        raise RecordError("a notebook failed")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    monkeypatch.setattr(own_program, "run_study_file", ended)
    assert main(["measure", "--sweep", "width=1,2", "--", "python", "train.py", "--width={width}"]) == 1
    assert (tmp_path / "studies" / "python.yaml").exists()


def test_a_rerun_that_waits_still_puts_the_old_results_aside(monkeypatch):
    """The lock of another study is found when the results are to be moved."""
    tried = []

    def put_aside(planned, cluster):
        tried.append(planned.study)
        raise HeldError("a study runs", "wait", Path("lock"))

    monkeypatch.setattr(controller, "put_aside", put_aside)
    options = command_parser().parse_args(["run", "quickstart", "--rerun"])
    for _ in range(2):
        with pytest.raises(HeldError):
            measuring.run(options)
    assert tried == ["quickstart", "quickstart"]


@pytest.mark.parametrize(
    ("argument", "values"), [("width=1,2.5", [1, 2.5]), ("width=auto, 4,true", ["auto", "4", "true"])]
)
def test_values_of_several_kinds_are_texts(argument, values):
    assert own_program._values("--sweep", argument) == ("width", values)
