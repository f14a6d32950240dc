"""The files below a folder, or in an archive: every one that may be a log, with the folders it lies in."""

import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dlperf_study.errors import LogError
from dlperf_study.logs.sources import Source, sources_of

CONFIGURATION_FILE, IDENTITY_FILE = "configuration.json", "identity.yaml"
#: Endings that say how a log is kept and not whose it is.
_KEPT = re.compile(r"(\.(gz|log|txt|out|err|json|jsonl))+$", re.IGNORECASE)


@dataclass(frozen=True)
class Found:
    """One file. ``parts``: the names from the folder that was asked for down to the file, an archive as a folder."""

    source: Source
    parts: tuple[str, ...]
    bytes: int

    @property
    def place(self) -> str:
        """Where it lies below the folder that was asked for: how an identity file names it."""
        return _place(self.parts)

    @property
    def name(self) -> str:
        """Its own name, without folders."""
        return self.parts[-1]


def files_of(path: Path) -> list[Found]:
    """Return the files below a folder or in an archive, in order of their places; hidden ones are left out.

    Links that lead nowhere, pipes and sockets are among them, so that somebody says that they can't be read.

    Raises:
        LogError: there is no such folder or file, or a folder below it can't be listed.

    """
    path = path.resolve()
    if not path.exists():
        raise LogError(f"{path}: there is no such folder or file")
    found = [one for file in _files(path) for one in _in_file(file, path)]
    return sorted(
        (one for one in found if not any(map(_is_hidden, one.parts[1:]))), key=lambda one: _ordered(one.place)
    )


def stem(name: str) -> str:
    """Return a name without the endings that say how it is kept."""
    return _KEPT.sub("", name)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for folder, _, names in os.walk(path, onerror=_unlisted):
        yield from (Path(folder, name) for name in names)


def _unlisted(error: OSError) -> None:
    raise LogError(f"{error.filename}: can't be listed, and may hold logs: {error.strerror}") from error


def _in_file(file: Path, root: Path) -> Iterator[Found]:
    above = tuple(map(_readable, (root.name, *file.relative_to(root).parts)))
    if file.suffix.lower() != ".zip" or not file.is_file():
        size = file.stat().st_size if file.is_file() else 0
        yield Found(Source(file, place=_place(above)), above, size)
        return
    sizes = _sizes(file)
    for source in sources_of(file):
        inside = tuple(part for part in source.member.split("/") if part)
        parts = (*above, *inside)
        yield Found(replace(source, place=_place(parts)), parts, sizes.get(source.member, 0))


def _readable(name: str) -> str:
    """Return a name as text; bytes of it that are none in UTF-8 stand as their codes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _place(parts: tuple[str, ...]) -> str:
    return "/".join(parts[1:]) or parts[0]


def _sizes(archive: Path) -> dict[str, int]:
    """Return the compressed size of each member; none of what is no archive, which ``sources_of`` says."""
    if not zipfile.is_zipfile(archive):
        return {}
    with zipfile.ZipFile(archive) as opened:
        return {member.filename: member.compress_size for member in opened.infolist()}


def _is_hidden(part: str) -> bool:
    return part.startswith(".") or part == "__MACOSX"


def _ordered(place: str) -> list[tuple[int, str]]:
    """Return a key that puts 2n8g before 10n8g."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", place)]
