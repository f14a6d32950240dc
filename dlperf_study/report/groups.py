"""What is compared with what: each declared reference with the configurations that are compared with it."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.report.names import human
from dlperf_study.report.series import SEPARATOR, all_series, devices_of, level, measured_of, split_factors
from dlperf_study.study.words import counted

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
