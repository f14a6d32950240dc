"""What pods say: how they ended, why they wait, and the evidence that the first of them prints."""

from typing import Any

import pytest

from dlperf_study.errors import EvidenceError
from dlperf_study.kubernetes import parcel, pod_states
from dlperf_study.study.job import Outcome
from tests.launchers.kubernetes_runs import ended, pod


@pytest.mark.parametrize(
    ("seen", "outcome", "reason"),
    [
        (ended(exitCode=1, reason="Error"), Outcome.FAILED, "pod trainer-1 on node-7 exited with code 1"),
        (ended(exitCode=137, reason="OOMKilled"), Outcome.FAILED, "used more memory than its limit"),
        (pod("Failed", reason="Evicted", message="low on memory"), Outcome.KILLED, "node-7: Evicted: low on memory"),
        (pod("Failed", reason="DeadlineExceeded"), Outcome.TIMEOUT, "DeadlineExceeded"),
        (pod("Failed", reason="NodeLost"), Outcome.FAILED, "pod trainer-1 on node-7: NodeLost"),
    ],
)
def test_how_a_pod_ended(seen: dict[str, Any], outcome: Outcome, reason: str) -> None:
    end = pod_states.end_of(seen)
    assert end
    assert end.outcome is outcome
    assert reason in end.reason
    assert end.out_of_memory == ("memory than" in reason)


def test_a_pod_that_runs_or_succeeded_has_not_failed() -> None:
    assert [pod_states.end_of(pod(phase)) for phase in ("Pending", "Running", "Succeeded")] == [None] * 3


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, "no node has been found for it yet"),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]},
            "Unschedulable: 0/3",
        ),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}, "ImagePullBackOff"),
    ],
)
def test_why_a_pod_waits(status: dict[str, Any], words: str) -> None:
    assert pod_states.waiting_words([pod("Pending", **status), pod("Running")]) == f"pod trainer-1: {words}"


def test_a_parcel_is_read_from_between_other_lines() -> None:
    text = "x" * 9000
    sent = list(parcel.lines_of(text))
    assert max(map(len, sent)) < 5000
    assert parcel.text_in("\n".join(["noise", *sent[:1], "a warning", *sent[1:]])) == text
    assert parcel.text_in("nothing but noise\n") is None


@pytest.mark.parametrize("lost", [0, 1, -1])
def test_a_parcel_that_lacks_a_line_is_an_error(lost: int) -> None:
    sent = list(parcel.lines_of("x" * 9000))
    del sent[lost]
    with pytest.raises(EvidenceError, match="only a part of the evidence"):
        parcel.text_in("\n".join(sent))
