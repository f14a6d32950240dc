"""Submissions and endings as text, and what must not be in it."""

from typing import Any

from dlperf_study.machines.launchers.local import nodes
from dlperf_study.machines.node_agent.coordinator import coordinate
from dlperf_study.machines.node_agent.submission import Command, Submission
from dlperf_study.study.environment_variables import PassedVariables
from dlperf_study.study.gpu_support import GpuQuestion
from dlperf_study.study.job import JobResult, RunStatus
from tests.machines import submissions
from tests.training.frameworks.launching import CLUSTER

COMMAND = Command("node-0", "trainer", ("python", "-m", "x"), {"A": "1"}, "/runs/1/node-0.log", 1)
ASKED = submissions.submission("local", "/runs/1", (COMMAND,), 2, nodes=2, python=("python",), pass_environment=("A",))
#: With what its nodes are asked.
SECTIONS: dict[str, Any] = {
    "gpu_question": GpuQuestion("torch_ddp", "torch", ("-m", "questions", "gpu"), "make gpu"),
    "variables": PassedVariables(("NCCL_",), ("NCCL_DEBUG",)),
    "requirements": (("-m", "questions", "classes"),),
}


def test_submissions_and_endings_are_read_as_they_were_written():
    for submission in (ASKED, submissions.changed(ASKED, **SECTIONS)):
        assert Submission.from_json(submissions.changed(submission, files={"a.txt": "text"}).as_json()) == submission
    result = JobResult(RunStatus.TIMEOUT, "late", 1.5, {"node-0": None}, nodes=({"node": 0, "load": {"waited": 1}},))
    assert JobResult.from_json(result.as_json()) == result


def test_a_withheld_value_is_taken_from_the_own_environment(tmp_path, monkeypatch, snapshot):
    command = Command("one", "trainer", ("sh", "-c", "echo $SITE"), {}, str(tmp_path / "runs" / "1" / "one.log"))
    given = submissions.submission("local", str(tmp_path / "runs" / "1"), (command,), 0, environment={"SITE": "here"})
    read = Submission.from_json(given.as_json())
    result = coordinate(read, nodes(CLUSTER), 30)
    assert (result.status, result.reason) == ("failed", snapshot)
    monkeypatch.setenv("SITE", "there")
    assert coordinate(read, nodes(CLUSTER), 30).status == "completed"
    assert (tmp_path / "runs" / "1" / "one.log").read_text() == "there\n"
