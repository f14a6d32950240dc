"""A Python asked what it brings to a run: on this machine, or where a node is."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlperf_study.cluster import software
from dlperf_study.cluster.software import measuring_code
from dlperf_study.errors import RunError
from dlperf_study.guard.messages import Message
from dlperf_study.guard.submission import Node
from dlperf_study.wording import last_line

# Nodes must bring the same code and the same libraries to a run, or its numbers are of no one thing.


Versions = Mapping[str, Any]

#: What may differ between nodes without a difference for what is measured.
MAY_DIFFER = ("system", "executable")


def version_mismatch(ready: Sequence[Message], names: Sequence[str], python: Sequence[str]) -> str:
    """Return in words the first difference between what the nodes will run, or nothing.

    They are also compared with what is here, of which the fingerprint of the run is: the code, and the packages
    if ``python``, by which the nodes train, is the Python here.
    """
    versions = software.software() if tuple(python) in ((), (sys.executable,)) else ready[0]["software"]
    reference = "this machine" if versions is software.software() else names[0]
    for said, name in zip(ready, names, strict=True):
        if said["code"] != measuring_code():
            return f"{name or 'the Python that trains'} has other measuring code than the driver had when it started"
        for package, there, here in different_versions(said["software"], versions):
            return f"{package} is {there} on {name}, but {here} on {reference}"
    return ""


def different_versions(there: Versions, here: Versions) -> Iterator[tuple[str, str, str]]:
    """Yield each package that is of another version there than here, in alphabetical order, with both versions."""
    for package in sorted({*there, *here} - {*MAY_DIFFER}):
        other, own = (str(versions.get(package, "not installed")) for versions in (there, here))
        if other != own:
            yield package, other, own


QUESTION_SECONDS = 60
#: The exit code of ssh when it did not get through.
UNREACHED = 255
LOCAL_NODE = Node()


class UnusablePython(RunError):
    """A Python that runs and does not answer: it has not this package, or not as it should be."""


def installed_packages(python: Sequence[str], packages: Sequence[str] = (), node: Node = LOCAL_NODE) -> dict[str, Any]:
    """Return ``code``, a digest, and ``software``, versions, those of ``packages`` too, of a Python given by its argv.

    Raises UnusablePython when it doesn't have this package, and RunError when it can't be run or reached.
    """
    if list(python) in ([], [sys.executable]) and not node.reach:
        return software.brought(packages)
    question = [*python, "-m", software.MODULE, *packages]
    try:
        # Not from here: a checkout that lies in the current folder is not there when it trains.
        done = subprocess.run(
            node.command(*question), capture_output=True, text=True, timeout=QUESTION_SECONDS, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{' '.join(python)} does not run: {error}") from error
    if done.returncode:
        raise _refusal(question, node, done)
    return _facts(question, last_line(done.stdout))


def _facts(question: Sequence[str], said: str) -> dict[str, Any]:
    """Return what a Python said; a program that is none may end well and say something else."""
    try:
        facts: dict[str, Any] = json.loads(said)
    except ValueError:
        raise UnusablePython(f"{' '.join(question[:3])} says {said!r}, and not what it brings") from None
    return facts


def _refusal(question: Sequence[str], node: Node, done: "subprocess.CompletedProcess[str]") -> RunError:
    said = last_line(done.stderr) or "it says nothing"
    if node.reach and done.returncode == UNREACHED:
        return RunError(f"{node.name} can't be asked for its libraries: {said}")
    return UnusablePython(f"{' '.join(question[:3])} exited with code {done.returncode}: {said}")
