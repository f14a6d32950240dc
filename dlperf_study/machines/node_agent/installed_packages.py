"""The installed packages of a Python, on this machine or on a node, and whether all nodes have the same."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.core.wording import last_line
from dlperf_study.machines.cluster import software
from dlperf_study.machines.node_agent.messages import Message
from dlperf_study.machines.node_agent.submission import Node, Submission

Versions = Mapping[str, Any]

#: What may be different between nodes without an effect on what is measured.
MAY_DIFFER = ("system", "executable")
QUERY_SECONDS = 60
#: The exit code of ssh when it could not connect.
SSH_FAILED = 255
LOCAL_NODE = Node()


class UnusablePython(RunError):
    """A Python that runs and can't list its packages."""


def installed_packages(
    python: Sequence[str], packages: Sequence[str] = (), node: Node = LOCAL_NODE, code_roots: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the code digest and versions of a Python.

    ``code_roots``: the modules of which the digest is, with all that they import.
    Raises UnusablePython when it doesn't have this package, and RunError when it can't be run or reached.
    """
    if list(python) in ([], [sys.executable]) and not node.reach:
        return software.installed(packages, code_roots)
    command = [*python, *software.query(packages, code_roots)]
    try:
        # In another folder: a checkout in the current folder is not there during training.
        done = subprocess.run(node.command(*command), capture_output=True, text=True, timeout=QUERY_SECONDS, cwd="/")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{' '.join(python)} does not run: {error}") from error
    program = " ".join([*python, "-m", software.MODULE])
    if done.returncode:
        message = last_line(done.stderr) or "no message"
        if node.reach and done.returncode == SSH_FAILED:
            raise RunError(f"{node.name} did not report its libraries: {message}")
        raise UnusablePython(f"{program} exited with code {done.returncode}: {message}")
    output = last_line(done.stdout)
    try:
        report: dict[str, Any] = json.loads(output)
    except ValueError:
        raise UnusablePython(f"{program} prints {output!r} instead of its installed packages") from None
    return report


def version_mismatch(reports: Sequence[Message], names: Sequence[str], submission: Submission) -> str:
    """Return the first difference between what the nodes will run, or ""."""
    # They are also compared with this machine, which computed the fingerprint of the run: the code, and the versions of
    # packages if the Python that trains is the Python here.
    is_python_here = submission.python in ((), (sys.executable,))
    versions = software.software(submission.job.packages) if is_python_here else reports[0]["software"]
    reference = "this machine" if is_python_here else names[0]
    for report, name in zip(reports, names, strict=True):
        if report["code"] != submission.code:
            node = name or "the Python that trains"
            return f"{node} has other benchmark code than the controller had when it started"
        for package, on_node, expected in different_versions(report["software"], versions):
            return f"{package} is {on_node} on {name}, but {expected} on {reference}"
    return ""


def different_versions(versions: Versions, reference: Versions) -> Iterator[tuple[str, str, str]]:
    """Yield each package with a different version."""
    for package in sorted({*versions, *reference} - {*MAY_DIFFER}):
        version, expected = (str(each.get(package, "not installed")) for each in (versions, reference))
        if version != expected:
            yield package, version, expected
