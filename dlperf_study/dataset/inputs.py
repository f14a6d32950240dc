"""What tables and a report were made from: those of the same inputs need not be made again.

The inputs are known by the size and the time of each file, as `make` knows them. Standard library only: a command that
has nothing to do must not import what reads evidence or builds reports.
"""

import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from dlperf_study.core.part_search import parts_folder
from dlperf_study.core.paths import SELFTEST, StudyPaths
from dlperf_study.core.resources import NOTEBOOKS, PACKAGE_FOLDER
from dlperf_study.core.writing import write_atomically

_TABLES = ("runs", "steps", "configurations", "diagnostics")


def dataset_digest(paths: StudyPaths) -> str:
    """Return a digest of all inputs of a study's tables."""
    return _digest(paths, states_below(paths.configurations, PACKAGE_FOLDER, *filter(None, [parts_folder()])))


def is_dataset_current(paths: StudyPaths) -> bool:
    """Return whether a study's tables exist and have the same inputs."""
    parts = (paths.dataset_inputs, *(paths.dataset / f"{name}.parquet" for name in _TABLES))
    return all(part.exists() for part in parts) and paths.dataset_inputs.read_bytes() == dataset_digest(paths).encode()


def report_digest(paths: StudyPaths) -> str:
    """Return a digest of all inputs of a study's pages."""
    earlier = [measurement.configurations for measurement in paths.earlier_measurements()]
    folders = (paths.configurations, *earlier, PACKAGE_FOLDER, *filter(None, [parts_folder()]), NOTEBOOKS)
    files = (StudyPaths.of(SELFTEST).selftest_results, Path(sysconfig.get_path("purelib")))
    return _digest(paths, chain(states_below(*folders), states(map(str, files))))


def is_report_current(paths: StudyPaths) -> bool:
    """Return whether a study's report exists and has the same inputs."""
    parts = (paths.report_page, paths.tables, paths.dataset, paths.report_inputs)
    return all(part.exists() for part in parts) and paths.report_inputs.read_bytes() == report_digest(paths).encode()


def record_report(paths: StudyPaths, digest: str) -> None:
    """Keep the digest that was taken before a report was built."""
    write_atomically(paths.report_inputs, digest)


def _digest(paths: StudyPaths, states_of_files: Iterable[bytes]) -> str:
    """Return a digest of Python, plan and files."""
    digest = hashlib.sha256(sys.version.encode())
    digest.update(paths.plan_file.read_bytes() if paths.plan_file.exists() else b"")
    for state in states_of_files:
        digest.update(state)
    return digest.hexdigest()


def states_below(*folders: Path) -> Iterator[bytes]:
    """Yield the states of the files of folders, in order."""
    for folder in folders:
        for parent, inner_folders, files in os.walk(folder):
            # Without what Python compiles, and the copies that JupyterLab keeps.
            inner_folders[:] = sorted(set(inner_folders) - {"__pycache__", ".ipynb_checkpoints"})
            yield from states(os.path.join(parent, name) for name in sorted(files))


def states(files: Iterable[str]) -> Iterator[bytes]:
    """Yield of each file what changes when the file does."""
    for path in files:
        # A file may be gone that was listed a moment ago, as one that is written in one piece is.
        try:
            status = os.stat(path)
            state = f"{path} {status.st_size} {status.st_mtime_ns}\n"
        except OSError:
            state = f"{path} is missing\n"
        yield state.encode(errors="surrogateescape")
