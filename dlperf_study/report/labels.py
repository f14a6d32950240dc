"""Names of configurations in findings, and in the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dlperf_study.core.wording import counted
from dlperf_study.dataset.configuration_table import planned_table
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.dataset.series import varying_factors
from dlperf_study.report import series
from dlperf_study.report.formatting import model_name
from dlperf_study.study.plan import Plan

_SIZE = ("world_size", "nodes", "parameter_servers")


@dataclass(frozen=True)
class Labels:
    """Names of the configurations of a study by identity."""

    dataset: Dataset

    def configuration(self, configuration_id: str) -> str:
        """Return ``ResNet-50 (all-reduce), 2 devices``; without devices if all configurations have as many."""
        sizes = self._study.configurations[[*_SIZE]].drop_duplicates()
        if len(sizes) == 1:
            return self.series(configuration_id)
        return f"{self.series(configuration_id)}, {series.devices_label(self._row(configuration_id))}"

    def series(self, configuration_id: str) -> str:
        """Return ``ResNet-50 (all-reduce)``: the model, and the values that distinguish its series."""
        model, values = model_name(self._row(configuration_id)), _series_values(self._study)[configuration_id]
        return f"{model} ({series.SEPARATOR.join(values)})" if values else model

    def versus(self, configuration_id: str, baseline_id: str) -> str:
        """Return ``ResNet-50, 2 vs 1 device``: what two configurations share, then in what they differ."""
        row, baseline = self._row(configuration_id), self._row(baseline_id)
        factors = [name for name in varying_factors(self._study) if name not in _SIZE]
        differing = [name for name in factors if not _is_same(row, baseline, name)]
        if not differing:
            return f"{self.series(configuration_id)}, {_devices_versus(row, baseline)}"
        usual = series.usual_values(self._study)
        shared = [model_name(row)] if "model" not in differing and "own_program" not in differing else []
        for name in factors:
            value = getattr(row, name)
            if name not in (*differing, "model", "own_program") and series.is_named(name, value, usual):
                shared.append(series.value_label(name, value))
        sides = self._values(row, differing), self._values(baseline, differing)
        if series.devices_label(row) == series.devices_label(baseline):
            shared.append(series.devices_label(row))
        else:
            for side, each in zip(sides, (row, baseline), strict=True):
                side.append(series.devices_label(each))
        compared = " vs ".join(map(", ".join, sides))
        return f"{', '.join(shared)} ({compared})" if shared else compared

    def _values(self, row: Any, names: Sequence[str]) -> list[str]:
        """Return the values of a configuration that do not go without saying; all if that leaves none."""
        needed = [name for name in names if not series.goes_without_saying(name, getattr(row, name))]
        return [series.value_label(name, getattr(row, name)) for name in needed or names]

    def _row(self, configuration_id: str) -> Any:
        return self._study.configuration_rows[configuration_id]

    @property
    def _study(self) -> Dataset:
        """The whole study: a baseline may not be among the selected configurations."""
        return self.dataset.whole or self.dataset


def planned_labels(plan: Plan) -> dict[str, str]:
    """Return the names of a plan's configurations by identity, as the report will name them."""
    nothing = pd.DataFrame()
    planned = Dataset(plan, Path(), nothing, planned_table(plan), nothing)
    names = Labels(planned)
    return {configuration_id: names.configuration(configuration_id) for configuration_id in plan.by_id}


def _is_same(row: Any, other: Any, name: str) -> bool:
    value, other_value = getattr(row, name), getattr(other, name)
    return bool(value == other_value) or bool(pd.isna(value) and pd.isna(other_value))


def _devices_versus(row: Any, baseline: Any) -> str:
    if (
        (row.nodes, row.parameter_servers) == (baseline.nodes, baseline.parameter_servers)
        and row.nodes == 1
        and not row.parameter_servers
    ):
        return f"{row.world_size} vs {counted(baseline.world_size, 'device')}"
    return f"{series.devices_label(row)} vs {series.devices_label(baseline)}"


@kept_with_dataset
def _series_values(dataset: Dataset) -> dict[str, list[str]]:
    """Return the fewest values that distinguish the series of each configuration from others of its model."""
    lines, factors = series.all_series(dataset), varying_factors(dataset)
    usual = series.usual_values(dataset)
    firsts = dataset.configurations.set_index("configuration_id").loc[[line.configuration_ids[0] for line in lines]]
    firsts = firsts[[*dict.fromkeys(("model", "own_program", *factors))]].astype(object)
    firsts = firsts.where(firsts.notna(), None).reset_index(drop=True)
    values: dict[str, list[str]] = {}
    for _, rows in firsts.groupby(["model", "own_program"], dropna=False):
        needed = _needed(rows, factors)
        for position, row in rows.iterrows():
            named = (name for name in needed if name not in usual or row[name] != usual[name])
            values |= dict.fromkeys(lines[position].configuration_ids, series.value_labels(row, named))
    return values


def _needed(rows: pd.DataFrame, factors: Sequence[str]) -> list[str]:
    needed = [factor for factor in factors if factor not in ("model", "own_program")]
    for factor in reversed(needed[:]):
        without = [name for name in needed if name != factor]
        if len(rows) == 1 or (without and not rows.duplicated(without).any()):
            needed = without
    return needed
