"""Every ratio, from its own numbers: rate / baseline rate, and for an efficiency that × baseline devices / devices."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from operator import truediv
from statistics import mean

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import EFFICIENCY, RELATIVE, SPEEDUP, THROUGHPUT, ResultCell, quotient
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

#: So many other quotients are named at most that would print like a ratio that does not fit.
MOST_FITTING = 3
#: No efficiency is as high as this: what is, is in per cent.
MOST_EFFICIENT = 2
_CUT_OFF = "both rates may have been cut off and not rounded when they were printed"
_OTHER_RATES = "the ratio may have been made from rates that are not in the table: means, other runs, older tables"


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every ratio."""
    for ratio in results.of(SPEEDUP, EFFICIENCY, RELATIVE):
        rate, base = results.beside(ratio, THROUGHPUT), results.baseline_of(ratio)
        if base is None or not base.printed.positive:
            yield _without_baseline(results, ratio, base)
        elif rate is None:
            yield _without_rate(ratio)
        else:
            yield _examined(results, ratio, rate, base)


def recomputed(ratio: ResultCell, rate: ResultCell, base: ResultCell) -> Fraction:
    """Return what a ratio should be, from its two rates exactly as printed."""
    return rate.printed.exact / base.printed.exact * _share(ratio, base)


def _examined(results: Results, ratio: ResultCell, rate: ResultCell, base: ResultCell) -> AuditDiagnostic | None:
    exact = recomputed(ratio, rate, base)
    fits = ratio.printed.roundings_from(exact)
    if fits:
        return _fewer_digits(results, ratio, rate, base, fits)
    if _within(ratio, rate, base, truncated=False):
        return None
    said = f"{_formula(ratio, rate, base)} = {float(exact):.5g}, printed {ratio.text}"
    if _within(ratio, rate, base, truncated=True):
        return AuditDiagnostic(
            Severity.WARNING, (ratio, rate, base), f"{said}: it fits no rounding", (_CUT_OFF, _OTHER_RATES)
        )
    others = "; ".join(islice(_fitting(results, ratio, rate, base), MOST_FITTING))
    ends = f". It would fit {others}" if others else _per_cent(ratio)
    return AuditDiagnostic(Severity.ERROR, (ratio, rate, base), f"{said}: it fits no rounding{ends}", (_OTHER_RATES,))


def _without_baseline(results: Results, ratio: ResultCell, base: ResultCell | None) -> AuditDiagnostic:
    if base is not None:
        return AuditDiagnostic(
            Severity.ERROR, (ratio, base), f"{ratio.text} is relative to {base.text}, and nothing can be"
        )
    if ratio.baseline:
        said = f"{ratio.text} is relative to {ratio.baseline}, which has no value here"
        return AuditDiagnostic(Severity.ERROR, (ratio,), said)
    said = f"{ratio.text} is a ratio, but the table does not say to which rate"
    said = f"{said}{_parted(results, ratio)}{_per_cent(ratio)}"
    return AuditDiagnostic(Severity.WARNING, (ratio,), said, ("the source may say it in words",))


def _parted(results: Results, ratio: ResultCell) -> str:
    """Return why no ratio of 1 is on the curve of a ratio: also remarks part rows."""
    names = results.parting(ratio)
    return (
        f": no row of the same {' and '.join(names)} has a ratio of 1. Rows of a curve differ in devices alone"
        if names
        else ""
    )


def _without_rate(ratio: ResultCell) -> AuditDiagnostic:
    said = f"{ratio.text} can't be recomputed, as no rate, or more than one, stands beside it"
    return AuditDiagnostic(Severity.NOTE, (ratio,), said, ("the source may print the rate elsewhere",))


def _per_cent(ratio: ResultCell) -> str:
    """Return the suspicion that an efficiency is in per cent without saying so."""
    plain = ratio.metric == EFFICIENCY and ratio.value > MOST_EFFICIENT
    return f". It looks like per cent: an efficiency of 1 is linear, and {ratio.text}% has its sign" if plain else ""


def _fewer_digits(
    results: Results, ratio: ResultCell, rate: ResultCell, base: ResultCell, fits: tuple[str, ...]
) -> AuditDiagnostic | None:
    """Find a ratio that fits only with fewer digits than its neighbours have; 10.20 may well be printed as 10.2."""
    exact = recomputed(ratio, rate, base)
    if ratio.printed.computed or ratio.printed.roundings_from(exact, finest_step(results, ratio)):
        return None
    reckoned = f"{_formula(ratio, rate, base)} = {float(exact):.5g}, printed {ratio.text}"
    said = f"{reckoned}: with as many digits as its neighbours have it fits no rounding, with its own it is {fits[0]}"
    return AuditDiagnostic(Severity.NOTE, (ratio, rate, base), said, ("it may have been typed with fewer digits",))


def finest_step(results: Results, ratio: ResultCell) -> Fraction:
    """Return what the last digit is worth in the ratios of a table that have most digits."""
    return min(other.printed.step for other in results.of(ratio.metric) if other.table == ratio.table)


def _within(ratio: ResultCell, rate: ResultCell, base: ResultCell, truncated: bool) -> bool:
    """Say whether rates that print like these have a quotient that prints like the ratio."""
    low, high = quotient(rate.printed, base.printed, truncated)
    return ratio.printed.meets(low * _share(ratio, base), high * _share(ratio, base))


def _share(ratio: ResultCell, base: ResultCell) -> Fraction:
    if ratio.metric != EFFICIENCY:
        return Fraction(1)
    return Fraction(base.world_size or 1, ratio.world_size or 1)


def _formula(ratio: ResultCell, rate: ResultCell, base: ResultCell) -> str:
    devices = f" × {base.world_size} / {ratio.world_size}" if ratio.metric == EFFICIENCY else ""
    return f"{rate.text} / {base.text}{devices}"


def _fitting(results: Results, ratio: ResultCell, rate: ResultCell, base: ResultCell) -> Iterator[str]:
    """Yield the quotients with another baseline, another rate or means of runs that would print like the ratio."""
    share = _share(ratio, base)
    for what, rate_like, base_like in _candidates(results, rate, base):
        if ratio.printed.roundings_from(rate_like / base_like * share):
            yield what


def _candidates(results: Results, rate: ResultCell, base: ResultCell) -> Iterator[tuple[str, Fraction, Fraction]]:
    own, other = rate.printed.exact, base.printed.exact
    known = [cell for cell in results.of(THROUGHPUT) if cell.get("source") == rate.get("source")]
    rates = [cell for cell in known if cell.printed.positive]
    for cell in rates:
        if cell.world_size == base.world_size and cell is not base:
            yield f"{rate.text} / {cell.text} ({cell.key})", own, cell.printed.exact
        if cell.table == rate.table and cell is not rate:
            yield f"{cell.text} ({cell.key}) / {base.text}", cell.printed.exact, other
    runs, others = ([run.value for run in results.runs.get(cell.key, ())] for cell in (rate, base))
    if runs and len(runs) == len(others) and min(others) > 0:
        yield "the mean of the ratios of the runs", Fraction(mean(map(truediv, runs, others))), Fraction(1)
    means = [_mean(results, cell) for cell in (rate, base)]
    if min(means) > 0:
        yield "the means of the runs", Fraction(means[0]), Fraction(means[1])


def _mean(results: Results, cell: ResultCell) -> float:
    return mean([run.value for run in results.runs.get(cell.key, ())] or [0.0])


CHECK = Check("Does every printed ratio follow from its own numbers?", "ratios", examine)
