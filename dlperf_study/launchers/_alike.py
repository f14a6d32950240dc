"""Nodes must bring the same code and the same libraries to a run, or its numbers are of no one thing."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlperf_study.launchers._messages import Message
from dlperf_study.study.software import measuring_code, software

Versions = Mapping[str, Any]

#: What may differ between nodes without a difference for what is measured.
MAY_DIFFER = ("system", "executable")


def difference(ready: Sequence[Message], names: Sequence[str], python: Sequence[str]) -> str:
    """Return in words the first difference between what the nodes will run, or nothing.

    They are also compared with what is here, of which the fingerprint of the run is: the code, and the packages
    if ``python``, by which the nodes train, is the Python here.
    """
    versions = software() if tuple(python) in ((), (sys.executable,)) else ready[0]["software"]
    reference = "this machine" if versions is software() else names[0]
    for said, name in zip(ready, names, strict=True):
        if said["code"] != measuring_code():
            return f"{name or 'the Python that trains'} has other measuring code than the driver had when it started"
        for package, there, here in other_versions(said["software"], versions):
            return f"{package} is {there} on {name}, but {here} on {reference}"
    return ""


def other_versions(there: Versions, here: Versions) -> Iterator[tuple[str, str, str]]:
    """Yield each package that is of another version there than here, in alphabetical order, with both versions."""
    for package in sorted({*there, *here} - {*MAY_DIFFER}):
        other, own = (str(versions.get(package, "not installed")) for versions in (there, here))
        if other != own:
            yield package, other, own
