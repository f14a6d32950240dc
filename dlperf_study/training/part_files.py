"""The user's parts as files of a run: packed once, and unpacked on every node, where its processes find them."""

import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.part_search import PARTS_VARIABLE, parts_folder
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.writing import replacing
from dlperf_study.study.job import PROGRAM_FOLDER, Job

#: Larger files are data.
MOST_BYTES = 50 << 20


def add_parts(job: Job, paths: StudyPaths) -> Job:
    """Return a job whose nodes get the user's parts, of which its study keeps a copy by their digest.

    Raises StudyFileError where they are too large.
    """
    contents = {name: file.read_bytes() for name, file in sorted(_files())}
    if (size := sum(map(len, contents.values()))) > MOST_BYTES:
        raise StudyFileError(
            f"{parts_folder()}: {size >> 20} MiB of files, and at most {MOST_BYTES >> 20} are copied for every run"
        )
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\0".encode())
    archive = paths.parts(digest.hexdigest())
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with replacing(archive) as unfinished, tarfile.open(unfinished, "w:gz") as tar:
            for name, content in contents.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    variables = {PARTS_VARIABLE: f"{{run}}/scratch/{PROGRAM_FOLDER}"}
    return replace(job.add_environment(variables), archive=str(archive))


def _files() -> Iterator[tuple[str, Path]]:
    """Yield the name in the archive and the path of each file of parts."""
    folder = parts_folder()
    if folder is None:
        return
    for file in folder.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file.relative_to(folder).as_posix(), file
