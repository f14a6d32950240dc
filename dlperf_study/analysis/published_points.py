"""Published results as points of scaling lines, and which of our configurations ask the same question."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.analysis.comparison import exact_interval
from dlperf_study.analysis.scaling import scaling_columns
from dlperf_study.analysis.statistics import interval_columns, median_interval, ratio_interval
from dlperf_study.arrays import Floats, Mask
from dlperf_study.published import PublishedSource, load, printed_table, read_source
from dlperf_study.study.configuration import PARAMETERS

#: A published result of one metric is told from all others by its line of points and its number of devices.
POINT = ["series", "world_size"]
RATIOS = ("speedup", "efficiency")
#: The parameters that make a question. Where a source does not state one, any value of ours will do.
ASKED = tuple(name for name, parameter in PARAMETERS.items() if parameter.published or name == "strategy")
#: Framework and strategy are named in a source's own words, which are never ours.
_NEVER_OURS = ("framework", "strategy")
#: How sources print what communication takes: a ratio, a share, or the times of which it is one.
_EXCHANGE = ("computation_to_communication", "communication_share", "report_gradient_seconds", "task_process_seconds")
_NO_RUNS: Floats = np.empty(0)


@dataclass(frozen=True)
class Published:
    """Some sources by name, their numbers, and the points of their scaling lines."""

    sources: Mapping[str, PublishedSource]
    cells: pd.DataFrame
    points: pd.DataFrame

    @classmethod
    def read(cls, names: tuple[str, ...]) -> "Published":
        """Read sources by name; raises PublishedError where one is not there or can't be read."""
        cells = load(names)
        return cls({name: read_source(name) for name in names}, cells, result_points(cells))

    def as_printed(self, source: str, table: str) -> pd.DataFrame:
        """Return one table as its authors printed it, as text."""
        return printed_table(self.cells[self.cells["source"] == source], table)

    def title_of(self, source: str, table: str) -> str:
        """Return the title of a source and of one of its tables."""
        known = self.sources[source]
        return f"{known.title}: {known.tables[table].title}"

    def results(self) -> list[tuple[str, str]]:
        """Return the source and the name of every table that has results, in order."""
        pairs = self.cells.loc[self.cells["role"] == "result", ["source", "table"]].drop_duplicates()
        return list(pairs.itertuples(index=False, name=None))


def result_points(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row per published throughput, with what it is relative to and the interval of its runs.

    Columns of ours mean what they mean elsewhere: ``throughput``, ``speedup`` and ``efficiency`` with their
    intervals, ``baseline_throughput``, ``is_baseline``. Ratios are computed from the printed throughputs;
    ``printed_ratio`` holds what the source printed, by the metric ``ratio``; ``keys`` names both cells. The baseline
    is the one that the source's ratio names; without a printed ratio, the single device of the same line. Intervals
    come from published runs: without at least three of a point, and for ratios of its baseline, there is none.
    """
    results = cells[cells["role"] == "result"]
    rates = results[results["metric"] == "throughput"].dropna(subset=["value"])
    points = rates.drop(columns="baseline").merge(_ratios(results), on=POINT, how="left", validate="one_to_one")
    alone = rates[rates["world_size"] == 1].set_index("series")["cell"]
    points["baseline"] = points["baseline"].fillna(points["series"].map(alone))
    runs = {str(cell): group.to_numpy(np.float64) for cell, group in cells.groupby("runs_of")["value"]}
    known = cells.set_index("cell")[["value", "world_size"]].to_dict("index")
    computed = [_computed(point, known, runs) for point in points.itertuples()]
    keys = [tuple(row.dropna()) for _, row in points[["cell", "ratio_cell"]].iterrows()]
    return points.assign(**pd.DataFrame(computed, columns=_COMPUTED, index=points.index), keys=keys)


def exchange_points(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row per point of which a source prints the communication, in the words of ``communication``.

    ``keys`` names the cells it is printed in.
    Where it prints times of a task, these are all-reduce over task; of a lone worker there is nothing to print.
    """
    results = cells[(cells["role"] == "result") & cells["metric"].isin(_EXCHANGE)].dropna(subset=["value"])
    groups = [group for _, group in results.groupby(POINT, sort=False)]
    said = [(group.iloc[0], _communication(group.set_index("metric")), tuple(group["cell"])) for group in groups]
    rows = [first.to_dict() | {"communication": words, "keys": keys} for first, words, keys in said if words]
    return pd.DataFrame(rows, columns=[*cells.columns, "communication", "keys"])


def matching_configurations(points: pd.DataFrame, configurations: pd.DataFrame) -> list[list[str]]:
    """Return, for each point, the identities of our configurations that ask what it answers.

    A point whose exchange has no counterpart among our frameworks has none.
    """
    return [_same(point, configurations) for point in points.to_dict("records")]


_COMPUTED = [
    *("throughput", "throughput_low", "throughput_high", "is_baseline", "baseline_throughput"),
    *(f"{name}{end}" for name in RATIOS for end in ("", "_low", "_high")),
]


def _communication(point: pd.DataFrame) -> str:
    """Return what is printed of one point's communication; empty where only the time of a whole task is."""
    for metric in _EXCHANGE[:2]:
        if metric in point.index:
            return str(point.loc[metric, "printed"] + point.loc[metric, "after"])
    if not set(_EXCHANGE[2:]) <= set(point.index):
        return ""
    exchange, task = (point.loc[metric, "value"] for metric in _EXCHANGE[2:])
    return f"{exchange / task:.0%} ({exchange:g} s of {task:g} s)"


def _ratios(results: pd.DataFrame) -> pd.DataFrame:
    """Return the printed ratio of each point."""
    ratios = results[results["metric"].isin(RATIOS)]
    shown = ratios["printed"] + ratios["after"].str.extract(r"^(%)", expand=False).fillna("")
    return ratios[[*POINT, "baseline"]].assign(ratio=ratios["metric"], printed_ratio=shown, ratio_cell=ratios["cell"])


def _computed(point: Any, known: Mapping[Any, Mapping[Any, Any]], runs: Mapping[str, Floats]) -> dict[str, Any]:
    own = runs.get(point.cell, _NO_RUNS)
    values = {"throughput": point.value, **interval_columns("throughput", median_interval(own)), "is_baseline": False}
    if pd.isna(point.baseline):
        return values
    alone, other = known[point.baseline], runs.get(point.baseline, _NO_RUNS)
    is_baseline = point.baseline == point.cell
    interval = exact_interval(1.0, own.size) if is_baseline else ratio_interval(own, other)
    sizes = int(point.world_size), int(alone["world_size"])
    return values | {
        "is_baseline": is_baseline,
        "baseline_throughput": alone["value"],
        **scaling_columns(point.value / alone["value"], interval, *sizes),
    }


def _same(point: dict[Any, Any], configurations: pd.DataFrame) -> list[str]:
    asked = {name: value for name in ASKED if (value := _asked(point, name)) is not None}
    if "framework" not in asked:
        return []
    same = np.logical_and.reduce([_is(configurations[name], value) for name, value in asked.items()])
    return list(configurations.loc[same, "identity"])


def _is(levels: pd.Series, value: Any) -> Mask:
    """Say which levels are a value; one that ours does not state, as old logs may not, is not."""
    same: Mask = (levels == value).fillna(False).to_numpy(np.bool_)
    return same


def _asked(point: dict[Any, Any], name: str) -> Any:
    """Return the level of a parameter with which ours asks the same question, or None where any does."""
    ours = point.get(f"our_{name}")
    stated = ours if ours is not None and not pd.isna(ours) else None if name in _NEVER_OURS else point[name]
    return None if stated is None or pd.isna(stated) else stated
