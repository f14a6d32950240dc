"""How a run can end."""

from enum import StrEnum


class Outcome(StrEnum):
    """The words ``run.json`` uses for the end of a run."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    KILLED = "killed"
    OUT_OF_MEMORY = "out_of_memory"
    UNSUPPORTED = "unsupported"
