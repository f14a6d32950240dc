"""Is a log all that was printed? What is lost is an error, unless it is so little that chance loses it."""

from collections.abc import Iterator

import numpy as np

from dlperf_study.arrays import Floats, running_median
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.logs.blocks import Blocks
from dlperf_study.logs.parsed_log import Reading
from dlperf_study.logs.step_index import Places

#: A log that lost more of its lines is no sample of its run; so few of them are lost by chance.
ALLOWED_SHARE, FEW_LINES = 0.05, 3
#: How many distances between steps tell which of them is usual there; a larger one by this factor is a hole.
NEIGHBOURS, HOLE = 9, 1.5


def losses(reading: Reading, blocks: Blocks, unusable: int, is_cut: bool) -> list[Diagnostic]:
    """Return what is lost of a log.

    ``unusable``: how many lines look like its format but could not be used; ``is_cut``: the last line is one of them,
    and has no end.
    """
    errors = (*_cut_short(blocks, is_cut), *_planned(reading), *_of_unusable(reading, unusable))
    found = (*((message, Severity.ERROR) for message in errors), *_holes(reading))
    return [Diagnostic(str(reading.source), message, severity) for message, severity in found]


def _of_unusable(reading: Reading, count: int) -> Iterator[str]:
    """Yield that so many lines could not be used that the others may be another sample than all."""
    whole = len(reading.records) + count
    if is_much(count, whole):
        yield f"{count} of its {whole} lines could not be used: what is left may be other than the whole"


def _holes(reading: Reading) -> Iterator[tuple[str, Severity]]:
    """Yield how many lines are missing between others, going by the usual distance of the steps around."""
    places = reading.rate_places
    if np.count_nonzero(np.diff(places.epoch) == 0) < NEIGHBOURS:
        return
    distances = _distances(places)
    if distances.max() <= HOLE * distances.min():
        return
    usual = running_median(distances, NEIGHBOURS)
    missing = np.where(distances > HOLE * usual, np.round(distances / usual) - 1, 0).astype(int)
    if missing.any():
        count, whole = int(missing.sum()), int(missing.sum()) + places.step.size
        first = places.step[np.argmax(missing > 0)]
        said = f"holes: {count} of {whole} steps missing, the first behind step {first}"
        yield said, Severity.ERROR if is_much(count, whole) else Severity.WARNING


def _distances(places: Places) -> Floats:
    """Return how far apart the steps are; where an epoch counts anew, how much later than others it begins."""
    distances = np.diff(places.step).astype(np.float64)
    same_epoch = np.diff(places.epoch) == 0
    usual = float(np.median(distances[same_epoch]))
    starts = np.insert(np.flatnonzero(~same_epoch) + 1, 0, 0)
    late = places.step[1:] - places.step[starts].min()
    # The first line of an epoch may stand anywhere in an interval that began before it.
    late = np.where(late > HOLE * usual, late, 0) + usual
    counts_anew = ~same_epoch & (distances <= 0)
    return np.asarray(np.where(counts_anew, late, distances), dtype=np.float64)


def is_much(count: int, whole: int) -> bool:
    """Say whether so many of all lines or steps are lost that chance does not explain it."""
    return count > max(FEW_LINES, ALLOWED_SHARE * whole)


def _cut_short(blocks: Blocks, is_cut: bool) -> Iterator[str]:
    """Yield why the bytes of the log are not all that was printed."""
    if blocks.damage:
        yield f"truncated: its bytes end in an error ({blocks.damage}) after line {blocks.lines}"
    if blocks.zeros:
        yield f"damaged: zero bytes, which no program prints, at line {blocks.zeros}"
    if is_cut:
        said = "ends without a newline, and may lack digits or more; if it is whole, put one behind it"
        yield f"truncated: its last line, {blocks.lines}, {said}"


def _planned(reading: Reading) -> Iterator[str]:
    """Yield that the log has fewer steps than it planned, or more."""
    planned = reading.fact("steps_planned")
    steps = reading.records.where(reading.records.training).step
    distances = np.diff(steps[steps >= 0])
    if not planned or not (distances > 0).any():
        return
    usual = np.median(distances[distances > 0])
    if steps.max() + usual < planned:
        yield f"truncated: its last step is {steps.max()} of the {planned} it planned"
    if steps.max() > planned + usual:
        yield f"it has step {steps.max()}, but planned {planned}: it contradicts itself"
