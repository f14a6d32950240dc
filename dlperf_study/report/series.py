"""Which configurations form one line of a plot, and what a configuration is called where there is little room."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlperf_study.analysis.scaling import series_factors
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.formatting import human, is_missing
from dlperf_study.wording import counted

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


# What is compared with what: each declared reference with the configurations that are compared with it.


#: What may vary along a series, where it is no factor that names one.
_COUNTED = (("nodes", "node"), ("servers", "server"))


@dataclass(frozen=True)
class Group:
    """A reference and what is compared with it.

    ``rows`` are rows of the configurations, the reference first, with three more columns: ``label``, in what a
    configuration differs from its reference; ``besides``, the same without framework, strategy and devices; and
    ``position``, that of its series in every figure.
    """

    model: str
    place: str
    rows: pd.DataFrame

    @property
    def label(self) -> str:
        """The model and what else all have in common: ``MobileNetV2 · 2 devices``."""
        return SEPARATOR.join((human(self.model), self.place))

    @property
    def reference(self) -> Any:
        """The row of the reference."""
        return next(self.rows.itertuples())

    @property
    def others(self) -> list[Any]:
        """The rows that are compared with it."""
        return list(self.rows.itertuples())[1:]

    @property
    def measured(self) -> pd.DataFrame:
        """The configurations with at least one completed run."""
        return measured_of(self.rows)


def all_groups(dataset: Dataset, model: str | None = None) -> list[Group]:
    """Return every group of the study or of one of its models, in the order of the plan."""
    rows = dataset.configurations
    positions = {identity: one.position for one in all_series(dataset) for identity in one.rows["identity"]}
    rows = rows.assign(position=rows["identity"].map(positions))
    references = rows[rows["is_reference"] & ((rows["model"] == model) | (model is None))]
    return [_group(dataset, rows, identity) for identity in references["identity"]]


def _group(dataset: Dataset, rows: pd.DataFrame, identity: str) -> Group:
    ours = rows[rows["reference_identity"] == identity].sort_values("is_reference", ascending=False, kind="stable")
    factors = [name for name in split_factors(dataset) if name != "model"]
    shared = [name for name in factors if len(ours) > 1 and ours[name].nunique() == 1]
    reference = next(ours.itertuples())
    place = [*(level(name, getattr(reference, name)) for name in shared), devices_of(reference)]
    named = [name for name in factors if name not in shared]
    besides = [name for name in named if name not in ("framework", "strategy")]
    words = ours.assign(
        label=[_label(row, reference, named) for row in ours.itertuples()],
        besides=[_words(row, reference, besides) for row in ours.itertuples()],
    )
    return Group(reference.model, SEPARATOR.join(place), words)


def _label(row: Any, reference: Any, factors: list[str]) -> str:
    words = _words(row, reference, factors)
    size = counted(row.world_size, "device") if row.world_size != reference.world_size else ""
    return SEPARATOR.join(filter(None, (words, size))) or human(row.framework)


def _words(row: Any, reference: Any, factors: list[str]) -> str:
    """Return in what a row differs from its reference; of the reference, in what the others do."""
    differing = [name for name in factors if row.is_reference or getattr(row, name) != getattr(reference, name)]
    counts = [(getattr(row, name), getattr(reference, name), noun) for name, noun in _COUNTED if name not in factors]
    extent = [counted(own, noun) for own, other, noun in counts if own != other]
    return SEPARATOR.join([*(level(name, getattr(row, name)) for name in differing), *extent])
