"""The code that makes a verdict of what was measured: a self-test is of this code as much as of the measuring code."""

import hashlib
from functools import cache

from dlperf_study.paths import PROJECT

#: The rooms from a run's evidence to the verdicts of its dataset.
ANALYSING = ("evidence", "analysis", "dataset")


@cache
def analysis_code() -> str:
    """Return a digest of the source of all code that reads evidence and makes verdicts of it."""
    package = PROJECT / "dlperf_study"
    digest = hashlib.sha256()
    for room in ANALYSING:
        for file in sorted((package / room).rglob("*.py")):
            digest.update(str(file.relative_to(package)).encode() + file.read_bytes())
    return digest.hexdigest()
