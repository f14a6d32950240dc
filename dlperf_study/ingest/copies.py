"""Logs whose bytes are also those of a log of another configuration: one of the two is in the wrong place."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from dlperf_study.errors import LogError
from dlperf_study.ingest.identity import Identity
from dlperf_study.ingest.log_files import LogFile

_BLOCK_BYTES = 1 << 20


def copies_of_other_configurations(identity: Identity, files: Mapping[str, LogFile]) -> dict[str, str]:
    """Return, by the path of a log, of which log of another configuration it has the bytes.

    ``files`` are by path. Only files of one size are compared. What can't be read is left to its reader.
    """
    configurations: dict[str, int] = {}
    for index, metadata in enumerate(identity.configurations):
        configurations |= dict.fromkeys(metadata.logs, index)
    copies = {}
    for identical in _identical_files([files[log] for log in configurations]):
        for log in identical:
            elsewhere = [copy for copy in identical if configurations[copy] != configurations[log]]
            if elsewhere:
                copies[log] = f"has the same bytes as {elsewhere[0]}"
    return copies


def _identical_files(files: Iterable[LogFile]) -> Iterator[list[str]]:
    """Yield the paths of files with the same bytes."""
    by_size: dict[int, list[LogFile]] = defaultdict(list)
    for file in files:
        by_size[file.bytes].append(file)
    for of_size in by_size.values():
        by_digest: dict[bytes, list[str]] = defaultdict(list)
        for file in of_size if len(of_size) > 1 else ():
            if digest := _digest(file):
                by_digest[digest].append(file.relative_path)
        yield from by_digest.values()


def _digest(file: LogFile) -> bytes:
    """Return a digest of the bytes of a file; nothing for one that is empty or can't be read."""
    digest, is_empty = hashlib.sha256(), True
    try:
        with file.source.open() as opened:
            while block := opened.read(_BLOCK_BYTES):
                digest.update(block)
                is_empty = False
    except (OSError, EOFError, LogError):
        return b""
    return b"" if is_empty else digest.digest()
