"""Possible log files below a folder or in an archive."""

import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from dlperf_study.core.errors import LogError
from dlperf_study.core.wording import path_text
from dlperf_study.logs.blocks import DAMAGE, OPENING_ERRORS, LogSource, log_sources, no_text_reason

#: The first bytes of an archive with members; the list of its members is at its end.
_ZIP_MAGIC = b"PK\x03\x04"
CONFIGURATION_FILE, METADATA_FILE = "configuration.json", "metadata.yaml"
#: The name of ``METADATA_FILE`` in earlier versions.
FORMER_METADATA_FILE = "identity.yaml"
#: Suffixes that say how a log is stored, not which run it is.
_STORAGE_SUFFIXES = re.compile(r"(\.(gz|log|txt|out|err|json|jsonl))+$", re.IGNORECASE)
#: Nobody keeps logs deeper; Python lists no more than some hundred folders in each other.
MAX_DEPTH = 100
_OTHER_ARCHIVE = re.compile(r"\.(?:tar|tgz|txz|tbz2?|7z|rar|tar\.(?:gz|bz2|xz|zst|lz4|z))$", re.IGNORECASE)


@dataclass(frozen=True)
class LogFile:
    """One possible log; ``parts``: its path below the given folder."""

    source: LogSource
    parts: tuple[str, ...]
    bytes: int

    @property
    def relative_path(self) -> str:
        """Its path below the given folder, as in an identity file."""
        return _relative_path(self.parts)

    @property
    def natural_order(self) -> list[tuple[int, str]]:
        """A key that orders 2n8g before 10n8g."""
        parts = re.split(r"(\d+)", self.relative_path)
        return [(int(part), "") if part.isdigit() else (0, part) for part in parts]

    @property
    def name(self) -> str:
        """Its name without folders."""
        return self.parts[-1]


def find_log_files(path: Path) -> list[LogFile]:
    """Return files of a folder or archive by path, without hidden ones.

    A link to a folder is followed, unless the folder is read anyway. Broken links, pipes and sockets are included, so
    that reading them reports an error. Raises LogError for a missing folder or file, a damaged archive, and an
    unreadable folder.
    """
    path = path.resolve()
    if not path.exists():
        raise LogError(f"{path}: no such folder or file")

    def refuse(error: OSError) -> None:
        raise LogError(f"{error.filename}: cannot be listed and may contain logs: {error.strerror}") from error

    files = [path] if path.is_file() else []
    seen = {path}
    for folder, folders, names in os.walk(path, onerror=refuse, followlinks=True) if not files else []:
        if len(Path(folder).relative_to(path).parts) > MAX_DEPTH:
            raise LogError(f"{path}: its folders are more than {MAX_DEPTH} deep; name the folder of the logs")
        files += map(Path(folder).joinpath, names)
        folders[:] = [name for name in folders if _is_new(Path(folder, name), path, seen)]
    log_files: list[LogFile] = []
    for file in files:
        for log_file in _log_files_in(file, path):
            if not any(part.startswith(".") or part == "__MACOSX" for part in log_file.parts[1:]):
                log_files.append(log_file)
    return sorted(log_files, key=attrgetter("natural_order"))


def _is_new(folder: Path, root: Path, seen: set[Path]) -> bool:
    """Note a folder; return whether it is read under this name."""
    target = folder.resolve()
    is_elsewhere = folder.is_symlink() and (target.is_relative_to(root) or root.is_relative_to(target))
    if is_elsewhere or target in seen:
        return False
    seen.add(target)
    return True


def stem(name: str) -> str:
    """Return a name without suffixes of storage."""
    return _STORAGE_SUFFIXES.sub("", name)


def _log_files_in(file: Path, root: Path) -> Iterator[LogFile]:
    """Yield a file, or the members of an archive."""
    names = (root.name, *file.relative_to(root).parts)
    above = tuple(map(path_text, names))
    if file == root and _OTHER_ARCHIVE.search(file.name):
        raise LogError(f"{file}: only zip archives are read; unpack it, and name its folder")
    if file.suffix.lower() != ".zip" or not file.is_file():
        size = file.stat().st_size if file.is_file() else 0
        yield LogFile(LogSource(file, display_name=_relative_path(above)), above, size)
        return
    sizes: dict[str, int] = {}
    if zipfile.is_zipfile(file):
        try:
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    sizes[member.filename] = member.compress_size
        except OPENING_ERRORS as error:
            raise LogError(f"{file}: can't be read as an archive: {error}") from error
    else:
        # A text is a log in spite of its name.
        try:
            with LogSource(file).open() as opened:
                is_damaged = opened.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC
        except DAMAGE:
            is_damaged = True
        if is_damaged or no_text_reason(LogSource(file)):
            raise LogError(f"{file}: can't be read as an archive: it is damaged or incomplete")
    for source in log_sources(file):
        parts = (*above, *(part for part in source.member.split("/") if part))
        source = replace(source, display_name=_relative_path(parts))
        yield LogFile(source, parts, sizes.get(source.member, 0))


def _relative_path(parts: tuple[str, ...]) -> str:
    return "/".join(parts[1:]) or parts[0]
