"""What the status of a pod means: whether it has ended, why it failed, why it waits. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from dlperf_study.kubernetes.manifests import Manifest
from dlperf_study.study.job import JobResult, Outcome

#: Reasons for a pod's end that are not its own doing.
TAKEN_AWAY = ("Evicted", "Preempting", "Preempted", "Shutdown", "Terminated", "NodeShutdown")
OUT_OF_MEMORY = "OOMKilled"


@dataclass(frozen=True)
class PodFailure:
    """Why a pod did not succeed."""

    outcome: Outcome
    reason: str
    out_of_memory: bool = False

    def as_result(self) -> JobResult:
        """Return the result of a run of which nothing more is known."""
        return JobResult(self.outcome, self.reason, seconds=None, out_of_memory_kills=int(self.out_of_memory))


def pod_title(pod: Manifest) -> str:
    """Return the name of a pod in messages: the host name it has in the run."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])


def has_ended(pod: Manifest) -> bool:
    """Return whether a pod will never run again."""
    return _phase(pod) in ("Succeeded", "Failed")


def failure_of(pod: Manifest) -> PodFailure | None:
    """Return why a pod failed, None when it did not."""
    if _phase(pod) != "Failed":
        return None
    status = pod["status"]
    title = f"pod {pod_title(pod)} on {pod['spec'].get('nodeName', 'no node')}"
    if reason := status.get("reason"):
        outcome = Outcome.KILLED if reason in TAKEN_AWAY else Outcome.FAILED
        if reason == "DeadlineExceeded":
            outcome = Outcome.TIMEOUT
        return PodFailure(outcome, _with_message(f"{title}: {reason}", status))
    terminated = _container_state(pod, "terminated")
    if terminated.get("reason") == OUT_OF_MEMORY:
        return PodFailure(Outcome.FAILED, f"{title} used more memory than its limit", out_of_memory=True)
    exit_code = terminated.get("exitCode", "unknown")
    return PodFailure(Outcome.FAILED, _with_message(f"{title} exited with code {exit_code}", terminated))


def waiting_reasons(pods: Sequence[Manifest]) -> str:
    """Return which pods have not started, and why; empty when all have."""
    reasons = []
    for pod in pods:
        if _phase(pod) != "Pending":
            continue
        details, reason = _container_state(pod, "waiting"), "no node has been found for it yet"
        conditions = pod.get("status", {}).get("conditions", [])
        unmet = [condition for condition in conditions if condition.get("status") == "False"]
        if details:
            reason = details.get("reason", "waiting")
        elif unmet:
            details = unmet[0]
            reason = details.get("reason", details["type"])
        reasons.append(f"pod {pod_title(pod)}: {_with_message(reason, details)}")
    return "; ".join(reasons)


def _container_state(pod: Manifest, state: str) -> Manifest:
    """Return the state of the first container that is ``waiting`` or ``terminated``; empty when none is."""
    for container in pod.get("status", {}).get("containerStatuses", []):
        if details := container.get("state", {}).get(state):
            return dict(details)
    return {}


def _phase(pod: Manifest) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))


def _with_message(text: str, details: Manifest) -> str:
    message = details.get("message")
    return f"{text}: {message.strip()}" if message else text
