"""What sentences are made of: what they call a configuration, its numbers as the tables print them, and their page."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.statistics import CONFIDENCE, Estimate, Interval, bounded
from dlperf_study.report import context
from dlperf_study.report.formatting import (
    THIN_SPACE,
    column_text,
    format_bounded,
    format_column,
    html_text,
    model_name,
    unit_in,
    unit_of,
    value_text,
)
from dlperf_study.report.series import SEPARATOR, all_series, devices_label, short_labels

#: So many configurations are named.
MOST_NAMED = 3
#: A reader who opens a page reads no more than these before the figure.
MOST_SENTENCES = 5
#: Around the part of a sentence that a reader looks for; in no name and no number.
_BEGIN, _END = "\x02", "\x03"
_INTERVAL = re.compile(r"\[[^\[\]]*\]")


def answer(phrase: str) -> str:
    """Mark what a reader looks for first: a ratio or a share with its interval, a verdict, or that there is none.

    A page shows it in bold.
    """
    return f"{_BEGIN}{phrase}{_END}"


def _unbroken(interval: re.Match[str]) -> str:
    """Return an interval that no line breaks."""
    return interval[0].replace(" ", "\N{NO-BREAK SPACE}")


#: The answer where there is none.
NOTHING = answer("Nothing can be concluded")


@dataclass(frozen=True)
class PageSentences:
    """The sentences that open a page, the most important first; ``conditions``: one line on what they hold for.

    ``marked``: the sentences, with the marks of ``answer``.
    """

    marked: tuple[str, ...]
    conditions: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences as text."""
        return tuple(sentence.replace(_BEGIN, "").replace(_END, "") for sentence in self.marked)

    @classmethod
    def of(cls, dataset: Dataset, sentences: Iterable[str]) -> "PageSentences":
        """Return the first sentences, each once, with the conditions of the study."""
        distinct = dict.fromkeys(filter(None, sentences))
        return cls(tuple(distinct)[:MOST_SENTENCES], context.page_conditions(dataset))

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html_text(_INTERVAL.sub(_unbroken, sentence))}</li>" for sentence in self.marked)
        items = items.replace(_BEGIN, "<b>").replace(_END, "</b>")
        conditions = f'<p class="conditions">{escape(self.conditions)}</p>' if self.conditions else ""
        return f'<div class="findings"><ul>{items}</ul>{conditions}</div>'


#: One per cent, as the unit in which shares are printed.
PERCENT = 0.01


@dataclass(frozen=True)
class Names:
    """What the configurations of a study are called in sentences."""

    dataset: Dataset

    def of_series(self, row: Any) -> str:
        """Return the model with what distinguishes its series: ``ResNet-50 (PaddlePaddle collective · fp16)``."""
        model = model_name(row)
        other_parts = [part for part in self._labels[row.identity].split(SEPARATOR) if part and part != model]
        return f"{model} ({SEPARATOR.join(other_parts)})" if other_parts else model

    def of_configuration(self, row: Any) -> str:
        """Return the name of the series, with the number of devices if that is not the same in the whole study."""
        return f"{self.of_series(row)} on {devices_label(row)}" if self._have_many_sizes else self.of_series(row)

    @cached_property
    def _have_many_sizes(self) -> bool:
        return len(self.dataset.configurations[["world_size", "nodes", "servers"]].drop_duplicates()) > 1

    def same_series(self, row: Any, other: Any) -> bool:
        """Return whether two configurations differ only in what they run on."""
        return row.model == other.model and self._labels[row.identity] == self._labels[other.identity]

    @cached_property
    def _labels(self) -> dict[str, str]:
        # A baseline may be none of the configurations that were selected.
        series = all_series(self.dataset.whole or self.dataset)
        labels: dict[str, str] = {}
        for line, label in zip(series, short_labels(series), strict=True):
            labels |= dict.fromkeys(line.rows["identity"], label)
        return labels


def two_rates(row: Any, other: Any, name: str) -> str:
    """Return two rates of a column with their unit: ``65.5 instead of 40.7 samples/s``."""
    first, second = (format_column(each, name)[0] for each in (row, other))
    return f"{first} instead of {second} {unit_of(name, []).symbol}"


def quantity_text(dataset: Dataset, row: Any, name: str) -> str:
    """Return a measured value of a configuration with its interval, in the unit of tables: ``20.6 ms [17.7, 23.4]``."""
    unit = unit_in(dataset.configurations, name)
    return column_text(row, name, f" {unit.symbol}", unit.size)


def percent_text(share: Estimate) -> str:
    """Return a share of a whole with its interval in per cent: ``17 % [15, 19]``."""
    printed = value_text(bounded(share.mean, share.share_interval()), f"{THIN_SPACE}%", size=PERCENT)
    return answer(printed) if share.error is not None else printed


def together(confidence: float, count: int) -> float:
    """Return the confidence of each of several intervals that hold the truth together with ``confidence``."""
    return 1 - (1 - confidence) / count


def range_text(
    estimates: list[Estimate],
    total: int,
    size: float = 1.0,
    is_ratio: bool = False,
    limits: tuple[float, float] = (-math.inf, math.inf),
    interval_of: Callable[[Estimate, float], Interval | None] = Estimate.interval,
) -> str:
    """Return bounds that hold several true values at once in 95 % of cases: ``[1.2, 3.5]``; of one, with its value.

    Each has its interval at the level of Bonferroni, of ``total`` from which these were chosen by what they are: the
    largest of many seems larger than it is. ``size``: one unit of what is printed. ``is_ratio``: the estimates
    are of logarithms. ``limits``: what is known of all besides. ``interval_of``: an estimate, with a confidence. All
    must have an interval.
    """
    intervals = [interval_of(estimate, together(CONFIDENCE, total)) for estimate in estimates]
    bounds = [interval.exponential if is_ratio else interval for interval in intervals if interval]
    low = max(limits[0], min(bound.low for bound in bounds) / size)
    high = min(limits[1], max(bound.high for bound in bounds) / size)
    if len(estimates) > 1:
        return format_bounded(low, low, high)[1]
    return " ".join(format_bounded(estimates[0].factor if is_ratio else estimates[0].mean / size, low, high))
