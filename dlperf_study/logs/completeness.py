"""Is a log all that was printed, and did every rank print to the end?

Lost lines and steps are an error, unless they are so few that chance loses them. A rank that died is an error, not a
smaller job.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from dlperf_study.arrays import Floats, Integers, running_median
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.logs.blocks import Blocks
from dlperf_study.logs.parsed_log import ParsedLog
from dlperf_study.logs.rank_checks import JobSize
from dlperf_study.logs.records import StepIndex
from dlperf_study.wording import counted

#: A log that lost a larger share of its lines is no sample of its run; chance loses so few of them.
_ALLOWED_SHARE, _ALLOWED_LINES = 0.05, 3
#: How many distances between steps tell the usual one; a larger one by this factor is a gap.
_NEIGHBOURS, _GAP_FACTOR = 9, 1.5
#: By how many printed steps ranks, or repetitions, may end apart: a job is ended while some still print.
ALLOWED_STEPS_APART = 2


def completeness_diagnostics(log: ParsedLog, blocks: Blocks, unusable: int, is_cut: bool) -> Iterator[Diagnostic]:
    """Yield what is missing in a log.

    ``unusable``: how many lines look like its format but could not be used; ``is_cut``: the last line is one of them,
    and has no newline.
    """
    errors = []
    if blocks.damage:
        errors.append(f"truncated: its bytes end in an error ({blocks.damage}) after line {blocks.lines}")
    if blocks.first_zero_line:
        errors.append(f"damaged: zero bytes, which no program prints, at line {blocks.first_zero_line}")
    if is_cut:
        end = f"its last line, {blocks.lines}, has no newline and may have lost digits or more"
        errors.append(f"truncated: {end}; if it is complete, add a newline")
    errors += _unplanned_end(log)
    lines = len(log.records) + unusable
    if exceeds_chance(unusable, lines):
        errors.append(f"{unusable} of its {lines} lines could not be used: the others may differ from the whole log")
    for error in errors:
        yield Diagnostic(str(log.source), error, Severity.ERROR)
    yield from _missing_steps(log)
    yield from _missing_close(log)


def exceeds_chance(count: int, total: int) -> bool:
    """Return whether so many of all lines or steps are missing that chance does not explain it."""
    return count > max(_ALLOWED_LINES, _ALLOWED_SHARE * total)


def _missing_close(log: ParsedLog) -> Iterator[Diagnostic]:
    """Yield that the log does not have what its program prints when it is done; people often publish a part."""
    name = log.format.closing_metric
    if name and not len(log.series(name)):
        absence = f"it has no {name.replace('_', ' ')}, which {log.format.title} prints when it is done"
        yield Diagnostic(str(log.source), f"{absence}: was it ended before, or is this a part of the log?")


def _unplanned_end(log: ParsedLog) -> Iterator[str]:
    """Yield that the log has fewer steps than it planned, or more."""
    planned = log.integer_fact("steps_planned")
    steps = log.records.step[log.records.training]
    distances = np.diff(steps[steps >= 0])
    if not planned or not (distances > 0).any():
        return
    usual = np.median(distances[distances > 0])
    if steps.max() + usual < planned:
        yield f"truncated: its last step is {steps.max()} of {planned} planned ones"
    if steps.max() > planned + usual:
        yield f"contradicts itself: it has step {steps.max()}, but planned {planned} steps"


def _missing_steps(log: ParsedLog) -> Iterator[Diagnostic]:
    """Yield how many steps are missing between others, compared with the usual distance of the steps around them."""
    index = log.rate_steps
    if np.count_nonzero(index.epoch[1:] == index.epoch[:-1]) < _NEIGHBOURS:
        return
    distances = _step_distances(index)
    if distances.max() <= _GAP_FACTOR * distances.min():
        return
    usual = running_median(distances, _NEIGHBOURS)
    missing = np.where(distances > _GAP_FACTOR * usual, np.round(distances / usual) - 1, 0).astype(int)
    if missing.any():
        count = int(missing.sum())
        total = count + index.step.size
        last_before = index.step[np.argmax(missing > 0)]
        message = f"missing lines: {count} of {total} steps are missing, the first after step {last_before}"
        severity = Severity.ERROR if exceeds_chance(count, total) else Severity.WARNING
        yield Diagnostic(str(log.source), message, severity)


def _step_distances(index: StepIndex) -> Floats:
    """Return the distances of the steps; where an epoch counts from the start, how much later than others it begins."""
    distances = np.diff(index.step).astype(np.float64)
    same_epoch = index.epoch[1:] == index.epoch[:-1]
    if same_epoch.all():
        return distances
    usual = float(np.median(distances[same_epoch]))
    epoch_starts = np.insert(np.flatnonzero(~same_epoch) + 1, 0, 0)
    late = index.step[1:] - index.step[epoch_starts].min()
    # The first line of an epoch may be anywhere in an interval that began before it.
    late = np.where(late > _GAP_FACTOR * usual, late, 0) + usual
    counts_from_start = ~same_epoch & (distances <= 0)
    return np.asarray(np.where(counts_from_start, late, distances), dtype=np.float64)


def ranks_seen(logs: Sequence[ParsedLog]) -> int:
    """Return how many ranks printed: the number of logs; if ranks share one, how often its steps appear."""
    return sum(_usual_count(log.rate_steps.counts) for log in logs)


def silent_ranks(unreadable: Sequence[str], printing: int, job: JobSize) -> Iterator[str]:
    """Yield that logs without training are no ranks that never print: one rank prints, or one per node, or all do."""
    if unreadable and printing not in (1, job.nodes):
        reasons = "; ".join(unreadable)
        yield f"{len(unreadable)} of {printing + len(unreadable)} logs of ranks contain no training: {reasons}"


def truncated_ranks(logs: Sequence[ParsedLog]) -> Iterator[str]:
    """Yield which ranks ended before others: a log that ends early, or steps that fewer ranks printed."""
    lines = {str(log.source): int(log.records.has_metric(log.rate_metric).sum()) for log in logs}
    longest = max(lines.values())
    for source, count in lines.items():
        if count < longest - ALLOWED_STEPS_APART:
            yield f"truncated: {source} has {counted(count, 'line')} of training, that of a different rank {longest}"
    for log in logs:
        # A log that starts over prints some steps twice: no rank is missing at the others.
        if log.restarts.size:
            continue
        counts = log.rate_steps.counts
        at_start = int(np.median(counts[:3])) if counts.size else 0
        expected = max(_usual_count(counts), at_start)
        fewer = int((counts < expected).sum())
        if fewer > ALLOWED_STEPS_APART:
            yield f"truncated: {fewer} of {counts.size} steps were printed by fewer than {expected} ranks"


def _usual_count(counts: Integers) -> int:
    """Return how often most steps appear."""
    return int(np.bincount(counts).argmax()) if counts.size else 1
