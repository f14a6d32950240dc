"""The printed standard deviation of runs, from the runs."""

from collections.abc import Iterator
from math import sqrt
from statistics import pstdev, stdev

from dlperf_study.audit.audit_check import AuditDiagnostic, Check, texts_phrase
from dlperf_study.audit.result_cell import STANDARD_DEVIATION, ResultCell, values_of
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

_EXPLANATIONS = ("it may be of other runs, or of more than are listed", "it may be a standard error, or in per cent")


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every standard deviation of at least two listed runs."""
    for deviation in results.of(STANDARD_DEVIATION):
        runs = results.runs.get(str(deviation.get("runs_of")), [])
        if len(runs) > 1:
            yield _compare(deviation, runs)


def _compare(deviation: ResultCell, runs: list[ResultCell]) -> AuditDiagnostic | None:
    """Compare a deviation with that of a sample and that of all runs there are: people print either."""
    values = values_of(runs)
    # Rounding each run by half a unit moves their deviation by at most this.
    rounding = max(run.printed.resolution for run in runs) / 2 * sqrt(len(runs) / (len(runs) - 1))
    tolerance = rounding + deviation.printed.resolution
    expected = stdev(values), pstdev(values)
    if any(abs(deviation.value - computed) <= tolerance for computed in expected):
        return None
    computation = f"the standard deviation of {texts_phrase(runs)} is {expected[0]:.4g}, printed {deviation.text}"
    return AuditDiagnostic(Severity.ERROR, (deviation, *runs), computation, _EXPLANATIONS)


CHECK = Check("Is a standard deviation that of its runs?", "standard deviations with runs", examine)
