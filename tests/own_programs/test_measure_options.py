"""The options of ``measure``: what is refused before anything is written."""

import pytest

from dlperf_study.__main__ import main
from dlperf_study.commands import own_program
from dlperf_study.commands.command_line import INTERRUPTED
from dlperf_study.commands.parser import command_parser
from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from tests.evidence_factory import Planned, Recipe, configuration, write_study

ERRORS = {
    "no levels": ["--over", "width"],
    "a level that is a list": ["--over", "width=[1"],
    "several levels of what is fixed": ["--over", "width=1,2", "--fixed", "devices_per_node=1,2"],
    "no level of what is fixed": ["--over", "width=1,2", "--fixed", "devices_per_node="],
    "a misspelt placeholder": ["--over", "widht=1,2"],
    "a secret": ["--over", "width=1,2"],
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_one_message(tmp_path, monkeypatch, refused, name):
    monkeypatch.chdir(tmp_path)
    secret = ["--api-key=abcdef"] if name == "a secret" else []
    command = ["python", "train.py", "--width={width}", *secret]
    options = command_parser().parse_args(["measure", *ERRORS[name], "--", *command])
    with refused(StudyFileError):
        options.command(options)
    assert not any(tmp_path.iterdir())


def test_an_interrupted_measurement_continues(tmp_path, monkeypatch, capsys):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_program, "measure_study", interrupted)
    command = ["measure", "--over", "width=1,2", "--", "python", "train.py", "--width={width}"]
    for _ in range(2):
        assert main(command) == INTERRUPTED
        assert "continues" in capsys.readouterr().err


@pytest.mark.parametrize("outcome", ["completed", "failed"])
def test_a_study_file_stays_unless_nothing_of_it_completed(tmp_path, monkeypatch, outcome):
    def ended(options):
        recipe = Recipe(outcome=outcome, reason="" if outcome == "completed" else "node-0 exited with code 1")
        write_study(StudyPaths.of("python"), [Planned(configuration(study="python"), recipe)])
        return 1

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    monkeypatch.setattr(own_program, "measure_study", ended)
    assert main(["measure", "--over", "width=1,2", "--", "python", "train.py", "--width={width}"]) == 1
    assert (tmp_path / "studies" / "python.yaml").exists() == (outcome == "completed")
