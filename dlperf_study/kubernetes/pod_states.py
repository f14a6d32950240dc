"""What the pods of a run say about it: from their status, as the API gives it, to words and outcomes. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlperf_study.kubernetes.pods import Manifest
from dlperf_study.study.job import Outcome

#: Reasons of a pod's end that are somebody else's doing.
TAKEN_AWAY = ("Evicted", "Preempting", "Preempted", "Shutdown", "Terminated", "NodeShutdown")
OUT_OF_MEMORY = "OOMKilled"


@dataclass(frozen=True)
class End:
    """How a pod ended that did not succeed."""

    outcome: Outcome
    reason: str
    out_of_memory: bool = False


def name_of(pod: Manifest) -> str:
    """Return a pod's name in words: the host name it has in the run."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])


def has_ended(pod: Manifest) -> bool:
    """Return whether a pod will never run again."""
    return _phase(pod) in ("Succeeded", "Failed")


def end_of(pod: Manifest) -> End | None:
    """Return how a pod ended, if it did, and not well."""
    if _phase(pod) != "Failed":
        return None
    status, node = pod["status"], pod["spec"].get("nodeName", "no node")
    ended = next(_terminated(pod), {})
    if reason := status.get("reason"):
        outcome = Outcome.KILLED if reason in TAKEN_AWAY else Outcome.FAILED
        if reason == "DeadlineExceeded":
            outcome = Outcome.TIMEOUT
        return End(outcome, _words(f"pod {name_of(pod)} on {node}: {reason}", status.get("message")))
    if ended.get("reason") == OUT_OF_MEMORY:
        return End(Outcome.FAILED, f"pod {name_of(pod)} on {node} used more memory than its limit", out_of_memory=True)
    code = ended.get("exitCode", "unknown")
    return End(Outcome.FAILED, _words(f"pod {name_of(pod)} on {node} exited with code {code}", ended.get("message")))


def waiting_words(pods: Sequence[Manifest]) -> str:
    """Return which pods have not started, and why; nothing when all have."""
    return "; ".join(f"pod {name_of(pod)}: {_why(pod)}" for pod in pods if _phase(pod) == "Pending")


def _why(pod: Manifest) -> str:
    status = pod.get("status", {})
    for container in status.get("containerStatuses", []):
        if waiting := container.get("state", {}).get("waiting"):
            return _words(waiting.get("reason", "waiting"), waiting.get("message"))
    for condition in status.get("conditions", []):
        if condition.get("status") == "False":
            return _words(condition.get("reason", condition["type"]), condition.get("message"))
    return "no node has been found for it yet"


def _terminated(pod: Manifest) -> Iterator[Manifest]:
    for container in pod["status"].get("containerStatuses", []):
        if ended := container.get("state", {}).get("terminated"):
            yield ended


def _phase(pod: Manifest) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))


def _words(what: str, message: str | None) -> str:
    return f"{what}: {message.strip()}" if message else what
