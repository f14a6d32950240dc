"""The exceptions a user may meet. Each message names the file, the key, the value and the choices."""


class DlperfStudyError(Exception):
    """Stand for any mistake or event the command line reports in one message, without a traceback."""


class StudyFileError(DlperfStudyError):
    """A study or cluster file that can't be read as what it claims to be."""


class UnsupportedError(DlperfStudyError):
    """A configuration that can't run here; the message is the reason shown in the plan."""


class EvidenceError(DlperfStudyError):
    """Evidence that is missing, truncated or contradicts itself."""


class PublishedError(DlperfStudyError):
    """Published figures that don't exist or can't be read as what they claim to be."""


class BaselineError(DlperfStudyError):
    """A ratio asked for without the measured baseline or reference it is declared against."""


class BusyError(DlperfStudyError):
    """Another study is measuring on this machine, so nothing measured now could be trusted."""


class ReportError(DlperfStudyError):
    """A report that could not be built; the last good one is left as it was."""


class RunError(DlperfStudyError):
    """A run that did not complete; its evidence is already on disk when this is raised."""


class TableError(DlperfStudyError):
    """A table of results that can't be audited as what it claims to be."""


class LogError(DlperfStudyError):
    """A log of another program that can't be read as what it should be."""


class IdentityError(DlperfStudyError):
    """Logs of which it is not known, or contradicts itself, what they are the runs of."""
