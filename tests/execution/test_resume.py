"""What counts as done: the evidence, read by the code that later counts it, and nothing else."""

import json
from pathlib import Path

import pytest

from dlperf_study.core.paths import RunPaths
from dlperf_study.dataset.dataset import collect
from dlperf_study.evidence.run_record import RequestedRun, read
from tests.command_line import LIMIT_SECONDS, ONE, SERVED, TWO
from tests.evidence_factory import change, configuration

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def is_counted(run: RunPaths) -> bool:
    facts = read(run)
    return facts is not None and is_completed(run, facts["fingerprint"])


def is_completed(run: RunPaths, fingerprint: str) -> bool:
    return RequestedRun(configuration(), 1, fingerprint, run).state().is_completed


def truncate(log: Path) -> None:
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-1]) + lines[-1][:20])


def test_a_finished_study_is_left_alone_and_says_so(measured):
    files = [file for file in measured.outputs.rglob("*") if file.is_file() and file.name != "plan.json"]
    before = {file: file.stat().st_mtime_ns for file in files}
    again = measured.command("run", busy=True)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.splitlines()[1:] == ["nothing to do: 3 runs, all measured already"]
    assert {file: file.stat().st_mtime_ns for file in before} == before


def test_only_what_other_code_measured_is_measured_again(measured, tmp_path):
    """Notebooks are for people: that they are gone, or say anything, changes nothing."""
    place = measured.copy(tmp_path)
    for part in (TWO, SERVED):
        place.configuration(part).notebook.unlink()
    place.configuration(ONE).notebook.write_text('{"metadata": {"papermill": {"exception": null}}}')
    change(place.configuration(ONE).run(1), fingerprint="0" * 64)
    done = place.command("run")
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if line.startswith("[")] == [
        f"[1/1] {place.configuration(ONE).folder.name}"
    ]
    [kept] = (place.configuration(ONE).folder / "interrupted").iterdir()
    assert json.loads((kept / "run.json").read_text())["fingerprint"] == "0" * 64
    assert place.run_facts(ONE)["fingerprint"] == measured.run_facts(ONE)["fingerprint"]


@pytest.mark.parametrize("damage", [truncate, Path.unlink])
def test_a_log_that_is_not_whole_is_not_counted_and_complained_about(measured, tmp_path, damage):
    place = measured.copy(tmp_path)
    run = place.configuration(TWO).run(1)
    assert is_counted(run)
    damage(run.rank_log(1))  # type: ignore[operator]
    assert not is_counted(run)
    dataset = collect(place.study)
    diagnostics = dataset.diagnostics.query("severity == 'error'")
    assert any("rank-00001.jsonl" in message for message in diagnostics["message"]), diagnostics
    outcomes = dict(zip(dataset.runs["identity"], dataset.runs["outcome"], strict=True))
    assert outcomes[place.configuration(TWO).folder.name] == "failed"
    assert list(outcomes.values()).count("completed") == 2


@pytest.mark.parametrize("text", ["", "[]", '{"outcome": "completed"}', "{"])
def test_a_damaged_record_is_no_record(measured, tmp_path, text):
    place = measured.copy(tmp_path)
    run = place.configuration(ONE).run(1)
    fingerprint = place.run_facts(ONE)["fingerprint"]
    assert is_completed(run, fingerprint)
    run.run_file.write_text(text)
    assert not is_completed(run, fingerprint)
