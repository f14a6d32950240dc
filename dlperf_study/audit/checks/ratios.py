"""Ratios recomputed from their throughputs, their rounding, and efficiency against speedup."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from operator import truediv
from statistics import mean

from dlperf_study.audit import quantities
from dlperf_study.audit.checks import Agreeing, AuditDiagnostic, check, relative_deviation, texts_phrase
from dlperf_study.audit.result_cell import ROUNDINGS, TRUNCATED, ResultCell, list_values, quotient
from dlperf_study.audit.results import Results, device_share, recomputed
from dlperf_study.core.errors import Severity

MOST_ALTERNATIVES = 3
#: No efficiency is higher than this: one that is, is in per cent.
HIGHEST_EFFICIENCY = 2
#: So many ratios that fit throughputs with up to so many fewer digits are made from these.
_ENOUGH_RATIOS, _LARGEST_POWER = 3, 6
_TRUNCATED = "both throughputs may be truncated instead of rounded"
_OTHER_THROUGHPUTS = "the ratio may come from throughputs outside the table: means, other runs, older tables"
_OTHER_TIMES = "the speedup may come from other times, such as the time of the whole training"
_ROUNDED_BEFORE = "it is right within the digits of the rounded throughputs"
_OF_PRINTED_SPEEDUP = "it is computed from the printed speedup, which is rounded"
_ELSEWHERE = "the source may print the throughput elsewhere"
_FEWER_DIGITS = "it may have been typed with fewer digits"
_SAME_DIGIT = "both are right within one unit of the last digit"
_OTHER_BASELINE = "they may be relative to different baselines, or to another number of devices"


@check("Does every printed ratio follow from its own numbers?", "ratios")
def ratios(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Yield a result for every ratio."""
    steps = _steps_of_rounded_throughputs(results)
    for ratio in results.select(quantities.SPEEDUP, quantities.EFFICIENCY, quantities.RELATIVE):
        baseline = results.find_baseline(ratio)
        throughput = None
        if baseline:
            throughput = results.at_same_point(ratio, baseline.metric)
        if _times(results, ratio):
            continue
        if baseline is None:
            yield _missing_baseline(results, ratio)
        elif not baseline.printed.is_positive:
            computation = f"{ratio.text} is relative to {baseline.text}; a baseline must be above 0"
            yield AuditDiagnostic(Severity.ERROR, (ratio, baseline), computation)
        elif throughput is None:
            computation = f"{ratio.text} is not checked: its configuration has no throughput, or several"
            yield AuditDiagnostic(Severity.NOTE, (ratio,), computation, (_ELSEWHERE,), compared=())
        else:
            step = steps.get((*ratio.table, ratio.metric))
            diagnostic = _compare_with_throughputs(results, ratio, throughput, baseline, step)
            if diagnostic and _is_of_printed_speedup(results, ratio, baseline):
                diagnostic = replace(diagnostic, severity=Severity.NOTE, explanations=(_OF_PRINTED_SPEEDUP,))
            yield diagnostic or (ratio, throughput, baseline)


def _is_of_printed_speedup(results: Results, ratio: ResultCell, baseline: ResultCell) -> bool:
    """Return whether an efficiency fits the speedup beside it as printed."""
    speedup = results.at_same_point(ratio, quantities.SPEEDUP)
    if ratio.metric != quantities.EFFICIENCY or speedup is None or results.find_baseline(speedup) is not baseline:
        return False
    return bool(ratio.printed.roundings_from(speedup.printed.exact * device_share(ratio, baseline)))


@check("Does a speedup follow from its times?", "speedups with times and without throughputs")
def time_ratios(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare speedups with inverse ratios of times."""
    for ratio in results.select(quantities.SPEEDUP, quantities.RELATIVE):
        outcomes = [_compare_with_times(ratio, *times) for times in _times(results, ratio)]
        agreeing = [outcome for outcome in outcomes if not isinstance(outcome, AuditDiagnostic)]
        # A speedup may be of steps or of whole trainings.
        yield from (agreeing or outcomes)[:1]


def _compare_with_times(ratio: ResultCell, seconds: ResultCell, baseline: ResultCell) -> AuditDiagnostic | Agreeing:
    low, high = quotient(baseline.printed, seconds.printed, truncated=True)
    growths = _growths(seconds, baseline)
    if any(ratio.printed.overlaps(low * growth, high * growth) for growth in growths):
        return ratio, seconds, baseline
    quotient_of_times = baseline.value / seconds.value
    growth = min(growths, key=lambda growth: abs(float(growth) * quotient_of_times - ratio.value))
    expected, grown = quotient_of_times * float(growth), ""
    if growth != 1:
        grown = f" × {float(growth):g} ({'larger batch' if len(growths) == 1 else 'more devices'})"
    computation = f"{_with_unit(baseline)} / {_with_unit(seconds)}{grown} = {expected:.4g}, printed {ratio.text}"
    cells, deviation = (ratio, seconds, baseline), relative_deviation(ratio.value, expected)
    return AuditDiagnostic(Severity.ERROR, cells, computation, (_OTHER_TIMES,), deviation=deviation)


def _with_unit(seconds: ResultCell) -> str:
    if seconds.text[-1:].isdigit():
        return f"{seconds.text} s"
    return seconds.text


def _times(results: Results, ratio: ResultCell) -> list[tuple[ResultCell, ResultCell]]:
    """Return the times of a speedup and of its baseline, of steps and of trainings."""
    if ratio.metric not in (quantities.SPEEDUP, quantities.RELATIVE):
        return []
    pairs = []
    for metric in quantities.TIMES:
        seconds = results.at_same_point(ratio, metric)
        if seconds is None:
            continue
        baseline = results.find_baseline(ratio)
        if baseline is None and not ratio.baseline:
            baseline = results.find_baseline_time(ratio, metric)
        if baseline is None or baseline.metric != metric:
            continue
        if seconds.printed.is_positive and baseline.printed.is_positive:
            pairs.append((seconds, baseline))
    return pairs


def _growths(seconds: ResultCell, baseline: ResultCell) -> tuple[Fraction, ...]:
    """Return by how much the work of a step may have grown."""
    batch, batch_of_baseline = seconds.get("global_batch"), baseline.get("global_batch")
    if seconds.metric == quantities.STEP and batch and batch_of_baseline:
        return (Fraction(int(batch), int(batch_of_baseline)),)
    return Fraction(1), Fraction(seconds.world_size or 1, baseline.world_size or 1)


def _missing_baseline(results: Results, ratio: ResultCell) -> AuditDiagnostic:
    if ratio.baseline:
        computation = f"{ratio.text} is relative to {ratio.baseline}, which has no value here"
        # A column may compare two others, of which one has a gap.
        severity = Severity.NOTE if ratio.metric == quantities.RELATIVE else Severity.ERROR
        return AuditDiagnostic(severity, (ratio,), computation, (_ELSEWHERE,), compared=())
    computation = f"{ratio.text} is a ratio, but the table does not show its baseline"
    names = results.separating_conditions(ratio)
    if names:
        same = " and ".join(names)
        computation += f": no row of the same {same} has a ratio of 1. Rows of a curve differ in devices alone"
    suspicion = _per_cent_suspicion(ratio)
    severity = Severity.WARNING if suspicion else Severity.NOTE
    explanations = ("the source may state it in its text",)
    return AuditDiagnostic(severity, (ratio,), f"{computation}{suspicion}", explanations, compared=())


def _per_cent_suspicion(ratio: ResultCell) -> str:
    if ratio.metric != quantities.EFFICIENCY or ratio.value <= HIGHEST_EFFICIENCY:
        return ""
    return ". It looks like a percentage without its sign: an efficiency of 1 is linear"


def _compare_with_throughputs(
    results: Results, ratio: ResultCell, throughput: ResultCell, baseline: ResultCell, rounded_to: Fraction | None
) -> AuditDiagnostic | None:
    cells = (ratio, throughput, baseline)
    expected = recomputed(ratio, throughput, baseline)
    devices = _devices_phrase(ratio, baseline)
    computation = f"{throughput.text} / {baseline.text}{devices} = {float(expected):.5g}, printed {ratio.text}"
    roundings = ratio.printed.roundings_from(expected)
    if roundings:
        # 10.20 may be printed as 10.2, but 10.277 should not be.
        if ratio.printed.computed or ratio.printed.roundings_from(expected, results.finest_step(ratio)):
            return None
        computation += ": it fits no rounding to the digits of its neighbours; "
        computation += f"rounded to its own digits it is {roundings[0]}"
        return AuditDiagnostic(Severity.NOTE, cells, computation, (_FEWER_DIGITS,))
    if _is_within_bounds(ratio, throughput, baseline, truncated=False) or _is_of_common_rounds(
        ratio, throughput, baseline
    ):
        return None
    computation += ": it fits no rounding"
    deviation = relative_deviation(ratio.value, float(expected))
    if rounded_to:
        computation += f". All ratios of the column fit throughputs that were rounded to {float(rounded_to):g} before"
        return AuditDiagnostic(Severity.NOTE, cells, computation, (_ROUNDED_BEFORE,), deviation=deviation)
    if _is_within_bounds(ratio, throughput, baseline, truncated=True):
        return AuditDiagnostic(
            Severity.WARNING, cells, computation, (_TRUNCATED, _OTHER_THROUGHPUTS), deviation=deviation
        )
    if baseline.series != throughput.series and not ratio.baseline:
        computation += ": the row with ratio 1 has other conditions and may not be its baseline"
        return AuditDiagnostic(Severity.WARNING, cells, computation, (_OTHER_THROUGHPUTS,), deviation=deviation)
    names = "; ".join(islice(_fitting_quotients(results, ratio, throughput, baseline), MOST_ALTERNATIVES))
    computation += f". It would fit {names}" if names else _per_cent_suspicion(ratio)
    return AuditDiagnostic(Severity.ERROR, cells, computation, (_OTHER_THROUGHPUTS,), deviation=deviation)


def _steps_of_rounded_throughputs(results: Results) -> dict[tuple[object, ...], Fraction]:
    """Return the digit to which the throughputs of each column were rounded.

    At least three ratios must fit, and at least two of them only with rounded throughputs.
    """
    columns: dict[tuple[object, ...], list[tuple[ResultCell, ResultCell, ResultCell]]] = {}
    for ratio in results.select(quantities.SPEEDUP, quantities.EFFICIENCY, quantities.RELATIVE):
        baseline = results.find_baseline(ratio)
        throughput = results.at_same_point(ratio, baseline.metric) if baseline else None
        if throughput and baseline and throughput is not baseline and baseline.printed.is_positive:
            columns.setdefault((*ratio.table, ratio.metric), []).append((ratio, throughput, baseline))
    steps = {}
    for column, compared in columns.items():
        finest = min(throughput.printed.step for _, throughput, _ in compared)
        misfits = sum(not _is_of_rounded(*cells, finest) for cells in compared)
        for power in range(1, _LARGEST_POWER if misfits > 1 and len(compared) >= _ENOUGH_RATIOS else 0):
            step = finest * 10**power
            if all(_is_of_rounded(*cells, step) for cells in compared):
                steps[column] = step
                break
    return steps


def _is_of_rounded(ratio: ResultCell, throughput: ResultCell, baseline: ResultCell, step: Fraction) -> bool:
    numerator, denominator = (round(cell.printed.exact / step) * step for cell in (throughput, baseline))
    expected = numerator / denominator * device_share(ratio, baseline) if denominator else Fraction(0)
    return bool({*ratio.printed.roundings_from(expected)} - {TRUNCATED})


def _devices_phrase(ratio: ResultCell, baseline: ResultCell) -> str:
    if ratio.metric == quantities.EFFICIENCY and baseline.metric not in quantities.THROUGHPUTS_OF_DEVICE:
        return f" × {baseline.world_size} / {ratio.world_size}"
    if device_share(ratio, baseline) != 1:
        return f" × {ratio.world_size} / {baseline.world_size}"
    return ""


def _is_of_common_rounds(ratio: ResultCell, throughput: ResultCell, baseline: ResultCell) -> bool:
    """Return whether common rounds explain a measured ratio.

    A ratio uses only the rounds of both configurations. It then need not be the quotient of the two throughputs, but
    the quotient is in its interval.
    """
    low, high = ratio.get("low"), ratio.get("high")
    has_same_runs = throughput.get("measured_rounds") == baseline.get("measured_rounds")
    has_same_runs &= not throughput.get("runs_in_no_round") and not baseline.get("runs_in_no_round")
    if None in (low, high) or has_same_runs:
        return False
    return bool(low <= recomputed(ratio, throughput, baseline) <= high)


def _is_within_bounds(ratio: ResultCell, throughput: ResultCell, baseline: ResultCell, truncated: bool) -> bool:
    """Return whether throughputs that print alike give the printed ratio."""
    low, high = quotient(throughput.printed, baseline.printed, truncated)
    share = device_share(ratio, baseline)
    return ratio.printed.overlaps(low * share, high * share)


def _fitting_quotients(
    results: Results, ratio: ResultCell, throughput: ResultCell, baseline: ResultCell
) -> Iterator[str]:
    """Yield other quotients that would print like the ratio."""
    share = device_share(ratio, baseline)
    for cell in results.select(baseline.metric):
        if cell.get("source") != throughput.get("source"):
            continue
        is_baseline = cell.world_size == baseline.world_size and cell is not baseline
        if is_baseline and _prints_like(ratio, throughput, cell, share):
            yield f"{throughput.text} / {cell.text} ({cell.key})"
        if cell.table == throughput.table and cell is not throughput and _prints_like(ratio, cell, baseline, share):
            yield f"{cell.text} ({cell.key}) / {baseline.text}"
    throughput_runs = list_values(results.runs.get(throughput.key, ()))
    baseline_runs = list_values(results.runs.get(baseline.key, ()))
    quotients = {}
    if throughput_runs and len(throughput_runs) == len(baseline_runs) and min(baseline_runs) > 0:
        quotients["the mean of the ratios of the runs"] = Fraction(mean(map(truediv, throughput_runs, baseline_runs)))
    if throughput_runs and baseline_runs and mean(throughput_runs) > 0 and mean(baseline_runs) > 0:
        quotients["the means of the runs"] = Fraction(mean(throughput_runs)) / Fraction(mean(baseline_runs))
    for description, quotient_of_runs in quotients.items():
        if ratio.printed.roundings_from(quotient_of_runs * share):
            yield description


def _prints_like(ratio: ResultCell, numerator: ResultCell, denominator: ResultCell, share: Fraction) -> bool:
    """Return whether the quotient of two throughputs would print like the ratio."""
    if numerator.value <= 0 or denominator.value <= 0:
        return False
    difference = numerator.value / denominator.value * float(share) - ratio.value
    if abs(difference) > 2 * float(ratio.printed.step) or not denominator.printed.is_positive:
        return False
    return bool(ratio.printed.roundings_from(numerator.printed.exact / denominator.printed.exact * share))


@check("Are all ratios of a table rounded in one way?", "columns of ratios")
def roundings(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Find columns whose ratios need several kinds of rounding."""
    columns: dict[tuple[object, ...], dict[ResultCell, tuple[str, ...]]] = {}
    for ratio in results.select(quantities.SPEEDUP, quantities.EFFICIENCY, quantities.RELATIVE):
        throughput, baseline = results.at_same_point(ratio, quantities.THROUGHPUT), results.find_baseline(ratio)
        if ratio.printed.computed or throughput is None or baseline is None or not baseline.printed.is_positive:
            continue
        expected = recomputed(ratio, throughput, baseline)
        if fitting := ratio.printed.roundings_from(expected, results.finest_step(ratio)):
            columns.setdefault((*ratio.table, ratio.metric), {})[ratio] = fitting
    for column in columns.values():
        if set(ROUNDINGS).intersection(*column.values()):
            yield tuple(column)
            continue
        truncated = [ratio for ratio, fitting in column.items() if fitting == (TRUNCATED,)]
        rounded = [ratio for ratio, fitting in column.items() if TRUNCATED not in fitting]
        computation = f"{texts_phrase(truncated)} fit only if truncated, {texts_phrase(rounded)} only if rounded"
        yield AuditDiagnostic(Severity.NOTE, (*truncated, *rounded), computation, (_SAME_DIGIT,))


@check("Do efficiency and speedup agree?", "efficiencies with a speedup")
def efficiency(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare each efficiency with the speedup over the same baseline."""
    for ratio, speedup in results.pairs(quantities.EFFICIENCY, quantities.SPEEDUP):
        devices, baseline_devices = ratio.world_size, results.baseline_devices(ratio)
        if results.find_baseline(ratio) is not results.find_baseline(speedup):
            continue
        if not devices or not baseline_devices or baseline_devices != results.baseline_devices(speedup):
            continue
        share = Fraction(baseline_devices, devices)
        low, high = speedup.printed.bounds(truncated=True)
        if ratio.printed.overlaps(low * share, high * share):
            yield ratio, speedup
        else:
            expected = float(speedup.printed.exact * share)
            computation = f"{speedup.text} × {baseline_devices} / {devices} = {expected:.4g}, printed {ratio.text}"
            deviation = relative_deviation(ratio.value, expected)
            cells = (ratio, speedup)
            yield AuditDiagnostic(Severity.ERROR, cells, computation, (_OTHER_BASELINE,), deviation=deviation)
