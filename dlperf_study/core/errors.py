"""The exceptions that a user may see, and the diagnostic: what may be wrong about a number, a run or a table.

The message of an exception names the file, the key, the value and the choices. A diagnostic is always shown, and
changes no number.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class DlperfStudyError(Exception):
    """Base of all errors: reported as one message without traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class StudyFileError(DlperfStudyError):
    """An invalid study or cluster file."""


class MissingPackageError(DlperfStudyError):
    """A missing package of an extra; the message has its command."""


class UnsupportedError(DlperfStudyError):
    """A configuration that can't run here; the plan shows why."""


class RecordError(DlperfStudyError):
    """Evidence that is missing, truncated or contradicts itself."""


class PublishedError(DlperfStudyError):
    """Published numbers that don't exist or are invalid."""


class BaselineError(DlperfStudyError):
    """A ratio whose baseline or reference was not measured."""


class BusyError(DlperfStudyError):
    """Another study is measuring on this machine, which would spoil both."""


class HeldError(BusyError):
    """A lock that another process holds, at ``path``.

    ``reason``: the message without what to do, for those who wait already.
    """

    def __init__(self, reason: str, remedy: str, path: Path) -> None:
        super().__init__(f"{reason}. {remedy}")
        self.reason, self.path = reason, path


class ReportError(DlperfStudyError):
    """A report that could not be built; the previous one is kept."""


class RunError(DlperfStudyError):
    """A run that did not complete; its evidence is written."""


class TableError(DlperfStudyError):
    """A table of results that can't be audited."""


class ImageDatasetError(DlperfStudyError):
    """Labelled images that are missing, damaged or unsuitable."""


class LogError(DlperfStudyError):
    """A log of another program that can't be read."""


class MetadataError(DlperfStudyError):
    """Logs whose configuration and run are unknown or contradictory."""


class Severity(StrEnum):
    """The severity of a diagnostic; a note makes no number doubtful."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Diagnostic:
    """A message about a subject: the study, a configuration, or a run."""

    subject: str
    message: str
    severity: Severity = Severity.WARNING
    configuration_id: str | None = None
    repetition: int | None = None
