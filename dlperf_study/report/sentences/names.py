"""What sentences are made of: what they call a configuration, its numbers as the tables print them, and their page."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import pandas as pd

from dlperf_study.core.paths import is_building_report
from dlperf_study.dataset.cells import bounded_value, is_missing
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.dataset.series import varying_factors
from dlperf_study.metrics.statistics import Estimate, Interval, bounded
from dlperf_study.report import context
from dlperf_study.report.formatting import THIN_SPACE, column_text, html_text, model_name, unit_in, value_text
from dlperf_study.report.section import page_link
from dlperf_study.report.series import SEPARATOR, all_series, devices_label, level_label, usual_levels

#: How many sentences a reader who opens a page reads before the figure, and how many of them answer its first question.
MOST_SENTENCES, MOST_OF_FIRST = 5, 3
#: How many times the low end of an interval its high end may be: a sentence calls a wider one inconclusive.
MOST_TIMES = 10.0
#: Around the part of a sentence that a reader looks for. A name of a user that has one of them marks nothing.
_BEGIN, _END = "\x02", "\x03"
_MARKED = re.compile(f"{_BEGIN}([^{_BEGIN}{_END}]*){_END}")
_INTERVAL = re.compile(r"\[[^\[\]]*\]")


def answer(phrase: str) -> str:
    """Mark what a reader looks for first: a ratio or a share with its interval, a verdict, or that there is none.

    A page shows it in bold.
    """
    return f"{_BEGIN}{phrase}{_END}"


def _without_marks(sentence: str) -> str:
    return sentence.replace(_BEGIN, "").replace(_END, "")


def _unbroken(interval: re.Match[str]) -> str:
    """Return an interval that no line breaks."""
    return interval[0].replace(" ", "\N{NO-BREAK SPACE}")


#: The answer where there is none.
NOTHING = answer("Nothing can be concluded")


@dataclass(frozen=True)
class PageSentences:
    """The sentences that open a page, the most important first; ``conditions``: one line on what they hold for.

    ``is_first``: the page is the summary, which has all conditions; the others lead to them.
    ``marked``: the sentences, with the marks of ``answer``.
    """

    marked: tuple[str, ...]
    conditions: str = ""
    is_first: bool = False

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences as text."""
        return tuple(map(_without_marks, self.marked))

    @classmethod
    def of(cls, dataset: Dataset, sentences: Iterable[str], is_first: bool = False) -> "PageSentences":
        """Return the first sentences, each once, with the conditions of the study."""
        distinct = dict.fromkeys(filter(None, sentences))
        # Next to a notebook no page has the other conditions.
        is_whole = is_first or not is_building_report()
        conditions = context.page_conditions if is_whole else context.page_conditions_in_short
        return cls(tuple(distinct)[:MOST_SENTENCES], conditions(dataset), is_first)

    def __repr__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html_text(_INTERVAL.sub(_unbroken, sentence))}</li>" for sentence in self.marked)
        items = _without_marks(_MARKED.sub(r"<b>\1</b>", items))
        conditions = ""
        if self.conditions:
            anchor = ' id="conditions"' if self.is_first else ""
            has_link = is_building_report() and not self.is_first
            link = f" {page_link('index.html#conditions', 'All conditions')}" if has_link else ""
            conditions = f'<p class="conditions"{anchor}>{escape(self.conditions)}{link}</p>'
        return f'<div class="findings"><ul>{items}</ul>{conditions}</div>'


#: One per cent, as the unit in which shares are printed.
PERCENT = 0.01


@dataclass(frozen=True)
class Names:
    """What the configurations of a study are called in sentences."""

    dataset: Dataset

    def of_series(self, row: Any) -> str:
        """Return the model with what distinguishes its series: ``ResNet-50 (Horovod · Batch per device 8)``.

        Without the levels of most series, which the conditions of a page name.
        """
        label = _labels(self._whole)[row.identity]
        return f"{model_name(row)} ({label})" if label else model_name(row)

    def of_configuration(self, row: Any) -> str:
        """Return the name of the series, with the number of devices if that is not the same in the whole study."""
        return f"{self.of_series(row)} on {devices_label(row)}" if self._have_many_sizes else self.of_series(row)

    @cached_property
    def _have_many_sizes(self) -> bool:
        return len(self.dataset.configurations[["world_size", "nodes", "servers"]].drop_duplicates()) > 1

    def same_series(self, row: Any, other: Any) -> bool:
        """Return whether two configurations differ only in what they run on."""
        return self._series_of[row.identity] == self._series_of[other.identity]

    @cached_property
    def _series_of(self) -> dict[str, int]:
        """The number of the series of each configuration."""
        series = all_series(self._whole)
        return {identity: position for position, line in enumerate(series) for identity in line.identities}

    @property
    def _whole(self) -> Dataset:
        # A baseline may be none of the configurations that were selected.
        return self.dataset.whole or self.dataset


@kept_with_dataset
def _labels(dataset: Dataset) -> dict[str, str]:
    """Return what distinguishes the series of each configuration from the others of its model."""
    series, factors = all_series(dataset), varying_factors(dataset)
    needed = dataset.configurations.set_index("identity")[[*dict.fromkeys(("model", "own_program", *factors))]]
    firsts = needed.loc[[line.identities[0] for line in series]].reset_index(drop=True).astype(object)
    firsts = firsts.where(firsts.notna(), None)
    labels: dict[int, str] = {}
    for _, rows in firsts.groupby(["model", "own_program"], dropna=False):
        labels |= _distinguishing_labels(rows, factors, usual_levels(dataset))
    return {identity: labels[position] for position, line in enumerate(series) for identity in line.identities}


def _distinguishing_labels(rows: pd.DataFrame, factors: Sequence[str], usual: Mapping[str, Any]) -> dict[int, str]:
    """Return for each series of a model, by the index of ``rows``, the levels that no other of them has together.

    What a factor before it says too is left out, as is the usual level.
    """
    needed = [factor for factor in factors if factor not in ("model", "own_program")]
    for factor in reversed(needed[:]):
        without = [name for name in needed if name != factor]
        if len(rows) == 1 or (without and not rows.duplicated(without).any()):
            needed = without
    labels = {}
    for index, row in rows.iterrows():
        levels = [level_label(name, row[name]) for name in needed if name not in usual or row[name] != usual[name]]
        labels[int(str(index))] = SEPARATOR.join(levels)
    return labels


def quantity_text(dataset: Dataset, row: Any, name: str) -> str:
    """Return a measured value of a configuration with its interval, in the unit of tables: ``20.6 ms [17.7, 23.4]``."""
    unit = unit_in(dataset.configurations, name)
    return column_text(row, name, f" {unit.symbol}", unit.size)


def percent_text(share: Estimate) -> str:
    """Return a share of a whole with its interval in per cent: ``17 % [15, 19]``."""
    printed = value_text(bounded(share.mean, share.share_interval()), f"{THIN_SPACE}%", size=PERCENT)
    return answer(printed) if share.error is not None else printed


def together(confidence: float, count: int) -> float:
    """Return the confidence of each of several intervals that hold the truth together with ``confidence``.

    At the level of Bonferroni. ``count``: also of those from which these were chosen by what they are, because the
    largest of many seems larger than it is.
    """
    return 1 - (1 - confidence) / count


def is_vague(interval: Interval) -> bool:
    """Return whether a sentence had better not print a value: the ends of its interval differ so much."""
    return interval.low <= 0 or interval.high > MOST_TIMES * interval.low


def is_vague_column(row: Any, name: str) -> bool:
    """Return whether the interval of a column of a row is so wide; one without an interval is not."""
    _, low, high = bounded_value(row, name)
    return low is not None and high is not None and not is_missing(low) and is_vague(Interval(low, high))
