"""What the answer to the question of an original is today, in sentences made of its numbers and of ours."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dlperf_study.analysis.statistics import Estimate, Interval, bounded, log_ratio
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.configuration_table import throughputs_of
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import is_missing, level_name, listed, value_text
from dlperf_study.report.replications import NO_QUESTION, Replication, replications_of
from dlperf_study.report.tables.answers import Answer
from dlperf_study.report.tables.question_differences import why_unanswered

#: What may differ between two published throughputs of one table.
_FACTORS = (
    *("world_size", "servers", "batch_per_device", "precision", "loss_scaling", "compiler"),
    *("data_source", "classifier", "sample_ratio", "classes"),
)
_PREFACE = (
    "A sentence compares how much a throughput changes from one published configuration to another with how much ours "
    "changes between the same two. How fast the machines are is not compared: they differ."
)


def answers(dataset: Dataset) -> Answer:
    """Return, for each original, what ours says of its question; nothing where nothing comparable was measured."""
    verdicts: list[tuple[str, str]] = []
    for replication in replications_of(dataset):
        title = replication.title
        verdicts.append((title, _how_many(replication)))
        throughputs = throughputs_of(dataset.runs, dataset.plan)
        for first, last in _pairs(replication.points[replication.is_answered]):
            ours = [replication.measured(point.match).identity for point in (first, last)]
            ratio = log_ratio(throughputs[ours[1]], throughputs[ours[0]])
            label = f"{replication.published.sources[last.source].tables[last.table].title}, {last.program}"
            verdicts.append((label, _sentence(first, last, ratio)))
    preface = _PREFACE if len(verdicts) > len(replications_of(dataset)) else ""
    return Answer(tuple(verdicts), preface, context.quick_label(dataset).strip(), NO_QUESTION)


def _how_many(replication: Replication) -> str:
    """Return how many published throughputs have a measured one of ours next to them, and why the others have none."""
    count, total = sum(replication.is_answered), len(replication.points)
    if not count:
        sentences = [
            f"Nothing comparable was measured here: none of its {total} throughputs has one of ours next to it."
        ]
    else:
        sentences = [f"Of its {total} throughputs, {count} {'has' if count == 1 else 'have'} one of ours next to it."]
    unanswered = replication.points.loc[[not is_answered for is_answered in replication.is_answered], "match"]
    if count and len(unanswered):
        sentences.append("The others have none.")
    sentences.append(why_unanswered(unanswered))
    if unmeasured := sum(bool(match.identities) for match in unanswered):
        sentences.append(f"{unmeasured} {'is' if unmeasured == 1 else 'are'} planned without a completed run here.")
    return " ".join(filter(None, sentences))


def _pairs(points: pd.DataFrame) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of published throughputs that ours answers too.

    Of each line of a table: the baseline and the most devices. Of the points of one program in a table on the most
    devices that several have: the first and the last.
    """
    by_cell = {point.cell: point for point in points.itertuples()}
    for _, of_program in points.groupby(["table", "program"], sort=False, dropna=False):
        for _, line in of_program.groupby("series", sort=False):
            last = max(line.itertuples(), key=lambda point: point.world_size)
            first = by_cell.get(last.baseline)
            if first is not None and first.cell != last.cell:
                yield first, last
        sizes = of_program["world_size"]
        shared = sizes[sizes.duplicated(keep=False)]
        if len(shared):
            on_most = list(of_program[sizes == shared.max()].itertuples())
            yield on_most[0], on_most[-1]


def _sentence(first: Any, last: Any, ours: Estimate) -> str:
    """Return how much both throughputs change between two published configurations, and whether that differs."""
    changes = []
    for name in _FACTORS:
        levels = [getattr(point, name) for point in (first, last)]
        if not any(map(is_missing, levels)) and levels[0] != levels[1]:
            names = [level_name(name, level) for level in levels]
            changes.append(f"{COLUMNS[name].words} from {names[0]} to {names[1]}")
    published, bounds = last.value / first.value, _published_interval(first, last)
    interval = ours.factor_interval()
    verdict = compared(published, bounds, interval)
    published_text, ours_text = (
        value_text(value, "×", no_interval=" (without an interval)")
        for value in (bounded(published, bounds), ours.bounded_factor)
    )
    return f"With {listed(changes)}, the throughput changes {published_text} in print and {ours_text} here: {verdict}."


def _published_interval(first: Any, last: Any) -> Interval | None:
    """Return the interval of a published speedup; only a ratio to the baseline of its line has one."""
    if last.baseline != first.cell or is_missing(last.speedup_low):
        return None
    return Interval(last.speedup_low, last.speedup_high)


def compared(published: float, bounds: Interval | None, ours: Interval | None) -> str:
    """Return which of two ratios is larger, as far as their intervals tell.

    ``bounds``: the interval of the published one. Without it only its printed value is compared with ours; without an
    interval of ours nothing is said.
    """
    if ours is None:
        return "without an interval of ours nothing is said of the difference"
    if bounds is None:
        position = "above" if published > ours.high else "below" if published < ours.low else "within"
        return f"the printed ratio, which has no interval, is {position} the interval of ours"
    if bounds.low > ours.high:
        return "the original gains more"
    return "ours gains more" if bounds.high < ours.low else "no difference that these runs could tell"
