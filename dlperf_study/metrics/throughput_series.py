"""Windows of a printed series of throughputs: DLPerf's steps, or the steady part.

Three kinds of lines are not training: the start-up, stalls (validation, checkpoints, a new epoch), and lines right
after a stall. They are looked for in seconds per sample, because stalls add up in seconds.

1. A line is *slow* if it exceeds its neighbourhood, a running median over NEIGHBOURS lines, by the share SLOW and by
   OUTLYING deviations of all lines from their neighbourhoods; *fast* in the same way.
2. Slow lines of similar length are a family. A family is periodic if its lines come at multiples of one period, within
   one printed line. Slow lines are *stalls* if their family is periodic, or if they take more than FAR times as long as
   their neighbourhood. All other slow lines are training: they count. Fast lines are left out beyond the same factor.
3. The start-up is slower than what follows. It ends at the first SETTLED lines in a row that exceed the level of the
   later two thirds by no more than ordinary lines do.
4. Lines right after stalls are left out if, together, they differ from the rest by more than chance.
5. What is neither slow nor fast has levels: see ``throughput_levels``. Slower levels at its beginning are start-up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dlperf_study.core.arrays import Floats, Integers, Mask, elements, median, running_median
from dlperf_study.core.wording import counted, guessed
from dlperf_study.logs.parsed_log import cumulative_steps
from dlperf_study.metrics import throughput_levels
from dlperf_study.metrics.statistics import DEVIATIONS, median_deviation, median_error
from dlperf_study.metrics.steady_state import MINIMUM_STEPS, Answer, Steadiness, steadiness_of_usual

NEIGHBOURS = 15
SLOW, OUTLYING = 0.05, 6.0
#: A single line that takes more than this many times as long as its neighbourhood is not training.
FAR = 3.0
#: Lines after stalls differ from the rest by more than chance beyond this many standard errors of their median.
ALLOWED_ERRORS = 3.5
SETTLED = 3
#: A beginning longer than this share of the lines is hardly a start-up, unless it is one line, as of compiling.
LONG_STARTUP = 0.2
#: Fewer slow lines have no period, and say nothing about the lines after them.
MINIMUM_STALLS = 3
#: Stalls of one family differ in length by less than this factor.
SIMILAR_LENGTH = 1.5
#: The smallest relative difference of the lines after stalls from the rest.
NOTICED = 0.01


@dataclass(frozen=True)
class ThroughputWindow:
    """Some lines of a series, and their throughput in samples/s or tokens/s.

    ``wall_throughput``: samples, or tokens, of the window / its seconds. Each line is weighted by its steps: those
    since the line before it, and after missing lines the usual number. ``mean_step_throughput``: the arithmetic mean,
    as DLPerf published it; never below the wall throughput. ``reasons``: why these lines were chosen. ``is_full``:
    whether the series reaches the end of the window.
    """

    kept: Mask
    wall_throughput: float
    mean_step_throughput: float
    reasons: tuple[str, ...]
    is_full: bool = True


@dataclass(frozen=True)
class Stalls:
    """Slow lines of similar length that are not training."""

    lines: Integers
    extra_share: float
    period_steps: float | None


@dataclass(frozen=True)
class LevelThroughput:
    """The throughput of successive lines, and their first and last step."""

    throughput: float
    first_step: int
    last_step: int

    def described(self, unit: str) -> str:
        """Return the throughput with its unit, and the steps."""
        return f"{self.throughput:.6g} {unit} at steps {self.first_step} to {self.last_step}"


@dataclass(frozen=True)
class SteadyPart:
    """The steady part of a series, and whether it is steady.

    ``behaviour`` is None for too few lines. ``levels``: of the whole series without slow and fast lines, in order.
    ``has_no_single_throughput``: long parts of it are at different levels. ``throughput_of_all``: of all lines after
    the start-up.
    """

    window: ThroughputWindow
    startup: int
    stalls: tuple[Stalls, ...]
    steadiness: Steadiness
    behaviour: throughput_levels.Behaviour | None
    levels: tuple[LevelThroughput, ...]
    has_no_single_throughput: bool = False
    throughput_of_all: float = np.nan


def fixed_window(steps: Integers, throughputs: Floats, first_step: int, last_step: int) -> ThroughputWindow:
    """Return the lines of DLPerf's steps first_step ≤ step < last_step."""
    kept = (steps >= first_step) & (steps < last_step)
    is_full = bool(steps.size and steps.max() + _usual_distance(steps) >= last_step)
    reason = f"steps {first_step} to {last_step - 1}"
    if not is_full:
        # A line without a step, as the last one of a whole run, has a negative one.
        end = "numbers no step"
        if (steps >= 0).any():
            end = f"ends at step {steps.max()}, before it is full"
        reason += f"; the log {end}"
    return _window(cumulative_steps(steps), throughputs, kept, (reason,), is_full)


def steady_part(steps: Integers, throughputs: Floats) -> SteadyPart:
    """Return the steady part of a series of throughputs."""
    seconds, positions = 1.0 / throughputs, cumulative_steps(steps)
    slow, fast, far, excess = _outlying_lines(seconds)
    startup = _startup(seconds, ~(slow | fast))
    usual, slow, fast, after = _kinds_of_lines(seconds, slow, fast, startup)
    usual_seconds = elements(seconds, usual)
    levels = throughput_levels.find_levels(usual_seconds) if usual.any() else ()
    separate = throughput_levels.separate_levels(usual_seconds, levels)
    behaviour = throughput_levels.classify_behaviour(usual_seconds, levels, startup > 0)
    level_throughputs = tuple(_level_throughputs(levels, steps[usual]))
    if levels and not separate and (slower := throughput_levels.startup_lines(levels)):
        startup = int(np.flatnonzero(usual)[slower])
        usual, slow, fast, after = _kinds_of_lines(seconds, slow, fast, startup)
        usual_seconds = elements(seconds, usual)
    stalls = tuple(_stall_families(positions, seconds, excess, slow, far))
    result = steadiness_of_usual(usual_seconds)
    # The series may have millions of lines, and what follows needs memory for them too.
    del seconds, usual_seconds
    stalled = np.zeros_like(slow)
    for family in stalls:
        stalled[family.lines] = True
    after &= np.concatenate(([False], stalled[:-1]))
    fast &= far
    started = np.arange(throughputs.size) >= startup
    reasons = _reasons(steps, startup, stalls, (slow & ~stalled).sum(), fast.sum(), after.sum(), result)
    window = _window(positions, throughputs, started & ~(stalled | fast | after), tuple(reasons))
    throughput_of_all = _window(positions, throughputs, started, ()).wall_throughput
    return SteadyPart(window, startup, stalls, result, behaviour, level_throughputs, bool(separate), throughput_of_all)


def _level_throughputs(levels: Sequence[throughput_levels.Level], steps: Integers) -> Iterator[LevelThroughput]:
    """Yield the throughputs of levels of lines at these steps."""
    for level in levels:
        yield LevelThroughput(1 / level.seconds, int(steps[level.first]), int(steps[level.end - 1]))


def _outlying_lines(seconds: Floats) -> tuple[Mask, Mask, Mask, Floats]:
    """Return slow, fast and far lines, and each slow line's excess."""
    level = running_median(seconds, NEIGHBOURS)
    far = (seconds > FAR * level) | (FAR * seconds < level)
    excess = seconds - level
    limit = level * SLOW
    np.maximum(limit, OUTLYING * DEVIATIONS * median(np.abs(excess)), out=limit)
    slow = excess > limit
    return slow, -excess > limit, far, excess[slow]


def _window(
    positions: Integers, throughputs: Floats, kept: Mask, reasons: tuple[str, ...], is_full: bool = True
) -> ThroughputWindow:
    """Return the lines ``kept`` as a window; NaN without lines."""
    if not kept.any():
        return ThroughputWindow(kept, np.nan, np.nan, reasons, is_full)
    usual = _usual_distance(positions)
    weights = np.full(positions.size, usual, dtype=np.float64)
    np.subtract(positions[1:], positions[:-1], out=weights[1:])
    np.minimum(weights, usual, out=weights)
    weights = elements(weights, kept)
    wall_throughput = float(weights.sum() / (weights / elements(throughputs, kept)).sum())
    return ThroughputWindow(kept, wall_throughput, float(elements(throughputs, kept).mean()), reasons, is_full)


def _usual_distance(steps: Integers) -> float:
    """Return the steps between two lines."""
    if steps.size < 2:
        return 1.0
    distances = np.diff(steps)
    return median(np.abs(distances, out=distances))


def _startup(seconds: Floats, ordinary: Mask) -> int:
    """Return how many first lines are slower than the rest."""
    third = seconds.size // 3
    late = elements(seconds[third:], ordinary[third:])
    if late.size < SETTLED:
        return 0
    level = median(late)
    limit = max(SLOW * level, OUTLYING * median_deviation(late))
    del late
    has_started = seconds - level <= limit
    windows = np.lib.stride_tricks.sliding_window_view(has_started, SETTLED).all(axis=1)
    startup = int(np.argmax(windows))
    if not 0 < startup <= max(1, LONG_STARTUP * seconds.size):
        return 0
    next_seconds = median(seconds[startup : startup + max(SETTLED, startup)])
    if median(seconds[:startup]) > (1 + SLOW) * next_seconds:
        return startup
    return 0


def _kinds_of_lines(seconds: Floats, slow: Mask, fast: Mask, startup: int) -> tuple[Mask, Mask, Mask, Mask]:
    """Return usual, slow, fast and after-stall lines."""
    started = np.arange(seconds.size) >= startup
    slow, fast = slow & started, fast & started
    after = _after_stalls(seconds, slow, started)
    return started & ~(slow | fast | after), slow, fast, after


def _stall_families(positions: Integers, seconds: Floats, excess: Floats, slow: Mask, far: Mask) -> Iterator[Stalls]:
    """Yield families of slow lines that are not training, longest first.

    ``excess``: by how many seconds they exceed their level, after that of slow lines of the start-up.
    """
    lines = np.flatnonzero(slow)
    if not lines.size:
        return
    with np.errstate(over="ignore"):
        extra = excess[excess.size - lines.size :] / median(seconds[~slow])
    order = np.argsort(-extra, kind="stable")
    breaks = np.flatnonzero(extra[order][:-1] > SIMILAR_LENGTH * extra[order][1:]) + 1
    for family in np.split(order, breaks):
        period = _period(positions, np.sort(lines[family]))
        stalled = family if period else family[far[lines[family]]]
        if stalled.size:
            yield Stalls(np.sort(lines[stalled]), float(median(extra[stalled])), period)


def _period(positions: Integers, lines: Integers) -> float | None:
    """Return the distance of lines in steps; None if irregular.

    A line was stalled anywhere between the line before and itself, so distances vary by one line.
    """
    if lines.size < MINIMUM_STALLS:
        return None
    spacing = float(median(np.diff(positions)))
    distances = np.diff(positions[lines])
    periods = np.maximum(1, np.round(distances / median(distances)))
    period = float(distances.sum() / periods.sum())
    is_regular = (np.abs(distances - periods * period) <= spacing).all()
    if period > spacing and is_regular:
        return period
    return None


def _after_stalls(seconds: Floats, slow: Mask, started: Mask) -> Mask:
    """Return the lines after stalls, if they differ from the rest."""
    after = np.concatenate(([False], slow[:-1])) & ~slow & started
    rest = started & ~(slow | after)
    if after.sum() < MINIMUM_STALLS or rest.sum() < MINIMUM_STEPS:
        return np.zeros_like(after)
    level = median(seconds[rest])
    chance = ALLOWED_ERRORS * median_error(median_deviation(seconds[rest]), int(after.sum()))
    is_different = abs(median(seconds[after]) - level) > max(chance, NOTICED * level)
    return after & is_different


def _reasons(
    steps: Integers, startup: int, stalls: tuple[Stalls, ...], slow: int, fast: int, after: int, result: Steadiness
) -> Iterator[str]:
    """Yield what was left out of a series, and why."""
    if startup:
        lines = counted(startup, "line") if startup > 1 else "line"
        yield f"start-up: the first {lines}, up to step {steps[startup - 1]}"
    for family in stalls:
        length = f"{counted(family.lines.size, 'line')} {1 + family.extra_share:.2f} times as long as others"
        period = "at no regular distance"
        if family.period_steps:
            period = f"every {family.period_steps:.0f} steps"
        yield f"stalls: {length}, {period}, the first at step {steps[family.lines[0]]}"
    if slow:
        yield f"slow: {counted(slow, 'line')} at no regular distance, which count"
    if after:
        yield f"after a stall: {counted(after, 'line')} unlike the rest"
    if fast:
        yield f"too fast: {counted(fast, 'line')}"
    if result.answer is Answer.INCONCLUSIVE:
        lines = guessed(result.further_steps or 0, 2 * (result.further_steps or 0))
        yield f"too few lines to tell whether the rest is steady; {lines} more probably would"
    elif result.answer is Answer.NOT_STEADY:
        yield "the rest is not steady"
