"""What a measured study leaves."""

import json
from pathlib import Path

import pytest

from dlperf_study.records.run import read_run
from dlperf_study.study.order import planned_executions
from dlperf_study.study.plan import Plan
from tests.command_line import LIMIT_SECONDS, ONE, SERVED, TWO
from tests.conftest import SECRET

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


@pytest.mark.parametrize("part", [ONE, TWO, SERVED])
def test_a_run_leaves_what_the_documentation_says(measured, part):
    folder = measured.configuration(part).run(1).folder
    facts = measured.run_facts(part)
    expected = {"run.json", "configuration.json", "submission.json", "telemetry-00000.jsonl"}
    expected |= {f"rank-{rank:05d}.jsonl" for rank in facts["ranks_seen"]}
    names = {file.name for file in folder.iterdir()}
    assert {name for name in names if not name.endswith(".log")} == expected
    assert {f"{task}.log" for task in facts["exit_codes"]} <= names
    assert (facts["status"], facts["reason"]) == ("completed", "")
    assert facts["ranks_seen"] == list(range(facts["ranks_expected"]))
    assert json.loads((folder / "configuration.json").read_text()) == facts["configuration"]


@pytest.mark.parametrize("part", [TWO, SERVED])
def test_windows_are_within_the_time_that_the_guard_sampled(measured, part):
    """The clocks of ranks and node agent are one clock, so that samples can be cut to a window."""
    run = read_run(measured.configuration(part).run(1))
    [telemetry] = run.telemetry
    first, last = telemetry.samples[0]["clock_ns"], telemetry.samples[-1]["clock_ns"]
    assert telemetry.before["clock_ns"] < first
    for log in run.ranks:
        begins = [window.begin_ns for window in log.windows.values()]
        ends = [begin + round(window.seconds * 1e9) for begin, window in zip(begins, log.windows.values(), strict=True)]
        assert first < begins[0]
        assert all(end <= begin for end, begin in zip(ends, begins[1:], strict=False))
        assert ends[-1] < last


def test_runs_were_measured_in_the_order_of_the_plan(measured):
    plan = Plan.read(measured.study.plan_file)
    records = [measured.run_facts(part) for part in (ONE, TWO, SERVED)]
    assert {(facts["order"], facts["round"]) for facts in records} == {("interleaved", 1)}
    in_time = sorted(records, key=lambda facts: str(facts["started"]))
    assert [facts["position"] for facts in in_time] == [1, 2, 3]
    planned = [execution.configuration.configuration_id for execution in planned_executions(plan)]
    assert [facts["configuration_id"] for facts in in_time] == planned


def test_the_environment_is_recorded(measured):
    facts = measured.run_facts(ONE)
    environment = facts["environment"]
    assert set(environment) == {"hardware", "software", "variables", "git"}
    hardware = {"host", "cpu_model", "cpu_flags", "cores", "cpu_governor", "memory_bytes"}
    assert hardware <= set(environment["hardware"])
    assert {"python", "system", "paddlepaddle", "numpy", "papermill"} <= set(environment["software"])
    assert environment["software"]["paddlepaddle"].startswith("3.")
    assert set(facts["load"]) == {"waited_seconds", "busy_cores_before", "busy_cores_during", "orphans_ended"}
    assert all(not isinstance(value, dict | list) for group in environment.values() for value in group.values())


def test_the_command_says_what_it_does(measured):
    assert measured.first is not None
    lines = measured.first.stdout.splitlines()
    assert lines[0] == "study tiny: 3 configurations, 0 not supported here"
    assert [line[:5] for line in lines if line.startswith("[")] == ["[1/3]", "[2/3]", "[3/3]"]
    assert sum("run 1 completed" in line for line in lines) == 3
    assert measured.first.stderr == ""


def test_no_secret_and_no_private_folder_is_in_any_file(measured):
    """The command was given one in its environment."""
    files = [file for file in measured.folder.rglob("*") if file.is_file()]
    assert len(files) > 15
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []
    assert {"HOME", "PATH", "USER"} & set(measured.run_facts(ONE)["environment"]["variables"]) == set()
    assert {path.name for path in measured.outputs.iterdir()} == {"tiny"}
    assert {path.name for path in Path(measured.study.folder).iterdir()} >= {"plan.json", "configurations"}


@pytest.mark.parametrize("part", [ONE, TWO, SERVED])
def test_the_notebook_is_executed_and_no_failure_is_kept(measured, part):
    paths = measured.configuration(part)
    cells = json.loads(paths.notebook.read_text())["cells"]
    assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code")
    assert not paths.failure.exists()
