"""The published results as the checks see them."""

from collections.abc import Iterable

from dlperf_study.analysis.audit.frames import results_of_frame
from dlperf_study.analysis.audit.results import Results
from dlperf_study.published import load


def results_of_sources(names: Iterable[str] | None = None) -> Results:
    """Return the numbers of some published sources, or of all; raises PublishedError for one that is not there."""
    return results_of_frame(load(names))
