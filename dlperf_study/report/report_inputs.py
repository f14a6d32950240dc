"""What a report was made from: a report of the same inputs needs not be built again.

The inputs are known by the size and the time of each file, as `make` knows them. Standard library only: a command that
has nothing to do must not import what builds reports.
"""

import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from dlperf_study.paths import NOTEBOOKS, PROJECT, SELFTEST, StudyPaths
from dlperf_study.writing import write_atomically


def inputs_digest(paths: StudyPaths) -> str:
    """Return a digest of all that the pages of a study depend on.

    These are its plan, its evidence and that of its earlier measurements, the last self-test, this package with its
    published sources and its notebooks, and the installed packages.
    """
    digest = hashlib.sha256(sys.version.encode())
    if paths.plan_file.exists():
        # Each call writes the plan, and mostly the same one.
        digest.update(paths.plan_file.read_bytes())
    earlier = [measurement.configurations for measurement in paths.earlier_measurements()]
    folders = (paths.configurations, *earlier, PROJECT / "dlperf_study", NOTEBOOKS)
    files = (StudyPaths.of(SELFTEST).selftest_results, Path(sysconfig.get_path("purelib")))
    for folder in folders:
        for path in _files_below(folder):
            digest.update(_state(path))
    for path in map(str, files):
        digest.update(_state(path))
    return digest.hexdigest()


def is_current(paths: StudyPaths) -> bool:
    """Return whether the report of a study is there, with its parts, and would be built from the same inputs again."""
    parts = (paths.report_page, paths.tables, paths.dataset, paths.report_inputs)
    return all(part.exists() for part in parts) and paths.report_inputs.read_text() == inputs_digest(paths)


def record_inputs(paths: StudyPaths, digest: str) -> None:
    """Keep the digest that was taken before a report was built: what came later was perhaps not read."""
    write_atomically(paths.report_inputs, digest)


def _files_below(folder: Path) -> Iterator[str]:
    """Yield the files of a folder in order, without those that Python compiles."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - {"__pycache__"})
        for name in sorted(files):
            yield os.path.join(parent, name)


def _state(path: str) -> bytes:
    """Return what changes when a file does."""
    if not os.path.exists(path):
        return f"{path} is missing\n".encode(errors="surrogateescape")
    status = os.stat(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}\n".encode(errors="surrogateescape")
