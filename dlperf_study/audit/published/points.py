"""Published results as points of scaling curves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.audit.published import PublishedSource, load, printed_table, read_source
from dlperf_study.metrics.comparison import compare_with_itself
from dlperf_study.metrics.scaling import scaling_columns
from dlperf_study.metrics.statistics import Estimate, Sample, interval_columns

POINT = ["series", "world_size"]
SCALING_RATIOS = ("speedup", "efficiency")
#: How sources print communication: a ratio, a share, or the two times of a share.
_COMMUNICATION = ["computation_to_communication", "communication_share"]
_COMMUNICATION += ["report_gradient_seconds", "task_process_seconds"]


@dataclass(frozen=True)
class Published:
    """Published sources, their numbers, and the points of their scaling curves."""

    sources: Mapping[str, PublishedSource]
    cells: pd.DataFrame
    points: pd.DataFrame

    @classmethod
    def read(cls, names: tuple[str, ...]) -> "Published":
        """Read sources by name; raises PublishedError if one is invalid."""
        cells = load(names)
        return cls({name: read_source(name) for name in names}, cells, result_points(cells))

    def as_printed(self, source: str, table: str) -> pd.DataFrame:
        """Return one table as its authors printed it, as strings."""
        return printed_table(self.cells[self.cells["source"] == source], table)

    def full_title(self, source: str, table: str) -> str:
        """Return the title of a source and one of its tables."""
        metadata = self.sources[source]
        return f"{metadata.title}: {metadata.tables[table].title}"

    def results(self) -> list[tuple[str, str]]:
        """Return source and name of every table with results."""
        pairs = self.cells.loc[self.cells["role"] == "result", ["source", "table"]].drop_duplicates()
        return list(pairs.itertuples(index=False, name=None))


def result_points(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row per published throughput, with its ratios and interval.

    ``baseline_printed`` is the text of the baseline's throughput. Ratios are computed from the printed throughputs;
    ``printed_ratio`` is the published ratio, by the metric ``ratio``; ``keys`` names both cells. The baseline is the
    one that the source names, else the single device of the series. Intervals need at least three published runs.
    """
    results = cells[cells["role"] == "result"]
    throughputs = results[results["metric"] == "throughput"].dropna(subset=["value"])
    ratios = results[results["metric"].isin(SCALING_RATIOS)]
    printed = ratios["printed"] + ratios["after"].str.extract(r"^(%)", expand=False).fillna("")
    printed_ratios = ratios[[*POINT, "baseline"]].assign(
        ratio=ratios["metric"], printed_ratio=printed, ratio_cell=ratios["cell"]
    )
    points = throughputs.drop(columns="baseline").merge(printed_ratios, on=POINT, how="left", validate="one_to_one")
    single_devices = throughputs[throughputs["world_size"] == 1].set_index("series")["cell"]
    own_baselines = points["series"].map(single_devices).astype(points["baseline"].dtype)
    points["baseline"] = points["baseline"].fillna(own_baselines)
    runs = {}
    for cell, of_cell in cells.groupby("runs_of"):
        # A source may drop the last zeros: the finest last digit is that of all.
        resolution = float(of_cell["resolution"].min())
        runs[str(cell)] = Sample(of_cell["value"].to_numpy(np.float64), resolution=resolution)
    cells_by_key = cells.set_index("cell")[["value", "printed", "world_size"]].to_dict("index")
    computed = []
    for point in points.itertuples():
        computed.append(_computed_columns(point, cells_by_key, runs))
    keys = [tuple(row.dropna()) for _, row in points[["cell", "ratio_cell"]].iterrows()]
    return points.assign(**pd.DataFrame(computed, columns=_COMPUTED, index=points.index), keys=keys)


_COMPUTED = ["throughput", "throughput_low", "throughput_high", "is_baseline"]
_COMPUTED += ["baseline_throughput", "baseline_printed", "speedup", "speedup_low", "speedup_high"]
_COMPUTED += ["efficiency", "efficiency_low", "efficiency_high"]


def _computed_columns(
    point: Any, cells_by_key: Mapping[Any, Mapping[Any, Any]], runs: Mapping[str, Sample]
) -> dict[str, Any]:
    throughput = _log_throughput(point.value, runs.get(point.cell))
    columns = {"throughput": point.value, **interval_columns("throughput", throughput.factor_interval())}
    columns["is_baseline"] = False
    if pd.isna(point.baseline):
        return columns
    baseline = cells_by_key[point.baseline]
    if point.baseline == point.cell:
        columns["is_baseline"] = True
        ratio = compare_with_itself(1)
        if point.cell in runs:
            ratio = compare_with_itself(runs[point.cell].values.size)
    else:
        ratio = throughput.minus(_log_throughput(baseline["value"], runs.get(point.baseline)))
    speedup, interval = point.value / baseline["value"], ratio.factor_interval()
    ratios = scaling_columns(speedup, interval, int(point.world_size), int(baseline["world_size"]))
    columns |= {"baseline_throughput": baseline["value"], "baseline_printed": baseline["printed"]}
    return columns | ratios


def _log_throughput(value: float, runs: Sample | None) -> Estimate:
    """Return the log of a printed throughput, from its runs if at least three."""
    if runs:
        return runs.logarithms.estimate
    return Estimate(math.log(value))


def communication_points(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row per point with printed communication.

    ``keys`` names its cells. For times of a task, the text has their quotient, all-reduce over task. A single worker
    has no communication.
    """
    results = cells[(cells["role"] == "result") & cells["metric"].isin(_COMMUNICATION)].dropna(subset=["value"])
    rows = []
    for _, point in results.groupby(POINT, sort=False):
        printed = (point["printed"] + point["after"]).set_axis(point["metric"])
        value = point["value"].set_axis(point["metric"])
        ratio, share, gradients, task = _COMMUNICATION
        if ratio in printed:
            communication = printed[ratio]
        elif share in printed:
            communication = printed[share]
        elif gradients in value and task in value:
            quotient = value[gradients] / value[task]
            communication = f"{quotient:.0%} ({value[gradients]:g} s of {value[task]:g} s)"
        else:
            continue
        rows.append(point.iloc[0].to_dict() | {"communication": communication, "keys": tuple(point["cell"])})
    return pd.DataFrame(rows, columns=[*cells.columns, "communication", "keys"])
