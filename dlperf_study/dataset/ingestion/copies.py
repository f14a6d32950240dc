"""Logs that are there twice.

Of two in one configuration one counts. Of two in different configurations one is in the wrong place, nobody can tell
which, and neither counts. Logs with the same bytes are known before anything is read, others by the numbers they print.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from dlperf_study.core.errors import LogError
from dlperf_study.dataset.ingestion.run_reader import PrintedRun
from dlperf_study.logs.log_files import LogFile
from dlperf_study.logs.metadata import StudyMetadata

_BLOCK_BYTES = 1 << 20


def copies_of_other_configurations(study: StudyMetadata, files: Mapping[str, LogFile]) -> dict[str, str]:
    """Return the original of each copied log, by path."""
    configurations: dict[str, int] = {}
    for index, metadata in enumerate(study.configurations):
        configurations |= dict.fromkeys(metadata.logs, index)
    copies = {}
    for identical in _identical_files([files[log] for log in configurations]):
        for log in identical:
            elsewhere = [copy for copy in identical if configurations[copy] != configurations[log]]
            if elsewhere:
                copies[log] = f"has the same bytes as {elsewhere[0]}"
    return copies


def _identical_files(files: Sequence[LogFile]) -> list[list[str]]:
    """Return the paths of files with the same bytes."""
    sizes = Counter(file.bytes for file in files)
    paths: dict[tuple[int, bytes], list[str]] = defaultdict(list)
    for file in files:
        if sizes[file.bytes] > 1 and (digest := _digest(file)):
            paths[file.bytes, digest].append(file.relative_path)
    return list(paths.values())


def _digest(file: LogFile) -> bytes:
    """Return a file's digest; empty if it is empty or unreadable."""
    digest = hashlib.sha256()
    empty = digest.digest()
    try:
        with file.source.open() as opened:
            while block := opened.read(_BLOCK_BYTES):
                digest.update(block)
    except (OSError, EOFError, LogError):
        return b""
    if digest.digest() == empty:
        return b""
    return digest.digest()


class DuplicateLogs:
    """The logs read so far, so that a copy counts once.

    ``copies``: what logs have in common with a log of another configuration, by path; neither of the two counts.
    ``further_copies``: those that reading revealed, after the first of the two was counted.
    """

    def __init__(self, copies: Mapping[str, str]) -> None:
        self._copies = copies
        self._logs: dict[bytes, tuple[str, str]] = {}
        self.further_copies: dict[str, str] = {}

    def checked(self, run: PrintedRun, configuration_id: str) -> PrintedRun:
        """Return a run, refused if its log is a copy."""
        for log in run.logs:
            if log in self._copies:
                # Another copy in the same configuration is no better.
                self._add(run, configuration_id)
                wrong = "one of the two is misplaced, and both are rejected"
                return run.refused(f"{log} {self._copies[log]}, of another configuration: {wrong}")
        if run.refusal:
            return run
        for cache_key, log in run.cache_keys.items():
            if cache_key in self._logs:
                earlier_log, earlier_identity = self._logs[cache_key]
                if earlier_identity != configuration_id:
                    self.further_copies[log] = f"prints the same numbers as {earlier_log}"
                    self.further_copies[earlier_log] = f"prints the same numbers as {log}"
                return run.refused(f"duplicate run: prints the same numbers as {earlier_log}")
        self._add(run, configuration_id)
        return run

    def _add(self, run: PrintedRun, configuration_id: str) -> None:
        for cache_key, log in run.cache_keys.items():
            self._logs.setdefault(cache_key, (log, configuration_id))
