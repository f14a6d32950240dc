"""What comes from pods: why one ended, failed or waits, and the evidence of a run in the log of its first pod.

Kubernetes stores logs line by line, cuts long lines, and drops the beginning of a log that grows too large: the packed
evidence is many short lines, and the last one has its digest.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlperf_study.core.errors import RecordError
from dlperf_study.machines.kubernetes.manifests import Manifest
from dlperf_study.machines.node_agent.run_folder import pack, unpack
from dlperf_study.study.job import JobResult, RunStatus

#: Reasons for a pod's end that are not its own doing.
TAKEN_AWAY = ("Evicted", "Preempting", "Preempted", "Shutdown", "Terminated", "NodeShutdown")
OUT_OF_MEMORY = "OOMKilled"


@dataclass(frozen=True)
class PodFailure:
    """Why a pod did not succeed."""

    status: RunStatus
    reason: str
    out_of_memory: bool = False

    def as_result(self) -> JobResult:
        """Return the result of a run of which nothing more is known."""
        return JobResult(self.status, self.reason, seconds=None, out_of_memory_kills=int(self.out_of_memory))


def pod_title(pod: Manifest) -> str:
    """Return the name of a pod in messages."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])


def has_ended(pod: Manifest) -> bool:
    """Return whether a pod will never run again."""
    return _phase(pod) in ("Succeeded", "Failed")


def pod_failure(pod: Manifest) -> PodFailure | None:
    """Return why a pod failed, None when it did not."""
    if _phase(pod) != "Failed":
        return None
    pod_status = pod["status"]
    title = f"pod {pod_title(pod)} on {pod['spec'].get('nodeName', 'no node')}"
    if reason := pod_status.get("reason"):
        status = RunStatus.KILLED if reason in TAKEN_AWAY else RunStatus.FAILED
        if reason == "DeadlineExceeded":
            status = RunStatus.TIMEOUT
        return PodFailure(status, _append_message(f"{title}: {reason}", pod_status))
    terminated = _container_state(pod, "terminated")
    if terminated.get("reason") == OUT_OF_MEMORY:
        return PodFailure(RunStatus.FAILED, f"{title} used more memory than its limit", out_of_memory=True)
    exit_code = terminated.get("exitCode", "unknown")
    return PodFailure(RunStatus.FAILED, _append_message(f"{title} exited with code {exit_code}", terminated))


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
        reasons.append(f"pod {pod_title(pod)}: {_append_message(reason, details)}")
    return "; ".join(reasons)


def _container_state(pod: Manifest, state: str) -> Manifest:
    """Return the waiting or terminated state of a pod."""
    for container in pod.get("status", {}).get("containerStatuses", []):
        if details := container.get("state", {}).get(state):
            return dict(details)
    return {}


def _phase(pod: Manifest) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))


def _append_message(text: str, details: Manifest) -> str:
    message = details.get("message")
    if message:
        return f"{text}: {message.strip()}"
    return text


PREFIX, DIGEST_PREFIX = "dlperf-study evidence: ", "dlperf-study evidence digest: "
LINE_CHARACTERS = 4000
#: Travels with the files of the run, and is removed on arrival.
RESULT_FILE = "result.json"


def evidence_lines(folder: Path, result: JobResult) -> Iterator[str]:
    """Yield the lines of a run's files and its result."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT_FILE).write_text(result.as_json())
    archive = pack(folder)
    for start in range(0, len(archive), LINE_CHARACTERS):
        yield PREFIX + archive[start : start + LINE_CHARACTERS]
    yield DIGEST_PREFIX + _digest(archive)


def extract_evidence(log: str, folder: Path) -> JobResult | None:
    """Write the files in a pod's log; return the result; raises RecordError."""
    lines = log.splitlines()
    archive = "".join(line.removeprefix(PREFIX) for line in lines if line.startswith(PREFIX))
    digests = [line.removeprefix(DIGEST_PREFIX) for line in lines if line.startswith(DIGEST_PREFIX)]
    if not archive and not digests:
        return None
    if digests != [_digest(archive)]:
        raise RecordError(f"the pod's log has only a part of the run records ({len(archive)} characters of it)")
    unpack(archive, folder)
    result_file = folder / RESULT_FILE
    result = JobResult.from_json(result_file.read_text())
    result_file.unlink()
    return result


def _digest(archive: str) -> str:
    return hashlib.sha256(archive.encode()).hexdigest()
