"""What the status of a pod means, and the evidence that the first pod prints."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.machines.kubernetes import kubernetes_run
from dlperf_study.machines.kubernetes.api import KubernetesError
from dlperf_study.machines.kubernetes.pods import evidence_lines, extract_evidence, pod_failure, waiting_reasons
from dlperf_study.study.job import JobResult, RunStatus
from tests.machines.launchers.kubernetes_runs import ended, pod


@pytest.mark.parametrize(
    ("pod_status", "status", "reason"),
    [
        (ended(exitCode=1, reason="Error"), RunStatus.FAILED, "pod trainer-1 on node-7 exited with code 1"),
        (ended(exitCode=137, reason="OOMKilled"), RunStatus.FAILED, "used more memory than its limit"),
        (pod("Failed", reason="Evicted", message="low on memory"), RunStatus.KILLED, "node-7: Evicted: low on memory"),
        (pod("Failed", reason="DeadlineExceeded"), RunStatus.TIMEOUT, "DeadlineExceeded"),
        (pod("Failed", reason="NodeLost"), RunStatus.FAILED, "pod trainer-1 on node-7: NodeLost"),
    ],
)
def test_why_a_pod_failed(pod_status, status, reason):
    failure = pod_failure(pod_status)
    assert failure
    assert failure.status is status
    assert reason in failure.reason
    assert failure.out_of_memory == ("memory than" in reason)


def test_a_pod_that_runs_or_succeeded_has_not_failed():
    assert [pod_failure(pod(phase)) for phase in ("Pending", "Running", "Succeeded")] == [None] * 3


@pytest.mark.parametrize(
    ("pod_status", "words"),
    [
        ({}, "no node has been found for it yet"),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]},
            "Unschedulable: 0/3",
        ),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}, "ImagePullBackOff"),
    ],
)
def test_why_a_pod_waits(pod_status, words):
    assert waiting_reasons([pod("Pending", **pod_status), pod("Running")]) == f"pod trainer-1: {words}"


def test_pods_that_do_not_end_are_named(monkeypatch):
    """As those of a node that nobody reaches, which Kubernetes keeps until it is told to forget them."""
    monkeypatch.setattr(kubernetes_run, "LEAVING_SECONDS", 0.0)
    stays = {"metadata": {"name": "run-1-trainer-0"}}
    deleted: list[tuple[str, str]] = []
    api = SimpleNamespace(
        list=lambda kind, _: [stays] if kind == "Pod" else [], delete=lambda *given: deleted.append(given)
    )
    with pytest.raises(KubernetesError, match="have not ended: run-1-trainer-0"):
        kubernetes_run.delete_objects(cast(Any, api), "run=1")
    assert deleted == [("Pod", "run-1-trainer-0")]


RESULT = JobResult(RunStatus.COMPLETED, "", 1.0)


def printed(folder: Path) -> list[str]:
    """Return the lines that a pod prints whose run has written a file of several lines."""
    folder.mkdir()
    (folder / "node-0.log").write_bytes(random.Random(0).randbytes(9000))
    return list(evidence_lines(folder, RESULT))


def test_evidence_is_read_from_between_other_lines(tmp_path):
    lines = printed(tmp_path / "pod")
    assert max(map(len, lines)) < 5000
    home = tmp_path / "home"
    assert extract_evidence("\n".join(["noise", *lines[:1], "a warning", *lines[1:]]), home) == RESULT
    assert [file.name for file in home.iterdir()] == ["node-0.log"]
    assert extract_evidence("nothing but noise\n", home) is None


@pytest.mark.parametrize("lost", [0, 1, -1])
def test_evidence_with_a_missing_line_is_an_error(lost, tmp_path):
    lines = printed(tmp_path / "pod")
    del lines[lost]
    with pytest.raises(RecordError, match="only a part of the run records"):
        extract_evidence("\n".join(lines), tmp_path)
