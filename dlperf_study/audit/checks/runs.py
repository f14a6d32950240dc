"""Repetitions: summaries, deviations and intervals from the lists of their runs."""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from math import sqrt
from statistics import geometric_mean, mean, median, pstdev, stdev

from dlperf_study.audit import quantities
from dlperf_study.audit.checks import Agreeing, AuditDiagnostic, check, texts_phrase
from dlperf_study.audit.result_cell import ResultCell, list_values
from dlperf_study.audit.results import Results
from dlperf_study.core.errors import Severity
from dlperf_study.core.wording import counted

Estimator = Callable[[list[Fraction]], Fraction | float]
ESTIMATORS: dict[str, Estimator] = {"median": median, "mean": mean, quantities.GEOMETRIC_MEAN: geometric_mean}
_OTHER_LIST = ("the list and the table may come from different runs", "a run may be missing from the list")
_OTHER_DEVIATION = (
    "it may come from other runs, or from more runs than listed",
    "it may be a standard error, or a percentage",
)
_OTHER_ESTIMATOR = ("number and interval may come from different runs or estimators",)


@check("Does every summary follow from its list of runs?", "medians, and counts of runs")
def run_lists(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare each summary with its listed runs, and their number."""
    for summary in results.select(*quantities.THROUGHPUTS, quantities.UNNAMED):
        runs = results.list_runs(summary)
        if not runs:
            continue
        yield _compare_value(summary, runs) or (summary, *runs)
        counts, declared = Counter(map(_run_number, runs)), summary.get("runs")
        repeated = sorted(run_number for run_number, count in counts.items() if count > 1)
        if repeated:
            computation = f"run {', '.join(repeated)} is in the list more than once"
        elif declared and declared != len(runs):
            computation = f"{counted(int(declared), 'run')} stated, and {len(runs)} listed"
        else:
            yield summary, *runs
            continue
        yield AuditDiagnostic(Severity.WARNING, (summary, *runs), computation, _OTHER_LIST)


def _compare_value(summary: ResultCell, runs: list[ResultCell]) -> AuditDiagnostic | None:
    name = "median"
    if summary.estimator in ESTIMATORS:
        name = summary.estimator
    estimator = ESTIMATORS[name]
    expected = Fraction(estimator(_throughputs(runs)))
    if summary.printed.roundings_from(expected):
        return None
    # A mean, or a number that was never printed, may be that of its runs before their last digits were rounded.
    if summary.printed.computed or estimator is mean:
        low = Fraction(estimator([run.printed.bounds()[0] for run in runs]))
        high = Fraction(estimator([run.printed.bounds()[1] for run in runs]))
        if summary.printed.overlaps(low, high):
            return None
    computation = f"the {name} of {texts_phrase(runs)} is {float(expected):.7g}, printed {summary.text}"
    alternatives = "; ".join(_matching_alternatives(summary, runs))
    if alternatives:
        computation += f". That is {alternatives}"
    return AuditDiagnostic(Severity.ERROR, (summary, *runs), computation, _OTHER_LIST)


def _matching_alternatives(summary: ResultCell, runs: list[ResultCell]) -> Iterator[str]:
    """Yield other estimators and runs that would print like the summary."""
    throughputs = _throughputs(runs)
    for name in ("median", "mean"):
        if summary.printed.roundings_from(Fraction(ESTIMATORS[name](throughputs))):
            yield f"their {name}"
    for run in runs:
        if run.printed.exact == summary.printed.exact:
            yield f"run {_run_number(run)}"
    if len(runs) > 2:
        # The combinations leave out the last run first.
        for remaining, run in zip(combinations(throughputs, len(throughputs) - 1), reversed(runs), strict=True):
            if summary.printed.roundings_from(Fraction(median(remaining))):
                yield f"the median without run {_run_number(run)} ({run.text})"


def _throughputs(runs: list[ResultCell]) -> list[Fraction]:
    return [run.printed.exact for run in runs]


def _run_number(run: ResultCell) -> str:
    """Return the number of a run; its key if unnumbered."""
    repetition = run.get("repetition")
    if repetition is None:
        return run.key
    return f"{repetition:.0f}"


@check("Does a standard deviation follow from its runs?", "standard deviations with runs")
def deviations(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare printed standard deviations with the listed runs."""
    for deviation in results.select(quantities.STANDARD_DEVIATION):
        runs = results.runs.get(str(deviation.get("runs_of")), [])
        if len(runs) < 2:
            continue
        values = list_values(runs)
        # Rounding each run by half a unit moves their deviation by at most this.
        rounding = max(run.printed.resolution for run in runs) / 2 * sqrt(len(runs) / (len(runs) - 1))
        tolerance = rounding + deviation.printed.resolution
        of_sample = stdev(values)
        if min(abs(deviation.value - of_sample), abs(deviation.value - pstdev(values))) <= tolerance:
            yield deviation, *runs
        else:
            computation = f"the standard deviation of {texts_phrase(runs)} is {of_sample:.4g}, printed {deviation.text}"
            yield AuditDiagnostic(Severity.ERROR, (deviation, *runs), computation, _OTHER_DEVIATION)


@check("Is every number in its interval?", "numbers with an interval", compares=False)
def interval(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Compare each number with the bounds of its interval."""
    for cell in results.cells:
        low, high = cell.get("low"), cell.get("high")
        if low is None or high is None:
            continue
        bounds = f"[{low:.7g}, {high:.7g}]"
        if low > high:
            computation = f"the interval of {cell.text} is {bounds}: its lower bound is above its upper bound"
            yield AuditDiagnostic(Severity.ERROR, (cell,), computation)
        elif cell.printed.overlaps(Fraction(low), Fraction(high)):
            yield None
        else:
            computation = f"{cell.text} is outside its own interval {bounds}"
            yield AuditDiagnostic(Severity.ERROR, (cell,), computation, _OTHER_ESTIMATOR)
