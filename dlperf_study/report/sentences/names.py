"""What sentences call a configuration, and how they print its numbers: as the tables print them."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dlperf_study.analysis.statistics import CONFIDENCE, Estimate
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.formatting import (
    THIN_SPACE,
    bounded_value,
    display_name,
    is_missing,
    unit_of,
    value_text,
    with_interval,
)
from dlperf_study.report.sentences.page_sentences import answer
from dlperf_study.report.series import SEPARATOR, all_series, devices_label, short_labels

#: One per cent, as the unit in which shares are printed.
PERCENT = 0.01


@dataclass(frozen=True)
class Names:
    """What the configurations of a study are called in sentences."""

    dataset: Dataset

    def of_series(self, row: Any) -> str:
        """Return the model with what distinguishes its series: ``ResNet-50 (PaddlePaddle collective · fp16)``."""
        model = display_name(row.model)
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
        series = all_series(self.dataset)
        labels: dict[str, str] = {}
        for line, label in zip(series, short_labels(series), strict=True):
            labels |= dict.fromkeys(line.rows["identity"], label)
        return labels


def two_rates(row: Any, other: Any) -> str:
    """Return two throughputs with their unit: ``65.5 instead of 40.7 samples/s``, or tokens/s of ingested logs."""
    is_in_tokens = is_missing(row.throughput) or is_missing(other.throughput)
    name = "token_throughput" if is_in_tokens else "throughput"
    first, second = (with_interval(*bounded_value(each, name))[0] for each in (row, other))
    return f"{first} instead of {second} {unit_of(name, []).symbol}"


def quantity_text(row: Any, name: str) -> str:
    """Return a measured value of a configuration with its interval, if it has one: ``20.6 ms [17.7, 23.4]``."""
    unit = unit_of(name, [getattr(row, name)])
    return value_text(bounded_value(row, name), f" {unit.symbol}", decision=0.0, size=unit.size)


def percent_text(share: Estimate) -> str:
    """Return a share with its interval in per cent: ``17 % [15, 19]``."""
    printed = value_text(share.bounded, f"{THIN_SPACE}%", decision=0.0, size=PERCENT)
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
) -> str:
    """Return bounds that hold several true values at once in 95 % of cases: ``[1.2, 3.5]``; of one, with its value.

    Each has its interval at the level of Bonferroni, of ``total`` from which these were chosen by what they are: the
    largest of many seems larger than it is. ``size``: one unit of what is printed. ``is_ratio``: the estimates
    are of logarithms. ``limits``: what is known of all besides. All must have an interval.
    """
    intervals = [estimate.interval(together(CONFIDENCE, total)) for estimate in estimates]
    bounds = [interval.exponential if is_ratio else interval for interval in intervals if interval]
    low = max(limits[0], min(bound.low for bound in bounds) / size)
    high = min(limits[1], max(bound.high for bound in bounds) / size)
    printed, interval = with_interval(estimates[0].factor if is_ratio else estimates[0].mean / size, low, high)
    return interval if len(estimates) > 1 else f"{printed} {interval}"
