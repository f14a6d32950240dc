"""What the first pod of a run does: wait for the other pods, coordinate their node agents, and print the evidence.

``python -m dlperf_study.machines.kubernetes.coordinator_pod``; the request of the controller is mounted.
"""

import base64
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dlperf_study.core.code_identity import code_digest
from dlperf_study.core.errors import RunError
from dlperf_study.machines.cluster.software import library_versions, software
from dlperf_study.machines.kubernetes.manifests import CERTIFICATE_FILE, ENVIRONMENT_FILE, NODE_FOLDER, REQUEST_FILE
from dlperf_study.machines.kubernetes.pods import evidence_lines
from dlperf_study.machines.node_agent.coordinator import coordinate
from dlperf_study.machines.node_agent.submission import Node, Submission
from dlperf_study.study.job import JobResult, RunStatus

#: Where the first pod gathers the files of all pods.
RUNS_FOLDER = f"{NODE_FOLDER}/evidence/runs"
#: What runs a command in another pod, given its address.
REACH = (sys.executable, "-m", "dlperf_study.machines.kubernetes.remote_exec", "run", CERTIFICATE_FILE)
RETRY_SECONDS, CONNECT_SECONDS = 0.5, 5.0


@dataclass(frozen=True)
class RunRequest:
    """What the controller requests of the first pod.

    ``pods`` are the names of the pods of trainers and servers in the cluster's DNS, in the order of the submission's
    nodes; the coordinator is the first of them unless it is ``separate_coordinator``. ``versions``, of
    packages, are the controller's. ``archive``: the packed files of the submission in base64, which its pods get.
    """

    submission: Submission
    pods: tuple[str, ...]
    separate_coordinator: bool
    versions: Mapping[str, str]
    timeout_seconds: float
    start_within_seconds: float
    archive: str = ""

    def as_json(self) -> str:
        """Return the request as text, without possible secrets."""
        submission = {"submission": self.submission.as_json(), "files": dict(self.submission.files)}
        return json.dumps(vars(self) | submission)

    @classmethod
    def from_json(cls, text: str, environment: Mapping[str, str]) -> "RunRequest":
        """Return what ``as_json`` wrote, with this environment."""
        values: dict[str, Any] = json.loads(text)
        submission = Submission.from_json(values.pop("submission"))
        submission = replace(submission, files=values.pop("files")).changed_cluster(environment=environment)
        return cls(**values | {"submission": submission, "pods": tuple(values["pods"])})


def coordinate_pods(request: RunRequest, address: str) -> JobResult:
    """Run a request on the pods; ``address`` is this one's."""
    try:
        _check_image(request)
        other_pods = request.pods if request.separate_coordinator else request.pods[1:]
        nodes = _wait_for_pods(other_pods, request.start_within_seconds)
    except RunError as error:
        return JobResult(RunStatus.FAILED, str(error), seconds=None)
    if not request.separate_coordinator:
        nodes.insert(0, Node(request.pods[0], address=address))
    return coordinate(request.submission, nodes, request.timeout_seconds)


def _check_image(request: RunRequest) -> None:
    """Raise RunError if this image differs from the plan."""
    # A library that only one of the two has is no contradiction: each image has its own.
    if request.submission.code != code_digest(request.submission.code_roots):
        raise RunError("the image has other benchmark code than the controller: build it again (images/)")
    libraries, packages = request.submission.job.libraries, request.submission.job.packages
    planned, installed = library_versions(libraries, request.versions), library_versions(libraries, software(packages))
    for name in sorted(planned.keys() & installed.keys()):
        if planned[name] != installed[name]:
            raise RunError(f"the image has {name} {installed[name]}, but the study was planned with {planned[name]}")


def _wait_for_pods(pods: Sequence[str], seconds: float) -> list[Node]:
    """Return the pods as nodes once all of them answer; raises RunError."""
    # It imports asyncio, which the launcher of the controller does not need.
    from dlperf_study.machines.kubernetes.remote_exec import PORT

    deadline = time.monotonic() + seconds
    addresses: dict[str, str] = {}
    while True:
        missing = [pod for pod in pods if pod not in addresses]
        for pod in missing:
            address = (pod, PORT)
            with suppress(OSError), socket.create_connection(address, timeout=CONNECT_SECONDS) as connection:
                addresses[pod] = str(connection.getpeername()[0])
        if len(addresses) == len(pods):
            return [Node(pod, (*REACH, addresses[pod]), address=addresses[pod]) for pod in pods]
        if time.monotonic() > deadline:
            raise RunError(f"{', '.join(missing)}: no answer within {seconds:.0f} s")
        time.sleep(RETRY_SECONDS)


def write_archive(archive: str, folder: Path) -> str:
    """Write packed files to a file of this pod; return its path."""
    file = folder / "archive.tar.gz"
    if archive:
        file.write_bytes(base64.b64decode(archive))
    if archive:
        return str(file)
    return ""


def main() -> None:
    """Coordinate the run, and print its evidence."""
    # The first process of a container has no signal handlers: without one, it would ignore SIGTERM.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    request = RunRequest.from_json(Path(REQUEST_FILE).read_text(), json.loads(Path(ENVIRONMENT_FILE).read_text()))
    folder = Path(RUNS_FOLDER, Path(request.submission.folder).name)
    archive = write_archive(request.archive, Path(tempfile.gettempdir()))
    job = replace(request.submission.job, archive=archive)
    submission = replace(request.submission, folder=str(folder), job=job)
    result = coordinate_pods(replace(request, submission=submission), os.environ["POD_IP"])
    for line in evidence_lines(folder, result):
        print(line, flush=True)


if __name__ == "__main__":
    main()
