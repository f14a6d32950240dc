"""Measure how distributed deep-learning training scales, and say how certain the answer is.

The public names are in ``docs/notebooks.md``. Each is imported at its first use, so importing the package is cheap.
"""

from importlib import import_module

# Without ``typing``, which may be a file of the current folder: __main__ removes that from the path of modules.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlperf_study.api.explorer import explore
    from dlperf_study.api.other_results import ingest, published
    from dlperf_study.api.plot import plot_metric
    from dlperf_study.api.studies import studies
    from dlperf_study.api.study_results import open_study
    from dlperf_study.audit.audit import audit_frame
    from dlperf_study.core.errors import DlperfStudyError
    from dlperf_study.record import Recorder

__all__ = [
    "DlperfStudyError",
    "Recorder",
    "__version__",
    "audit_frame",
    "explore",
    "ingest",
    "open_study",
    "plot_metric",
    "published",
    "studies",
]

__version__ = "0.1.0"

#: The module of each public name.
_MODULES = {
    "DlperfStudyError": "core.errors",
    "Recorder": "record",
    "audit_frame": "audit.audit",
    "explore": "api.explorer",
    "ingest": "api.other_results",
    "open_study": "api.study_results",
    "plot_metric": "api.plot",
    "published": "api.other_results",
    "studies": "api.studies",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
