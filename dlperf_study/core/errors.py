"""The exceptions that a user may see, and the diagnostic: what may be wrong about a number, a run or a table.

The message of an exception names the file, the key, the value and the choices. A diagnostic is always shown, and
changes no number.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class DlperfStudyError(Exception):
    """Base of all: the command line reports it in one message, without a traceback, and so does a notebook."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows of it."""
        return [f"{type(self).__name__}: {self}"]


class StudyFileError(DlperfStudyError):
    """An invalid study or cluster file."""


class MissingPackageError(DlperfStudyError):
    """A package of an extra that is not installed; the message has the command that installs it."""


class UnsupportedError(DlperfStudyError):
    """A configuration that can't run here; the message is the reason shown in the plan."""


class EvidenceError(DlperfStudyError):
    """Evidence that is missing, truncated or contradicts itself."""


class PublishedError(DlperfStudyError):
    """Published numbers that don't exist or are invalid."""


class BaselineError(DlperfStudyError):
    """A ratio whose baseline or reference was not measured."""


class BusyError(DlperfStudyError):
    """Another study is measuring on this machine, which would spoil both."""


class HeldError(BusyError):
    """A lock that another process holds, at ``path``; it will be free when that process ends.

    ``reason``: the message without what to do, for those who wait already.
    """

    def __init__(self, reason: str, remedy: str, path: Path) -> None:
        super().__init__(f"{reason}. {remedy}")
        self.reason, self.path = reason, path


class ReportError(DlperfStudyError):
    """A report that could not be built; the previous one is kept."""


class RunError(DlperfStudyError):
    """A run that did not complete; its evidence is already on disk when this is raised."""


class TableError(DlperfStudyError):
    """A table of results that can't be audited."""


class ImageSetError(DlperfStudyError):
    """Labelled images on disk that are missing, damaged or not what a configuration needs."""


class LogError(DlperfStudyError):
    """A log of another program that can't be read."""


class MetadataError(DlperfStudyError):
    """Logs whose configuration and run are unknown or contradictory."""


class Severity(StrEnum):
    """How certain it is that something is wrong; a note is worth knowing and makes no number doubtful."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Diagnostic:
    """A message about a subject; without ``identity`` about the whole study, without ``repetition`` about all runs."""

    subject: str
    message: str
    severity: Severity = Severity.WARNING
    identity: str | None = None
    repetition: int | None = None
