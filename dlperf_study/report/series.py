"""Which configurations form one line of a plot, and what a configuration is called where there is little room."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.analysis.scaling import series_factors
from dlperf_study.columns import COLUMNS
from dlperf_study.report.names import human
from dlperf_study.report.numbers import is_missing
from dlperf_study.study.words import counted

SEPARATOR = " · "


@dataclass(frozen=True)
class Series:
    """Configurations that differ only in how many devices they use, in the order of that number.

    The position is the same in every figure and for every model, so that a colour means one thing on all pages.
    """

    label: str
    position: int
    rows: pd.DataFrame

    @property
    def measured(self) -> pd.DataFrame:
        """The configurations with at least one completed run."""
        return measured_of(self.rows)


def measured_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return those of some configurations that have at least one completed run."""
    return rows[rows["throughput"].notna()]


def split_factors(dataset: Dataset) -> list[str]:
    """Return the varying parameters that tell lines apart, as the analysis splits its curves."""
    rows = dataset.configurations
    return [name for name in series_factors(rows, dataset.plan.scaling) if _varies(rows[name])]


def all_series(dataset: Dataset) -> list[Series]:
    """Return every line of the study, in the order of the plan."""
    split = split_factors(dataset)
    rows = dataset.configurations
    groups = [part for _, part in rows.groupby(split, sort=False, dropna=False)] if split else [rows]
    positions: dict[tuple[str, ...], int] = {}
    return [_series(split, positions, part) for part in groups]


def short_labels(series: list[Series]) -> list[str]:
    """Return the labels of series without the words they all have in common."""
    words = [one.label.split(SEPARATOR) for one in series]
    common = set.intersection(*map(set, words)) if len(words) > 1 else set()
    return [SEPARATOR.join(word for word in label if word not in common) for label in words]


def configuration_labels(dataset: Dataset) -> dict[str, str]:
    """Return what each configuration is called, by identity: its series and its devices."""
    series = all_series(dataset)
    return {
        str(row.identity): SEPARATOR.join(filter(None, [label, devices_of(row)]))
        for one, label in zip(series, short_labels(series), strict=True)
        for row in one.rows.itertuples()
    }


def devices_of(row: Any) -> str:
    """Return how many devices, nodes and servers a row of the configurations uses, in words; one node goes unsaid."""
    nodes = f" on {counted(row.nodes, 'node')}" if row.nodes > 1 else ""
    servers = f" + {counted(row.servers, 'server')}" if row.servers else ""
    return counted(row.world_size, "device") + nodes + servers


def level(factor: str, value: Any) -> str:
    """Return one level of a factor so that it is understood alone: ``ResNet-50``, ``Batch per device 32``."""
    if factor == "global_batch" and not value:
        return "global batch that can't be shared equally"
    if is_missing(value):
        return f"{COLUMNS[factor].label} not stated"
    if factor == "gradient_compression":
        return "uncompressed gradients" if value == "none" else f"{human(value)} gradients"
    named = isinstance(value, str) and value not in {"none", "replicated"}
    return human(value) if named else f"{COLUMNS[factor].label} {value}"


def _varies(levels: pd.Series) -> bool:
    """Say whether there is more than one level; a global batch of 0 stands for one that can't be shared equally."""
    known = levels[levels > 0] if levels.name == "global_batch" else levels
    return int(known.nunique()) > 1


def _series(split: list[str], positions: dict[tuple[str, ...], int], rows: pd.DataFrame) -> Series:
    """Return a line; it shares its position with those of other models that differ in nothing else."""
    first = rows.iloc[0]
    words = {factor: level(factor, first[factor]) for factor in split}
    besides_model = tuple(word for factor, word in words.items() if factor != "model")
    position = positions.setdefault(besides_model, len(positions))
    return Series(SEPARATOR.join(words.values()), position, rows.sort_values("world_size", kind="stable"))
