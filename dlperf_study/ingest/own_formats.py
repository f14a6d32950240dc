"""The files in which users declare the formats of their own logs: which logs each of them is for."""

from collections.abc import Sequence
from dataclasses import replace

from dlperf_study.errors import IdentityError, StudyFileError
from dlperf_study.ingest.log_files import LogFile
from dlperf_study.logs.documents import is_tracker_file
from dlperf_study.logs.format import Format
from dlperf_study.logs.log_source import DAMAGE
from dlperf_study.logs.mlflow_runs import MlflowRun
from dlperf_study.logs.own_format import FORMAT_FILE, read_own_format
from dlperf_study.study.strict_yaml import MAX_BYTES


def with_own_formats(files: Sequence[LogFile]) -> list[LogFile]:
    """Return the files without those that declare a format, which the logs in their folders, or below, have.

    The nearest one above a log counts. Files of trackers have formats of their own.

    Raises:
        StudyFileError: a file declares no valid format.
        IdentityError: two files declare different formats of one name.

    """
    formats = {file.parts[:-1]: _read(file) for file in files if file.name == FORMAT_FILE}
    _require_one_meaning_each(list(formats.values()))
    logs = [file for file in files if file.name != FORMAT_FILE]
    return [_with_nearest(file, formats) for file in logs] if formats else logs


def _with_nearest(file: LogFile, formats: dict[tuple[str, ...], Format]) -> LogFile:
    folder = file.parts[:-1]
    while folder and folder not in formats:
        folder = folder[:-1]
    if not folder or is_tracker_file(file.name) or isinstance(file.source, MlflowRun):
        return file
    return replace(file, source=replace(file.source, own_format=formats[folder]))


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
