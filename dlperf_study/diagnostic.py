"""The diagnostic: what may be wrong about a number, a run or a table. It is always shown, and changes no number."""

from dataclasses import dataclass
from enum import StrEnum


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
