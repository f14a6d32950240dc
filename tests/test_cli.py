"""The command line: what it says about a user's errors, and with which exit code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dlperf_study.__main__ import main
from dlperf_study.paths import StudyPaths
from tests.command_line import CLUSTER, STUDY, Workplace

pytestmark = pytest.mark.timeout(60)


def plan(place: Workplace, capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str, str]:
    """Return exit code, output and errors of a command, which is ``plan`` unless it is given."""
    code = main([*(command or ["plan"]), str(place.study_file), "--cluster", str(place.cluster_file)])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("batch_per_device: [4]", "batch_per_devise: [4]", r"unknown key factors\.batch_per_devise; did you mean"),
        ("batch_per_device: [4]", "batch_per_device: ['4']", r"batch_per_device\[0\] is '4', which is not an integer"),
        ("repeats: 1", "repeats: 0", r"measurement\.repeats is 0; it must be at least 1"),
        ("scaling: weak", "scaling: week", r"scaling is 'week'; the choices are 'weak' or 'strong'"),
        ("title: Tiny\n", "", r"title is missing"),
        ("questions: [scaling]", "questions: [scaling", r"line \d+, column \d+: not YAML"),
        ("title: Tiny", "title: Tiny\ntitle: Twice", r"duplicate key 'title'"),
        ("title: Tiny", "\ttitle: Tiny", r"a tab; YAML is indented with spaces"),
        ("devices_per_node: [1, 2]", "devices_per_node: [2]", r"baseline: .* which is not in the study"),
        (STUDY, "- a\n- list\n", r"holds a list; it must be a mapping"),
    ],
)
def test_an_error_in_a_study_file_is_one_line(
    place: Workplace, capsys: pytest.CaptureFixture[str], right: str, wrong: str, message: str
) -> None:
    assert right in STUDY
    place.study_file.write_text(STUDY.replace(right, wrong, 1))
    assert_one_line(plan(place, capsys), rf"{place.study_file}.*{message}")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("scaling: weak", "scaling: week", "scaling is 'week'; the choices are 'weak' or 'strong'"),
        ("devices_per_node: [1, 2]", "devices_per_node: [2]", "baseline: the baseline of"),
        ("title: Tiny", "title: Tiny\nquick: {fixed: {model: resnet5}}", "include[0].framework is 'paddle_pss'"),
        ("title: Tiny", "title: Tiny", "include[0].framework is 'paddle_pss'"),
    ],
)
def test_every_misspelt_name_is_listed_next_to_any_other_error(
    place: Workplace, capsys: pytest.CaptureFixture[str], right: str, wrong: str, message: str
) -> None:
    text = STUDY.replace("mobilenet_v2", "mobilenet_v3").replace("framework: paddle_ps\n", "framework: paddle_pss\n")
    place.study_file.write_text(text.replace(right, wrong, 1))
    _, _, errors = plan(place, capsys)
    assert f"{place.study_file}: fixed.model is 'mobilenet_v3'; did you mean mobilenet_v2? the models are" in errors
    assert f"{place.study_file}: include[0].framework is 'paddle_pss'; did you mean paddle_ps?" in errors
    assert message in errors
    assert ("quick.fixed.model is 'resnet5'" in errors) == ("resnet5" in wrong)
    assert len(set(errors.splitlines())) == len(errors.splitlines())


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("device: cpu", "device: tpu", r"device is 'tpu'; the choices are"),
        ("nodes: 1", "nodes: 0", r"nodes is 0; it must be at least 1"),
        ("launcher: local", "launcher: nowhere", r"launcher is 'nowhere'; the launchers are .*local"),
        ("link: loopback", "link: loopback\nspeed: 3", r"unknown key speed; .*the keys are launcher"),
    ],
)
def test_an_error_in_a_cluster_file_is_one_line(
    place: Workplace, capsys: pytest.CaptureFixture[str], right: str, wrong: str, message: str
) -> None:
    place.cluster_file.write_text(CLUSTER.replace(right, wrong, 1))
    assert_one_line(plan(place, capsys), rf"{place.cluster_file}.*{message}")


def assert_one_line(ended: tuple[int, str, str], message: str) -> None:
    code, output, errors = ended
    assert (code, output) == (1, "")
    assert re.fullmatch(f"error: .*{message}.*\n", errors), errors
    assert len(errors.splitlines()) == 1


def test_a_python_that_is_not_there_is_named(place: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    place.cluster_file.write_text(CLUSTER + "python: {paddle_ps: /nowhere/python}\n")
    assert_one_line(plan(place, capsys), ": /nowhere/python does not run: ")


def test_an_unknown_study_is_answered_with_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["plan", "quickstrat"])
    assert_one_line(
        (code, *capsys.readouterr()), r"there is no study 'quickstrat'; did you mean quickstart\? .*has .*vgg16"
    )


@pytest.mark.parametrize("command", ["collect", "report"])
def test_evidence_that_is_not_there_is_named(
    place: Workplace, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    code, _, errors = plan(place, capsys, command)
    assert code == 1
    assert re.fullmatch(r"error: .*plan\.json: there is no plan yet.*\n", errors), errors


def test_outputs_that_can_t_be_written_are_named(
    place: Workplace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DLPERF_STUDY_OUTPUTS", str(place.study_file))
    code, _, errors = plan(place, capsys, "run")
    assert code == 1
    assert re.fullmatch(rf"error: {place.study_file}.*: Not a directory\n", errors), errors


def test_the_plan_lists_what_can_run_and_what_can_not(place: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    place.study_file.write_text(STUDY.replace("devices_per_node: [1, 2]", "devices_per_node: [1, 2, 64]"))
    code, output, errors = plan(place, capsys)
    assert (code, errors) == (0, "")
    assert "3 of 4 configurations can run here, in 3 runs" in output
    assert "needs 64 devices on 1 node" in output
    assert not (place.outputs / "tiny").exists()


def test_a_study_of_which_nothing_can_run_is_an_error(place: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    place.study_file.write_text(
        STUDY.replace("image_size: [32]", "image_size: [32]\n  nodes: [5]").replace(
            "    devices_per_node: 2", "    devices_per_node: 2\n    nodes: 5"
        )
    )
    paths = StudyPaths(place.outputs / "tiny")
    paths.configurations.mkdir(parents=True)
    paths.plan_file.write_text("{}")
    # What was measured stays where it is, because nothing comes in its place.
    for command in (["run"], ["study", "--again"]):
        code, _, errors = plan(place, capsys, *command)
        assert code == 1
        assert re.fullmatch("error: nothing of study tiny can run on cluster .*; `plan` says why\n", errors), errors
        assert paths.configurations.exists()


def test_a_plan_reads_no_training_library_and_no_plotting() -> None:
    code = "import sys; from dlperf_study.__main__ import main; main(['plan', 'quickstart']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"paddle", "matplotlib", "papermill", "pandas"} & set(done.stdout.split()) == set()


@pytest.mark.parametrize("arguments", [[], ["plan"], ["nothing", "quickstart"], ["plan", "quickstart", "--fast"]])
def test_a_wrong_call_shows_the_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m dlperf_study" in capsys.readouterr().err


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert set(re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE)) >= {"study", "plan", "run", "report"}


def test_from_another_folder(tmp_path: Path) -> None:
    """Studies are found by name wherever the command is called."""
    command = [sys.executable, "-m", "dlperf_study", "plan", "quickstart"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_the_audit_of_a_table_says_what_can_not_be_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    table.write_text("world_size,throughput,speedup\n1,100.0,1.00\n4,370.0,3.80\n")
    assert main(["audit", str(table)]) == 0
    assert "error (ratios): 370.0 / 100.0 = 3.7, printed 3.80: it fits no rounding\n" in capsys.readouterr().out


def test_an_error_in_an_audited_table_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    table.write_text("world_size,throughput\n1,100.0\n4,fast\n")
    assert_one_line(
        (main(["audit", str(table)]), *capsys.readouterr()), "line 3: throughput is 'fast', which is not a number"
    )
    assert_one_line((main(["audit", str(tmp_path / "no.csv")]), *capsys.readouterr()), "no.csv: No such file")
