"""The command line: what it says about a user's errors, and with which exit code."""

import os
import re
import subprocess
import sys

import pytest

from dlperf_study.__main__ import main
from dlperf_study.core.paths import StudyPaths
from tests.command_line import CLUSTER, STUDY, Workplace

pytestmark = pytest.mark.timeout(60)


def plan(place: Workplace, capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str, str]:
    """Return exit code, output and errors of a command, which is ``plan`` unless it is given."""
    name, *options = command or ["plan"]
    if name != "report":
        options += ["--cluster", str(place.cluster_file)]
    code = main([name, str(place.study_file), *options])
    return code, *capsys.readouterr()


#: What replaces what in which file; the messages are judged by the tests of the files.
FILE_ERRORS = {
    "unknown factor": ("study_file", STUDY, "batch_per_device: [4]", "batch_per_devise: [4]"),
    "unknown launcher": ("cluster_file", CLUSTER, "launcher: local", "launcher: nowhere"),
}


@pytest.mark.parametrize(("file", "text", "right", "wrong"), FILE_ERRORS.values(), ids=FILE_ERRORS)
def test_an_error_in_a_file_is_one_line(place, capsys, snapshot, file, text, right, wrong):
    assert right in text
    getattr(place, file).write_text(text.replace(right, wrong, 1))
    assert one_line(plan(place, capsys)) == snapshot


def one_line(ended: tuple[int, str, str]) -> str:
    """Return the one line that an error is."""
    code, _, errors = ended
    [line] = errors.splitlines()
    assert (code, line.partition(" ")[0]) == (1, "error:")
    return line


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("scaling: weak", "scaling: week"),
        ("devices_per_node: [1, 2]", "devices_per_node: [2]"),
        ("title: Tiny", "title: Tiny\nquick: {constants: {model: resnet5}}"),
        ("title: Tiny", "title: Tiny"),
    ],
    ids=["a choice", "a baseline", "a quick study", "no other error"],
)
def test_every_misspelt_name_is_listed_next_to_any_other_error(place, capsys, right, wrong, snapshot):
    text = STUDY.replace("mobilenet_v2", "mobilenet_v3").replace("framework: paddle_ps\n", "framework: paddle_pss\n")
    place.study_file.write_text(text.replace(right, wrong, 1))
    _, _, errors = plan(place, capsys)
    assert len(set(errors.splitlines())) == len(errors.splitlines())
    assert errors == snapshot


def test_a_python_that_is_not_there_is_named(place, capsys, snapshot):
    place.cluster_file.write_text(CLUSTER + "python: {paddle_ps: /nowhere/python}\n")
    assert one_line(plan(place, capsys)) == snapshot


def test_an_unknown_study_is_answered_with_the_names(capsys):
    line = one_line((main(["plan", "quickstrat"]), *capsys.readouterr()))
    assert {"'quickstrat';", "quickstart?"} <= {*line.split()}


@pytest.mark.usefixtures("place")
def test_measured_runs_are_no_study_file(capsys):
    plan_file = StudyPaths.of("mine").plan_file
    plan_file.parent.mkdir(parents=True)
    plan_file.touch()
    line = one_line((main(["plan", "mine"]), *capsys.readouterr()))
    assert f"{plan_file.parent} belongs to a study file in a different folder" in line
    assert "give the path of the file" in line


@pytest.mark.parametrize("options", [[], ["--data-only"]])
def test_evidence_that_is_not_there_is_named(place, capsys, snapshot, options):
    assert one_line(plan(place, capsys, "report", *options)) == snapshot(name="not there")


def test_outputs_that_can_t_be_written_are_named(place, capsys, monkeypatch, snapshot):
    monkeypatch.setenv("DLPERF_STUDY_OUTPUTS", str(place.study_file))
    assert one_line(plan(place, capsys, "run")) == snapshot


def test_the_plan_lists_what_can_run_and_what_can_not(place, capsys, snapshot):
    place.study_file.write_text(STUDY.replace("devices_per_node: [1, 2]", "devices_per_node: [1, 2, 64]"))
    code, output, errors = plan(place, capsys)
    assert (code, errors) == (0, "")
    assert output == snapshot
    assert not (place.outputs / "tiny").exists()


def test_a_study_of_which_nothing_can_run_is_an_error(place, capsys, snapshot):
    place.study_file.write_text(
        STUDY.replace("image_size: [32]", "image_size: [32]\n  nodes: [5]").replace(
            "    devices_per_node: 2", "    devices_per_node: 2\n    nodes: 5"
        )
    )
    paths = StudyPaths(place.outputs / "tiny")
    paths.configurations.mkdir(parents=True)
    paths.plan_file.write_text("{}")
    # What was measured stays where it is, because nothing comes in its place.
    for command in (["run"], ["run", "--rerun"]):
        assert one_line(plan(place, capsys, *command)) == snapshot(name="nothing can run")
        assert paths.configurations.exists()


def test_a_plan_from_another_folder_reads_no_training_library_and_no_plotting(tmp_path):
    """Studies are found by name wherever the command is called."""
    code = "import sys; from dlperf_study.__main__ import main; main(['plan', 'quickstart']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert {"paddle", "matplotlib", "papermill", "pandas"} & set(done.stdout.split()) == set()
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["plan"], "usage: dlperf-study"),
        (["nothing", "quickstart"], "usage: dlperf-study"),
        (["plan", "quickstart", "--quik"], "did you mean --quick?"),
        (["repport", "quickstart"], "did you mean report?"),
    ],
)
def test_a_wrong_call_shows_the_usage_and_the_most_similar_word(arguments, printed, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert printed in capsys.readouterr().err


def test_without_a_command_and_by_help_all_commands_are_listed(capsys):
    assert main([]) == 2
    with pytest.raises(SystemExit):
        main(["--help"])
    for printed in capsys.readouterr():
        assert {"run", "plan", "measure", "audit"} <= set(re.findall(r"^    (\w+) ", printed, re.MULTILINE))


def test_a_table_that_can_not_be_read_is_one_line(tmp_path, capsys, snapshot):
    assert one_line((main(["audit", str(tmp_path / "no.csv")]), *capsys.readouterr())) == snapshot


def test_what_can_not_be_read_of_an_audited_table_is_refused_and_the_rest_is_audited(tmp_path, capsys, snapshot):
    table = tmp_path / "table.csv"
    table.write_text("world_size,throughput,speedup\n1,100.0,1.00\n4,fast,3.80\n")
    assert main(["audit", str(table)]) == 1
    assert capsys.readouterr().out == snapshot


def test_a_table_may_have_a_name_that_is_no_text(tmp_path, capsys):
    table = tmp_path / os.fsdecode(b"\xff.csv")
    table.write_text("GPUs,img/s,speedup\n1,100,1.0\n2,190,2.5\n")
    assert main(["audit", str(table)]) == 1
    assert capsys.readouterr().out.endswith("\\xff.csv: 1 error, about row 2\n")
