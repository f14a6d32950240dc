"""Tables beside their lists of runs: a printed number is their median, or their mean where the source says so."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from statistics import mean, median

from dlperf_study.audit.audit_check import AuditDiagnostic, Check, texts
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity
from dlperf_study.wording import counted

ESTIMATORS = {"median": median, "mean": mean}
_OTHER_RUNS = ("the list may be of another series of runs than the table", "a run may be missing from the list")


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every summary with a list of its runs."""
    for summary in results.of(THROUGHPUT):
        runs = results.runs_of(summary)
        if runs:
            yield _summary(summary, runs)
            yield _count(summary, runs)


def _summary(summary: ResultCell, runs: list[ResultCell]) -> AuditDiagnostic | None:
    name = summary.get("estimator") if summary.get("estimator") in ESTIMATORS else "median"
    exact = [run.printed.exact for run in runs]
    expected = Fraction(ESTIMATORS[name](exact))
    if summary.printed.roundings_from(expected):
        return None
    said = f"the {name} of {texts(runs)} is {float(expected):.7g}, printed {summary.text}"
    others = "; ".join(_fitting(summary, runs))
    ends = f". That is {others}" if others else ""
    return AuditDiagnostic(Severity.ERROR, (summary, *runs), f"{said}{ends}", _OTHER_RUNS)


def _fitting(summary: ResultCell, runs: list[ResultCell]) -> Iterator[str]:
    """Yield what of the runs would print like the summary: the other estimator, one run, or a median without one."""
    exact = {run: run.printed.exact for run in runs}
    for name, estimator in ESTIMATORS.items():
        if summary.printed.roundings_from(Fraction(estimator(exact.values()))):
            yield f"their {name}"
    for run in runs:
        if run.printed.exact == summary.printed.exact:
            yield f"run {_number(run)}"
    for kept in combinations(runs, len(runs) - 1) if len(runs) > 2 else ():
        if summary.printed.roundings_from(Fraction(median(exact[run] for run in kept))):
            [left] = set(runs) - set(kept)
            yield f"the median without run {_number(left)} ({left.text})"


def _count(summary: ResultCell, runs: list[ResultCell]) -> AuditDiagnostic | None:
    stated, numbers = summary.get("runs"), [_number(run) for run in runs]
    twice = ", ".join(sorted({number for number in numbers if numbers.count(number) > 1}))
    if twice:
        return AuditDiagnostic(
            Severity.WARNING, (summary, *runs), f"run {twice} is in the list more than once", _OTHER_RUNS
        )
    if not stated or stated == len(runs):
        return None
    said = f"{counted(int(stated), 'run')} stated, and {len(runs)} listed"
    return AuditDiagnostic(Severity.WARNING, (summary, *runs), said, _OTHER_RUNS)


def _number(run: ResultCell) -> str:
    """Return the number of a run, or where it stands if it has none."""
    number = run.get("repetition")
    return run.key if number is None else f"{number:.0f}"


CHECK = Check("Does every table follow from its list of runs?", "medians, and counts of runs", examine)
