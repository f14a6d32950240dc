"""The exceptions that a user may see. Each message names the file, the key, the value and the choices."""


class DlperfStudyError(Exception):
    """Base of all: the command line reports it in one message, without a traceback."""


class StudyFileError(DlperfStudyError):
    """An invalid study or cluster file."""


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
    """A lock that another process holds; it will be free when that process ends."""


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


class IdentityError(DlperfStudyError):
    """Logs whose configuration and run are unknown or contradictory."""
