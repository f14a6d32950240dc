"""Where the bytes of a log come from: a file, a compressed file, a member of an archive. All are read in place."""

import gzip
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import cast

from dlperf_study.errors import LogError

GZIP_MAGIC = b"\x1f\x8b"
#: What a compressed source raises when it ends too early or is damaged.
DAMAGE = (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error)
#: What opening may raise: a missing file or member, a password, a method of compression that Python doesn't know.
UNREADABLE = (OSError, KeyError, RuntimeError, NotImplementedError, *DAMAGE)


@dataclass(frozen=True)
class Source:
    """One log: a file, or the ``member`` of a zip archive. ``place``: what it is called in messages."""

    path: Path
    member: str = ""
    place: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.place or (f"{self.path}!{self.member}" if self.member else str(self.path))

    @property
    def name(self) -> str:
        """Its own name, without folders."""
        return Path(self.member or self.path).name

    @contextmanager
    def open(self) -> Iterator[BufferedIOBase]:
        """Open it for reading, decompressed; raises LogError when it can't be opened."""
        with ExitStack() as stack:
            try:
                file = _open(self, stack)
            except UNREADABLE as error:
                raise LogError(f"{self}: can't be read: {error}") from error
            yield file


def sources_of(path: Path) -> list[Source]:
    """Return the logs that a file holds: each member of a zip archive, else the file itself."""
    if not zipfile.is_zipfile(path):
        return [Source(path)]
    try:
        with zipfile.ZipFile(path) as archive:
            return [Source(path, member.filename) for member in archive.infolist() if not member.is_dir()]
    except UNREADABLE as error:
        raise LogError(f"{path}: is no readable archive: {error}") from error


def _open(source: Source, stack: ExitStack) -> BufferedIOBase:
    if source.member:
        archive = stack.enter_context(zipfile.ZipFile(source.path))
        file = cast(BufferedReader, stack.enter_context(archive.open(source.member)))
    else:
        # Opening a pipe would wait for somebody who writes.
        if source.path.exists() and not source.path.is_file():
            raise OSError("it is a pipe, a socket or a device, and no file")
        file = stack.enter_context(source.path.open("rb"))
    return stack.enter_context(gzip.GzipFile(fileobj=file)) if file.peek(2)[:2] == GZIP_MAGIC else file
