"""What the first pod of a run does: wait for the others, conduct the run, and print the evidence.

``python -m dlperf_study.kubernetes.coordinate``; its order is mounted.
"""

import base64
import gzip
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from dlperf_study.cluster.software import measuring_code, software, training_libraries
from dlperf_study.errors import RunError
from dlperf_study.guard.coordinator import coordinate
from dlperf_study.guard.run_folder import pack, unpack
from dlperf_study.guard.submission import Node, Submission
from dlperf_study.kubernetes import parcel
from dlperf_study.kubernetes.pods import ENVIRONMENT_FILE, NODE_FOLDER, ORDER_FILE, TOKEN_FILE
from dlperf_study.kubernetes.serve import PORT
from dlperf_study.study.job import JobResult, Outcome

#: Where the first pod gathers what all of them wrote.
RUNS_FOLDER = f"{NODE_FOLDER}/evidence/runs"
RETRY_SECONDS = 0.5


@dataclass(frozen=True)
class Order:
    """What the driver asks for.

    ``pods`` are the names under which they find each other, one a node; the first of them conducts the run unless
    ``conductor_trains`` says otherwise. ``code`` and ``libraries`` are the driver's.
    """

    submission: Submission
    pods: tuple[str, ...]
    conductor_trains: bool
    code: str
    libraries: Mapping[str, str]
    timeout_seconds: float
    start_within_seconds: float

    def as_json(self) -> str:
        """Return the order as it lies in the ConfigMap."""
        apart = {"submission": self.submission.as_json(), "files": dict(self.submission.files)}
        return json.dumps(vars(self) | apart)

    @classmethod
    def from_json(cls, text: str, environment: Mapping[str, str]) -> "Order":
        """Return what ``as_json`` wrote, with the values of variables that it withholds."""
        values: dict[str, Any] = json.loads(text)
        written = Submission.from_json(values.pop("submission"))
        submission = replace(written, files=values.pop("files"), environment=environment)
        return cls(**values | {"submission": submission, "pods": tuple(values["pods"])})


@dataclass(frozen=True)
class Evidence:
    """What comes home: how the run ended, and the files of its folder."""

    result: JobResult
    files: str

    def as_text(self) -> str:
        """Return both as one line of text."""
        packed = gzip.compress(json.dumps({"ending": self.result.as_json(), "files": self.files}).encode())
        return base64.b64encode(packed).decode()

    @classmethod
    def from_text(cls, text: str) -> "Evidence":
        """Return what ``as_text`` wrote."""
        values = json.loads(gzip.decompress(base64.b64decode(text)))
        return cls(JobResult.from_json(values["ending"]), values["files"])

    def write(self, folder: Path) -> JobResult:
        """Put the files into the run's folder, and return the ending."""
        if self.files:
            unpack(self.files, folder)
        return self.result


def conduct(order: Order, own_address: str) -> Evidence:
    """Conduct a run from the first of its pods, and return what it left."""
    submission = replace(order.submission, folder=f"{RUNS_FOLDER}/{Path(order.submission.folder).name}")
    try:
        _check_image(order, software())
        others = order.pods[1:] if order.conductor_trains else order.pods
        addresses = _meet(others, order.start_within_seconds)
    except RunError as error:
        return Evidence(JobResult(Outcome.FAILED, str(error), seconds=None), "")
    here = [Node(order.pods[0], address=own_address)] if order.conductor_trains else []
    result = coordinate(submission, [*here, *_places(others, addresses)], order.timeout_seconds)
    return Evidence(result, pack(Path(submission.folder)))


def _check_image(order: Order, found: Mapping[str, str]) -> None:
    """Raise RunError when this image is another than the one the study was planned with.

    A library that only one of both has is no contradiction: each image has its own.
    """
    if order.code != measuring_code():
        raise RunError("the image has other measuring code than the driver of the study: build it again (images/)")
    planned, here = training_libraries(order.libraries), training_libraries(found)
    for name in sorted(planned.keys() & here.keys()):
        if planned[name] != here[name]:
            raise RunError(f"the image has {name} {here[name]}, but the study was planned with {planned[name]}")


def _places(pods: Sequence[str], addresses: Sequence[str]) -> list[Node]:
    reach = (sys.executable, "-m", f"{__package__}.reach", TOKEN_FILE)
    return [Node(pod, (*reach, address), address=address) for pod, address in zip(pods, addresses, strict=True)]


def _meet(pods: Sequence[str], seconds: float) -> list[str]:
    """Wait until every other pod answers; return their addresses.

    Raises RunError, with the names, when some don't within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    found: dict[str, str] = {}
    while missing := [pod for pod in pods if pod not in found]:
        found |= {pod: address for pod in missing if (address := _answering(pod))}
        if len(found) < len(pods):
            if time.monotonic() > deadline:
                raise RunError(f"{', '.join(missing)}: no answer within {seconds:.0f} s")
            time.sleep(RETRY_SECONDS)
    return [found[pod] for pod in pods]


def _answering(pod: str) -> str | None:
    """Return the address of a pod if its server is there."""
    try:
        with socket.create_connection((pod, PORT), timeout=5) as connection:
            return str(connection.getpeername()[0])
    except OSError:
        return None


def _terminate(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Conduct the run, and print its evidence as a parcel."""
    # The first process of a container has no signal handlers: without one, it would take no notice of SIGTERM.
    signal.signal(signal.SIGTERM, _terminate)
    order = Order.from_json(Path(ORDER_FILE).read_text(), json.loads(Path(ENVIRONMENT_FILE).read_text()))
    for line in parcel.lines_of(conduct(order, os.environ["POD_IP"]).as_text()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
