"""Series, groups and their labels: lines of a plot and groups of a table."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import compress, filterfalse
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.audit.published.points import Published
from dlperf_study.core.arrays import Integers
from dlperf_study.core.wording import counted
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.dataset.series import series_numbers, varying_factors
from dlperf_study.metrics.columns import COLUMNS, column_named
from dlperf_study.report.formatting import display_name, is_named_default, model_name, text_if, value_with_unit
from dlperf_study.study.communication import COLLECTIVES, STRATEGIES
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.parallel_parameters import ParallelParameters

SEPARATOR = " · "
#: What may vary within a group without being a factor of the study.
_COUNTED = (("nodes", "node"), ("parameter_servers", "server"))
_GROUP_COLUMNS = ("framework", "model", "own_program", "nodes", "parameter_servers", "world_size", "is_reference")
_WHAT_TRAINS = ("framework", "model", "own_program")
#: Of fewer series no value is the usual one.
LEAST_USUAL = 2
_NONE_OF = {
    "loss_scaling": "loss not scaled",
    "compiler": "not compiled",
    "image_dataset": "synthetic images",
    "gradient_compression": "uncompressed gradients",
}
#: Parameters whose values say nothing alone.
_WITH_LABEL = ("loss_scaling", "cudnn_autotune", "fused_optimizer", "activation_checkpointing")
#: Parameters of how devices divide a model: where they divide nothing, nothing is said of it.
_OF_DIVISION = tuple(field.name for field in fields(ParallelParameters))
#: Parameters whose default goes without saying where others have another value.
_UNSAID_DEFAULTS = (
    *("nodes", "parameter_servers", "compiler", "image_dataset", "memory_limit_mib", "cpu_limit"),
    *(*_WITH_LABEL, *_OF_DIVISION),
)
_OF_PUBLISHED_LINES = (
    *("program", "mode", "parameter_servers", "batch_per_device", "precision"),
    *("loss_scaling", "compiler", "data_loader", "extra"),
)


def ordered_values(values: pd.Series) -> list[Any]:
    """Return the values that a column has, in order."""
    return sorted(values.dropna().unique().tolist())


@dataclass(frozen=True)
class Series:
    """Configurations that differ only in their number of devices.

    The position is the same in every figure and for every model, so that a colour means one thing on all pages.
    ``label``: its values but the usual ones, which the conditions name; ``full_label``: all. ``unusual``: those of its
    values that differ from a usual one. ``throughput_column``: the column of the throughputs that are compared.
    ``part``: which rows of ``table`` are its own.
    """

    label: str
    position: int
    table: pd.DataFrame
    throughput_column: str = "throughput"
    full_label: str = ""
    unusual: frozenset[str] = frozenset()
    part: slice = field(default_factory=lambda: slice(None))

    # Not kept: rows of thousands of series would take gigabytes, as each has two hundred columns.
    @property
    def rows(self) -> pd.DataFrame:
        """Its configurations."""
        return self.table.iloc[self.part]

    @property
    def configuration_ids(self) -> list[str]:
        """The identities of its configurations."""
        return list(self.table["configuration_id"].iloc[self.part])

    @property
    def measured_identities(self) -> list[str]:
        """The identities of its configurations with a throughput."""
        return list(compress(self.configuration_ids, self.table[self.throughput_column].iloc[self.part].notna()))

    @property
    def measured(self) -> pd.DataFrame:
        """The configurations with a throughput, of at least one completed run."""
        return self.rows[self.rows[self.throughput_column].notna()]


@kept_with_dataset
def all_series(dataset: Dataset) -> list[Series]:
    """Return every series of the study, in the order of the plan.

    A series shares its position with those of other models that differ in nothing else.
    """
    factors, usual = varying_factors(dataset), usual_values(dataset.whole or dataset)
    positions_in_plan, all_values = _values_of_series(dataset, usual)
    labels, full_labels = (_series_labels(all_values, factors, left_out) for left_out in (usual, {}))
    # Sorted and divided once: to filter and sort so wide a table for each of thousands of series takes minutes.
    rows = dataset.configurations
    by_series = rows.iloc[np.lexsort((rows["world_size"], positions_in_plan))]
    ends = np.cumsum(np.bincount(positions_in_plan, minlength=len(all_values)))
    positions: dict[tuple[str, ...], int] = {}
    series = []
    for begin, end, values, label, full_label in zip((0, *ends), ends, all_values, labels, full_labels, strict=False):
        named = tuple(value_labels(values, filter("model".__ne__, factors)))
        position = positions.setdefault(named, len(positions))
        unusual = frozenset(value_labels(values, (name for name in usual if values[name] != usual[name])))
        part = slice(begin, end)
        series.append(Series(label, position, by_series, dataset.throughput_column, full_label, unusual, part))
    return series


def _values_of_series(dataset: Dataset, names: Collection[str]) -> tuple[Integers, list[dict[str, Any]]]:
    """Return each configuration's series number, and each series' values."""
    factors, rows, positions_in_plan = varying_factors(dataset), dataset.configurations, series_numbers(dataset)
    _, firsts = np.unique(positions_in_plan, return_index=True)
    values = rows[[*dict.fromkeys(("model", *factors, *names))]].iloc[firsts]
    return positions_in_plan, values.astype(object).where(values.notna(), None).to_dict("records")


def _series_labels(
    all_values: Sequence[Mapping[str, Any]], factors: Sequence[str], usual: Mapping[str, Any]
) -> list[str]:
    """Return the labels of series without values that need no name.

    If a label would not be distinct, all have the usual values too, or all values.
    """
    for left_out in (usual, {}):
        labels = []
        for values in all_values:
            labels.append(value_labels(values, (name for name in factors if is_named(name, values[name], left_out))))
        shared = set.intersection(*map(set, labels)) if labels else set()
        if all(set(label) - shared for label in labels):
            return list(map(SEPARATOR.join, labels))
    return [SEPARATOR.join(value_labels(values, factors)) for values in all_values]


def value_labels(values: Mapping[str, Any] | pd.Series, names: Iterable[str]) -> list[str]:
    """Return the labels of some values."""
    return [value_label(name, values[name]) for name in names]


def is_named(factor: str, value: Any, usual: Mapping[str, Any]) -> bool:
    """Return whether names include a value: it is not the usual one."""
    if factor in usual:
        return bool(value != usual[factor]) and not (factor == "strategy" and goes_without_saying(factor, value))
    return not goes_without_saying(factor, value)


def goes_without_saying(factor: str, value: Any) -> bool:
    """Return whether a value is a default that names leave out."""
    if factor == "strategy" and value in STRATEGIES:
        return STRATEGIES[value].communication == COLLECTIVES
    return factor in _UNSAID_DEFAULTS and value == PARAMETERS[factor].default


@kept_with_dataset
def usual_values(dataset: Dataset) -> dict[str, Any]:
    """Return the values that most series have, except models and frameworks."""
    factors = varying_factors(dataset)
    # Of each series all configurations have the same values.
    firsts = dataset.configurations[factors].drop_duplicates()
    usual = {}
    for factor in factors:
        counts = firsts[factor].value_counts()
        if factor not in _WHAT_TRAINS and counts.iloc[0] > len(firsts) / 2 and len(firsts) > LEAST_USUAL:
            usual[factor] = counts.index[0]
    return usual


def short_labels(series: list[Series]) -> list[str]:
    """Return the labels of series without their common usual parts."""
    labels = [line.label.split(SEPARATOR) for line in series]
    common = set.intersection(*map(set, labels)) if len(labels) > 1 else set()
    common -= frozenset().union(*(line.unusual for line in series))
    return [SEPARATOR.join(filterfalse(common.__contains__, label)) for label in labels]


@kept_with_dataset
def configuration_labels(dataset: Dataset) -> dict[str, str]:
    """Return each configuration's label by identity: series and devices."""
    series = all_series(dataset)
    return _with_devices(dataset, series, short_labels(series))


def full_configuration_labels(dataset: Dataset) -> dict[str, str]:
    """Return the same labels with all values that vary."""
    series = all_series(dataset)
    return _with_devices(dataset, series, list(map(attrgetter("full_label"), series)))


def _with_devices(dataset: Dataset, series: Sequence[Series], names: Sequence[str]) -> dict[str, str]:
    labels = {}
    for line, name in zip(series, names, strict=True):
        for row in map(dataset.configuration_rows.__getitem__, line.configuration_ids):
            labels[str(row.configuration_id)] = joined(name, devices_label(row))
    return labels


def joined(*labels: str) -> str:
    """Return labels as one, without the empty ones."""
    return SEPARATOR.join(filter(None, labels))


def devices_label(row: Any) -> str:
    """Return a row's devices, nodes and servers; one node is omitted."""
    nodes = text_if(row.nodes > 1, f" on {counted(row.nodes, 'node')}")
    return (
        counted(row.world_size, "device")
        + nodes
        + text_if(row.parameter_servers, f" + {counted(row.parameter_servers, 'server')}")
    )


def value_label(factor: str, value: Any) -> str:
    """Return a value that is understood alone: ``Batch per device 32``."""
    if factor == "global_batch" and not value:
        return "global batch that cannot be split equally"
    if is_missing(value):
        return f"{column_named(factor).label} not stated"
    if is_named_default(factor, value) and PARAMETERS[factor].default_name == "no limit":
        return f"no {column_named(factor).words}"
    if factor == "gradient_compression" and value != "none":
        return f"{display_name(value)} gradients"
    if value == "none" and factor in _NONE_OF:
        return _NONE_OF[factor]
    if factor not in COLUMNS:
        return f"{factor} {value_with_unit(factor, value)}"
    if factor in PARAMETERS and PARAMETERS[factor].type is bool and value:
        return column_named(factor).label
    if isinstance(value, str) and value not in {"none", "replicated"} and factor not in _WITH_LABEL:
        return display_name(value)
    return f"{column_named(factor).label} {value_with_unit(factor, value)}"


@dataclass(frozen=True)
class Group:
    """A reference, first in ``members``, and the configurations compared with it.

    Further columns: ``label``, in what one differs from the reference; ``other_differences``, without framework,
    strategy and devices; ``position`` of its series. ``shared``: what all have in common; ``throughput_column``: its
    column.
    """

    shared: str
    rows: pd.DataFrame
    members: tuple[Any, ...]
    throughput_column: str

    @property
    def label(self) -> str:
        """The model and shared values: ``MobileNetV2 · 2 devices``."""
        shared = self.shared if self.rows["world_size"].nunique() == 1 else f"against {self.shared}"
        return joined(model_name(self.reference), shared, "" if self.compared else "nothing compared")

    @property
    def reference(self) -> Any:
        """The row of the reference."""
        return self.members[0]

    @property
    def compared(self) -> tuple[Any, ...]:
        """The rows that are compared with it."""
        return self.members[1:]

    @cached_property
    def measured(self) -> pd.DataFrame:
        """The configurations with at least one completed run."""
        return self.rows[self.rows[self.throughput_column].notna()]


@kept_with_dataset
def all_groups(dataset: Dataset, model: str | None = None) -> list[Group]:
    """Return every group of the study or of one model."""
    positions = {}
    for line in all_series(dataset):
        positions.update(dict.fromkeys(line.configuration_ids, line.position))
    rows = dataset.configurations
    references = rows.loc[rows["is_reference"] & ((rows["model"] == model) | (model is None)), "configuration_id"]
    order = {configuration_id: position for position, configuration_id in enumerate(references)}
    rows = rows.assign(position=rows["configuration_id"].map(positions), group=rows["reference_id"].map(order))
    rows = rows.dropna(subset="group").sort_values(["group", "is_reference"], ascending=[True, False], kind="stable")
    factors = list(filter("model".__ne__, varying_factors(dataset)))
    return _groups(rows, factors, usual_values(dataset.whole or dataset), dataset.throughput_column)


def _groups(rows: pd.DataFrame, factors: list[str], usual: Mapping[str, Any], throughput: str) -> list[Group]:
    """Return the groups of rows sorted by ``group``, each reference first."""
    # A tuple of all columns takes long: all are made at once, and only of the needed ones before the labels are known.
    needed = list(rows[[*dict.fromkeys((*factors, *_GROUP_COLUMNS))]].itertuples())
    ends = rows["group"].value_counts(sort=False).cumsum()
    parts = list(map(slice, ends.shift(fill_value=0), ends))
    settings, labels, other_differences = [], list[str](), list[str]()
    for part in parts:
        shared = [name for name in factors if len(needed[part]) > 1 and rows[name].iloc[part].nunique() == 1]
        reference = needed[part][0]
        values = reference._asdict()
        named = (name for name in shared if is_named(name, values[name], usual))
        settings.append(joined(*value_labels(values, named), devices_label(reference)))
        differing = [name for name in factors if name not in shared]
        for row in needed[part]:
            devices = text_if(row.world_size != reference.world_size, counted(row.world_size, "device"))
            label = joined(_differences(row, reference, differing, usual), devices)
            # Or else what trains: the framework, or a user's program.
            program = display_name(row.framework) if is_missing(row.own_program) else model_name(row)
            labels.append(label or program)
        other_factors = [name for name in differing if name not in ("framework", "strategy")]
        other_differences += [_differences(row, reference, other_factors, usual) for row in needed[part]]
    rows = rows.drop(columns="group").assign(label=labels, other_differences=other_differences)
    members = tuple(rows.itertuples())
    return [
        Group(setting, rows.iloc[part], members[part], throughput)
        for part, setting in zip(parts, settings, strict=True)
    ]


def _differences(row: Any, reference: Any, factors: list[str], usual: Mapping[str, Any]) -> str:
    """Return the values in which a row differs from its reference."""
    values, needed = {}, []
    for name in factors:
        value = _comparable(getattr(row, name))
        is_shown = value != _comparable(getattr(reference, name))
        if row.is_reference:
            is_shown = name not in usual or value != usual[name]
        if is_shown:
            values[name] = value
            if name not in ("strategy", *_OF_DIVISION) or not goes_without_saying(name, value):
                needed.append(name)
    labels = value_labels(values, needed or values)
    for name, noun in _COUNTED:
        count = getattr(row, name)
        if name not in factors and count != getattr(reference, name):
            labels.append(counted(count, noun))
    return SEPARATOR.join(labels)


def _comparable(value: Any) -> Any:
    """Return a value; None if missing, since NaN differs from NaN."""
    return None if is_missing(value) else value


def published_labels(points: pd.DataFrame) -> pd.Series:
    """Return the distinguishing label of each point's line, or its program."""
    columns: Sequence[str] = list(_OF_PUBLISHED_LINES)
    varying = points.groupby(["source", "table"])[columns].transform("nunique") > 1
    labels = []
    for index, point in points.iterrows():
        names = [name for name in columns if varying.loc[index, name] and not is_missing(point[name])]
        labels.append(SEPARATOR.join(value_labels(point, names)) or str(point["program"]))
    return pd.Series(labels, index=points.index, dtype=str)


def titled_published_labels(published: Published, points: pd.DataFrame) -> pd.Series:
    """Return each point's label, with the table title if several."""
    labels, tables = published_labels(points), points.groupby(["source", "table"])["series"]
    if tables.ngroups < 2:
        return labels
    is_only_line = tables.transform("nunique") == 1
    titles = [published.sources[row.source].tables[row.table].title for row in points.itertuples()]
    return pd.Series(titles, index=points.index, dtype=str) + (SEPARATOR + labels).where(~is_only_line, "")
