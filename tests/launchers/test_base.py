"""Submissions and endings as text, and what must not be in it."""

from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.guard.coordinator import coordinate
from dlperf_study.guard.submission import Command, Submission
from dlperf_study.launchers.local import nodes
from dlperf_study.study.job import JobResult, Outcome
from tests.frameworks.launching import CLUSTER

COMMAND = Command("node-0", "trainer", ("python", "-m", "x"), {"A": "1"}, "/runs/1/node-0.log", 1)
ASKED = Submission("local", "/runs/1", (COMMAND,), 2, nodes=2, python=("python",), pass_environment=("A",))


def test_a_submission_is_read_as_it_was_written() -> None:
    assert Submission.from_json(replace(ASKED, files={"a.txt": "text"}).as_json()) == ASKED


def test_an_ending_is_read_as_it_was_written() -> None:
    result = JobResult(Outcome.TIMEOUT, "late", 1.5, {"node-0": None}, nodes=({"node": 0, "load": {"waited": 1}},))
    assert JobResult.from_json(result.as_json()) == result


def test_a_withheld_value_is_taken_from_the_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = Command("one", "trainer", ("sh", "-c", "echo $SITE"), {}, str(tmp_path / "runs" / "1" / "one.log"))
    given = Submission("local", str(tmp_path / "runs" / "1"), (command,), 0, environment={"SITE": "here"})
    read = Submission.from_json(given.as_json())
    result = coordinate(read, nodes(CLUSTER), 30)
    assert (result.outcome, result.reason) == (
        "failed",
        "SITE: given in the cluster file, but not passed on to here",
    )
    monkeypatch.setenv("SITE", "there")
    assert coordinate(read, nodes(CLUSTER), 30).outcome == "completed"
    assert (tmp_path / "runs" / "1" / "one.log").read_text() == "there\n"
