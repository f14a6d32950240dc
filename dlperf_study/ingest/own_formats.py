"""The files in which users declare the formats of their own logs: which logs each of them is for."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dlperf_study.errors import IdentityError, StudyFileError
from dlperf_study.ingest.log_files import LogFile
from dlperf_study.logs.documents import is_tracker_file
from dlperf_study.logs.format import Format
from dlperf_study.logs.log_source import DAMAGE, LogSource
from dlperf_study.logs.mlflow_runs import MlflowRun
from dlperf_study.logs.own_format import FORMAT_FILE, read_own_format
from dlperf_study.study.strict_yaml import MAX_BYTES

#: Names that users give to such a file and that are not read.
_MISNAMED = ("log_format.yml", "log-format.yaml", "log-format.yml", "logformat.yaml", "log_format.json")


def with_own_formats(files: Sequence[LogFile]) -> list[LogFile]:
    """Return the files without those that declare a format, which the logs in their folders, or below, have.

    The nearest one above a log counts. Files of trackers have formats of their own.

    Raises:
        StudyFileError: a file declares no valid format.
        IdentityError: two files declare different formats of one name, or one has a similar name.

    """
    for file in files:
        if file.name != FORMAT_FILE and file.name.lower() in (FORMAT_FILE, *_MISNAMED):
            raise IdentityError(f"{file.relative_path}: is not read; name it {FORMAT_FILE}")
    formats = {file.parts[:-1]: _read(file) for file in files if file.name == FORMAT_FILE}
    _require_one_meaning_each(list(formats.values()))
    logs = [file for file in files if file.name != FORMAT_FILE]
    return [_with_nearest(file, formats) for file in logs] if formats else logs


def _with_nearest(file: LogFile, formats: dict[tuple[str, ...], Format]) -> LogFile:
    folders = [file.parts[:end] for end in range(len(file.parts))]
    nearest = next(filter(formats.__contains__, reversed(folders)), None)
    if nearest is None or is_tracker_file(file.name) or isinstance(file.source, MlflowRun):
        return file
    return replace(file, source=replace(file.source, own_format=formats[nearest]))


def format_file_next_to(path: Path) -> list[LogFile]:
    """Return the file that declares a format next to a single log or an archive, if there is one."""
    file = path.with_name(FORMAT_FILE)
    return [LogFile(LogSource(file), (FORMAT_FILE,), 0)] if path.is_file() and file.is_file() else []


def _read(file: LogFile) -> Format:
    try:
        with file.source.open() as opened:
            data = opened.read(MAX_BYTES + 1)
    except (OSError, *DAMAGE) as error:
        raise StudyFileError(f"{file.relative_path}: can't be read: {error}") from error
    return read_own_format(data, file.relative_path)


def _require_one_meaning_each(formats: Sequence[Format]) -> None:
    """Raise IdentityError if two formats of one name differ: a study could not tell their runs apart."""
    by_name: dict[str, Format] = {}
    for format_ in formats:
        first = by_name.setdefault(format_.name, format_)
        if replace(format_, program=first.program) != first:
            both = f"{first.program} and {format_.program} are both named {format_.name!r} and differ"
            raise IdentityError(f"{both}: give one a different name")
