"""How the evidence of a run comes home without a shared folder: as text in the log of the pod that coordinates.

Kubernetes stores logs line by line, cuts long lines, and drops the beginning of a log that grows too large: the packed
evidence is many short lines, and the last one has its digest.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from dlperf_study.errors import EvidenceError
from dlperf_study.guard.run_folder import pack, unpack
from dlperf_study.study.job import JobResult

PREFIX, DIGEST_PREFIX = "dlperf-study evidence: ", "dlperf-study evidence digest: "
LINE_CHARACTERS = 4000
#: Travels with the files of the run, and is removed on arrival.
RESULT_FILE = "result.json"


def evidence_lines(folder: Path, result: JobResult) -> Iterator[str]:
    """Yield the lines that hold the files of a run's folder and its result."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT_FILE).write_text(result.as_json())
    archive = pack(folder)
    for start in range(0, len(archive), LINE_CHARACTERS):
        yield PREFIX + archive[start : start + LINE_CHARACTERS]
    yield DIGEST_PREFIX + _digest(archive)


def extract_evidence(log: str, folder: Path) -> JobResult | None:
    """Write the files in a pod's log into a run's folder; return the result, None when the log has no evidence.

    Raises EvidenceError when a part of it is missing.
    """
    lines = log.splitlines()
    archive = "".join(line.removeprefix(PREFIX) for line in lines if line.startswith(PREFIX))
    digests = [line.removeprefix(DIGEST_PREFIX) for line in lines if line.startswith(DIGEST_PREFIX)]
    if not archive and not digests:
        return None
    if digests != [_digest(archive)]:
        raise EvidenceError(f"the pod's log has only a part of the evidence ({len(archive)} characters of it)")
    unpack(archive, folder)
    result_file = folder / RESULT_FILE
    result = JobResult.from_json(result_file.read_text())
    result_file.unlink()
    return result


def _digest(archive: str) -> str:
    return hashlib.sha256(archive.encode()).hexdigest()
