"""Where the bytes of a log are: in a file, a compressed file, or a member of an archive. All are read in place."""

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
from dlperf_study.logs.format import Format

GZIP_MAGIC = b"\x1f\x8b"
#: What reading raises for compressed bytes that end too early or are damaged.
DAMAGE = (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error)
#: What opening may raise: a missing file or member, a password, a method of compression that Python doesn't know.
_OPENING_ERRORS = (OSError, KeyError, RuntimeError, NotImplementedError, *DAMAGE)


@dataclass(frozen=True)
class LogSource:
    """One log: a file, or the ``member`` of a zip archive.

    ``display_name``: its name in messages, if not its path. ``own_format``: the format that its user declared for it.
    """

    path: Path
    member: str = ""
    display_name: str = field(default="", compare=False)
    own_format: Format | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.display_name or (f"{self.path}!{self.member}" if self.member else str(self.path))

    @property
    def name(self) -> str:
        """Its name without folders."""
        return Path(self.member or self.path).name

    @contextmanager
    def open(self) -> Iterator[BufferedIOBase]:
        """Open it for reading, decompressed; raises LogError if it can't be opened."""
        with ExitStack() as stack:
            try:
                if self.member:
                    archive = stack.enter_context(zipfile.ZipFile(self.path))
                    file = cast(BufferedReader, stack.enter_context(archive.open(self.member)))
                else:
                    # Opening a pipe would wait until somebody writes into it.
                    if self.path.exists() and not self.path.is_file():
                        raise OSError("it is a pipe, a socket or a device, and no file")
                    file = stack.enter_context(self.path.open("rb"))
                is_compressed = file.peek(2)[:2] == GZIP_MAGIC
                opened = stack.enter_context(gzip.GzipFile(fileobj=file)) if is_compressed else file
            except _OPENING_ERRORS as error:
                raise LogError(f"{self}: can't be read: {error}") from error
            yield opened


def log_sources(path: Path) -> list[LogSource]:
    """Return the logs in a file: each member of a zip archive, else the file itself."""
    if not zipfile.is_zipfile(path):
        return [LogSource(path)]
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
    except _OPENING_ERRORS as error:
        raise LogError(f"{path}: can't be read as an archive: {error}") from error
    return [LogSource(path, member.filename) for member in members]
