"""The folder of a run: created when the run starts, cleaned when it ends, packed where nodes don't share files."""

import base64
import io
import re
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from dlperf_study.guard.submission import Submission
from dlperf_study.paths import RunPaths


def begin(submission: Submission) -> None:
    """Create an empty folder for a run that starts now; an interrupted attempt is moved and kept."""
    run = submission.paths
    if run.folder.exists() and any(run.folder.iterdir()):
        interrupted = run.home.interrupted()
        interrupted.parent.mkdir(parents=True, exist_ok=True)
        run.folder.rename(interrupted)
    run.folder.mkdir(parents=True, exist_ok=True)
    write_files(run.folder, submission.files)
    run.submission_file.write_text(submission.as_json())


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by name into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)


def write_waiting(submission: Submission, message: str) -> None:
    """Write, for the driver of the study, what the run waits for before it starts."""
    waiting = submission.paths.waiting
    waiting.parent.mkdir(mode=0o700, exist_ok=True)
    with open(waiting, "a", encoding="utf-8") as file:
        file.write(f"{message}\n")


def keep_rank_output(folder: Path, pattern: str) -> None:
    """Keep what the ranks printed; remove the rest of scratch: launchers write the whole environment there."""
    scratch = RunPaths(folder).scratch
    for file in sorted(scratch.rglob("*") if pattern else ()):
        match = re.fullmatch(pattern, file.relative_to(scratch).as_posix())
        if match and file.stat().st_size:
            # node-0-rank-1, or rank-3-stderr
            parts = (f"rank-{part}" if name == "rank" else part for name, part in match.groupdict().items())
            file.replace(folder / f"{'-'.join(parts)}.log")
    shutil.rmtree(scratch, ignore_errors=True)


def pack(folder: Path) -> str:
    """Return the files of a folder as a compressed archive in base64, for a line of JSON."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for file in sorted(folder.iterdir()):
            tar.add(file, arcname=file.name)
    return base64.b64encode(archive.getvalue()).decode()


def unpack(archive: str, folder: Path) -> None:
    """Write the files of a packed folder into a folder; files that already exist there are not changed."""
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(archive)), mode="r:gz") as tar:
        new = [member for member in tar.getmembers() if not (folder / member.name).exists()]
        tar.extractall(folder, new, filter="data")
