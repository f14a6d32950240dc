"""How evidence comes home from a cluster with no shared folder: in the log of the coordinating pod, as text.

Kubernetes keeps logs by the line, cuts long lines, and throws the beginning away when there is too much: a parcel is
many short lines and says at its end what it must be.
"""

import hashlib
from collections.abc import Iterator

from dlperf_study.errors import EvidenceError

PREFIX, END_PREFIX = "dlperf-study parcel: ", "dlperf-study parcel ends: "
LINE_CHARACTERS = 4000


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of a parcel; ``text`` must have no line breaks."""
    for start in range(0, len(text), LINE_CHARACTERS):
        yield PREFIX + text[start : start + LINE_CHARACTERS]
    yield END_PREFIX + _digest(text)


def text_in(log: str) -> str | None:
    """Return the text of the parcel in a log, or None when there is none.

    Raises EvidenceError when a part of it is missing.
    """
    lines = log.splitlines()
    ends = [line.removeprefix(END_PREFIX) for line in lines if line.startswith(END_PREFIX)]
    parts = [line.removeprefix(PREFIX) for line in lines if line.startswith(PREFIX)]
    if not ends and not parts:
        return None
    text = "".join(parts)
    if ends != [_digest(text)]:
        raise EvidenceError(f"the pod's log holds only a part of the evidence ({len(text)} characters of it)")
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
