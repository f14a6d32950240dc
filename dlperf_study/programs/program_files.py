"""The files of a user's program: which belong to it, what they are, and a copy of them from which every run starts.

A run starts in a copy of its own, which ends with it: what an earlier run wrote is not there, and an edit during a
study does not reach its later runs.
"""

import hashlib
import io
import os
import re
import stat
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.paths import StudyPaths, outputs_folder
from dlperf_study.core.writing import replacing, write_atomically
from dlperf_study.study.job import PROGRAM_FOLDER
from dlperf_study.study.program import Program, find_placeholders

#: Larger files are data: they stay where they are.
MOST_BYTES, MOST_FILES = 50 << 20, 20_000
#: A folder with more files is none of a program.
MAX_LISTED = 5 * MOST_FILES
#: The names of what is kept in the folder of a program.
DECLARATION, ARCHIVE = "program.json", "files.tar.gz"
#: What programs write, and no part of them, in a folder that git does not know.
NOT_PROGRAM = {"__pycache__", ".git", ".venv", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", "node_modules"}
#: What people keep keys in. Where git tracks such a file, everybody who has the repository has it.
_KEPT_SECRETS = re.compile(
    r"\.env(\.(?!example$|sample$|template$).+)?|\.netrc|\.pypirc|\.git-credentials|id_(rsa|dsa|ecdsa|ed25519)|.+\.pem|.+\.key"
)
GIT_SECONDS = 60
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def identified(program: Program, source: str) -> Program:
    """Return a program with its digest, and with the commit that its folder has checked out.

    ``source``: the study file, for messages. Raises StudyFileError where the folder can't be read or is too large.
    """
    folder = Path(program.folder)
    if not folder.is_dir():
        raise StudyFileError(f"{source}: program.folder is {program.folder!r}, which is not a folder")
    digest = hashlib.sha256()
    for path in program_files(program, source):
        mode = stat.S_IMODE(path.lstat().st_mode) & 0o111
        digest.update(f"{path.relative_to(folder).as_posix()}\0{mode:o}\0".encode(errors="surrogateescape"))
        digest.update(hashlib.sha256(_content(path)).digest())
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no") or ""
    return replace(
        program,
        digest=program.digest_with(digest.hexdigest()),
        commit=(_git(folder, "rev-parse", "HEAD") or "").strip(),
        dirty=bool(changed.strip()),
        remote=_CREDENTIALS.sub("", (_git(folder, "remote", "get-url", "origin") or "").strip()),
    )


def program_files(program: Program, source: str) -> list[Path]:
    """Return the files of a program in order: all but those that git ignores, and but those of studies and outputs.

    A file in which people keep keys, as ``.env``, is one of them only if git tracks it.
    Raises StudyFileError where they are too many or too large to be copied for every run.
    """
    folder = Path(program.folder)
    if folder in (Path("/"), Path("~").expanduser()):
        raise StudyFileError(f"{source}: program.folder is {folder}: move your script into a folder of its own")
    paths = _listed_by_git(folder) if _git(folder, "rev-parse", "--git-dir") else _walked(folder)
    listed = sorted(islice(paths, MAX_LISTED + 1))
    if len(listed) > MAX_LISTED:
        raise StudyFileError(
            f"{source}: program.folder {folder} has more than {MAX_LISTED:,} files: name the folder of your script"
        )
    kept_secrets = _untracked_secrets(folder, listed)
    files = [path for path in listed if path not in kept_secrets and not _is_of_studies(path, program)]
    if not files:
        _require_not_ignored(folder, listed, program, source)
    size = sum(path.lstat().st_size for path in files)
    if size > MOST_BYTES or len(files) > MOST_FILES:
        largest = sorted(files, key=lambda path: -path.lstat().st_size)[:3]
        names = ", ".join(f"{path.relative_to(folder)} ({path.lstat().st_size >> 20} MiB)" for path in largest)
        raise StudyFileError(
            f"{source}: program.folder has {len(files)} files of {size >> 20} MiB, and at most {MOST_FILES} of "
            f"{MOST_BYTES >> 20} MiB are copied for every run; let .gitignore leave out what is data, and name it in "
            f"program.data; the largest are {names}"
        )
    return files


def _require_not_ignored(folder: Path, listed: Sequence[Path], program: Program, source: str) -> None:
    for path in _walked(folder):
        if not (path in listed or _is_of_studies(path, program) or _KEPT_SECRETS.fullmatch(path.name)):
            raise StudyFileError(
                f"{source}: git ignores all files of program.folder {folder}, as {path.relative_to(folder)}, and what "
                "it ignores is not copied for the runs; let .gitignore keep them, or `git add --force` them"
            )


def _untracked_secrets(folder: Path, paths: Sequence[Path]) -> set[Path]:
    suspects = {path for path in paths if _KEPT_SECRETS.fullmatch(path.name)}
    if not suspects:
        return suspects
    tracked = _git(folder, "ls-files", "-z") or ""
    return suspects - {folder / name for name in tracked.split("\0")}


def _is_of_studies(path: Path, program: Program) -> bool:
    """Return whether a file is one of this package's outputs, or of the folder in which the study file is.

    Where that folder is the program's own, of the study files themselves nobody knows which they are: the YAML files.
    """
    studies = Path(program.study_folder)
    if path.is_relative_to(outputs_folder()):
        return True
    if studies == Path(program.folder):
        return path.parent == studies and path.suffix in (".yaml", ".yml")
    return bool(program.study_folder) and studies.is_relative_to(program.folder) and path.is_relative_to(studies)


def keep(program: Program, paths: StudyPaths) -> Path:
    """Keep a program's files and its declaration in the folder of a study; return the archive.

    Raises StudyFileError where the files have changed since the program was identified.
    """
    kept, source = paths.program(program.digest), "program"
    if (kept / DECLARATION).exists():
        return kept / ARCHIVE
    kept.mkdir(parents=True, exist_ok=True)
    with replacing(kept / ARCHIVE) as unfinished, unfinished.open("wb") as file:
        _pack(program, source, file)
    if identified(program, source).digest != program.digest:
        newest = max(
            program_files(program, source), key=lambda path: path.lstat().st_mtime, default=Path(program.folder)
        )
        raise StudyFileError(
            f"{program.folder}: its files changed while they were copied, {newest.relative_to(program.folder)} last; "
            "call the same command again; a log of this command, and what else is no part of the program, must be in "
            "a different folder, or ignored by git"
        )
    write_atomically(kept / DECLARATION, program.as_json())
    return kept / ARCHIVE


def file_not_copied(program: Program, reason: str) -> str:
    """Return that a run had not a file which ``reason`` names, and why it was not copied; empty if it names none."""
    for quoted in re.findall(r"'([^']+)'", reason):
        name = quoted.rpartition(f"/{PROGRAM_FOLDER}/")[2]
        path = Path(program.folder, name)
        if Path(name).is_absolute() or not path.exists():
            continue
        # A folder that a message names is copied if some file in it is.
        if not any(file.is_relative_to(path) for file in program_files(program, "program")):
            why = "it may hold keys" if _KEPT_SECRETS.fullmatch(path.name) else "git ignores it"
            return f"{name} is in the program's folder, but {why}: name it in program.data"
    return ""


def module_not_there(program: Program, python: str, reason: str) -> str:
    """Return which Python ran a program that had not a module which ``reason`` names; empty if it names none.

    ``python``: what the placeholder {python} of its command was.
    """
    module = re.search(r"No module named '([^']+)'", reason)
    if not module or "python" not in find_placeholders(program.command):
        return ""
    return (
        f"{{python}} was {python}: where that is not the Python that has {module[1]}, write the path of that in "
        "program.command, or in the cluster file, as python: {program: PATH}"
    )


def _pack(program: Program, source: str, file: IO[bytes]) -> None:
    folder = Path(program.folder)
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for path in program_files(program, source):
            archive.add(path, arcname=path.relative_to(folder).as_posix(), recursive=False)


def require_packed_size(program: Program, source: str, most_bytes: int, remedy: str) -> None:
    """Raise StudyFileError where the packed files of a program are larger than can be brought to its nodes."""
    packed = io.BytesIO()
    _pack(program, source, packed)
    size = packed.tell()
    if size > most_bytes:
        raise StudyFileError(
            f"{source}: the files of program.folder have {size >> 10} KiB when packed, and at most {most_bytes >> 10} "
            f"KiB can be brought to the nodes of this cluster; {remedy}"
        )


def kept_program(paths: StudyPaths, digest: str) -> tuple[Program, Path]:
    """Return the program of a digest and the archive of its files, as a study keeps them.

    Raises StudyFileError where they are not there: the study was not started since.
    """
    kept = paths.program(digest)
    if not (kept / DECLARATION).exists():
        raise StudyFileError(f"{kept}: the program's files are not there; `dlperf-study run` of the study copies them")
    return Program.from_json((kept / DECLARATION).read_text(encoding="utf-8")), kept / ARCHIVE


def _listed_by_git(folder: Path) -> Iterator[Path]:
    """Yield the files that git tracks in a folder, and those that it does not ignore."""
    listed = _git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard") or ""
    for name in filter(None, set(listed.split("\0"))):
        path = folder / name
        # Deleted files, and submodules, whose files are not listed.
        if path.is_symlink() or path.is_file():
            yield path
        elif path.is_dir():
            yield from _walked(path)


def _walked(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        for name in [*folders]:
            folder_below = Path(parent, name)
            if name in NOT_PROGRAM or folder_below.is_symlink() or folder_below == outputs_folder():
                folders.remove(name)
        for name in names:
            path = Path(parent, name)
            if path.is_symlink() or path.is_file():
                yield path


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return os.readlink(path).encode(errors="surrogateescape")
    return path.read_bytes()


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints of a folder; None where it is in no repository, or there is no git."""
    command: Sequence[str] = ("git", "-C", str(folder), *arguments)
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", timeout=GIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    return done.stdout
