"""One warning about a number: always shown, never dropped."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a diagnostic or a finding weighs; a note, only of an audit, says what is worth knowing."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Diagnostic:
    """What was seen, about which run; no ``identity`` means the whole study, no ``repetition`` all runs."""

    subject: str
    message: str
    severity: Severity = Severity.WARNING
    identity: str | None = None
    repetition: int | None = None
