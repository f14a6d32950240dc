"""What counts as done: the evidence, read by the code that later counts it, and nothing else."""

import json

import pytest

from tests.command_line import LIMIT_SECONDS, ONE, SERVED, TWO
from tests.evidence_factory import change

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def test_a_finished_study_is_left_alone_and_says_so(measured):
    files = [file for file in measured.outputs.rglob("*") if file.is_file() and file.name != "plan.json"]
    before = {file: file.stat().st_mtime_ns for file in files}
    again = measured.command("run --no-report", busy=True)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.splitlines()[1:] == ["nothing to do: 3 runs, all finished"]
    assert {file: file.stat().st_mtime_ns for file in before} == before


def test_only_what_other_code_measured_is_measured_again(measured, tmp_path):
    """Notebooks are for people: that they are gone, or say anything, changes nothing."""
    place = measured.copy(tmp_path)
    for part in (TWO, SERVED):
        place.configuration(part).notebook.unlink()
    place.configuration(ONE).notebook.write_text('{"metadata": {"papermill": {"exception": null}}}')
    change(place.configuration(ONE).run(1), cache_key="0" * 64)
    done = place.command("run --no-report")
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if line.startswith("[")] == [
        "[1/1] MobileNetV2 (PaddlePaddle collective), 1 device"
    ]
    [kept] = (place.configuration(ONE).folder / "interrupted").iterdir()
    assert json.loads((kept / "run.json").read_text())["cache_key"] == "0" * 64
    assert place.run_facts(ONE)["cache_key"] == measured.run_facts(ONE)["cache_key"]
