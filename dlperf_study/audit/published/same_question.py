"""Which of our configurations match a published number."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.audit.published.source import MADE_UP, READ
from dlperf_study.core.arrays import Mask
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.parallel_parameters import DEGREES
from dlperf_study.study.parameter import IMAGES

#: What must be the same where the source states it: these parameters, the kind of device, and whether images are read.
_PUBLISHED_PARAMETERS = [name for name, entry in PARAMETERS.items() if entry.published or name == "strategy"]
#: How devices divide a model and its batches; logs of trainings that divide nothing do not say so.
DIVIDED = (*DEGREES, "zero_stage", "micro_batches", "activation_checkpointing")
#: What must have its default where the source states nothing, because one that used anything else would say so.
USUAL = ("memory_format", "gradient_compression", "cpu_limit", *DIVIDED)
SAME = ("device", *(name for name in _PUBLISHED_PARAMETERS if name not in USUAL), "images")


@dataclass(frozen=True)
class Difference:
    """A setting with two values; None is unknown or not stated."""

    name: str
    published: Any
    ours: Any


@dataclass(frozen=True)
class Match:
    """The configurations that match one published number.

    ``configuration_ids``: in the order of the plan. ``differences``: to the most similar measured configuration, if
    none matches. ``unstated``: names of ``SAME`` that the source does not state.
    """

    configuration_ids: tuple[str, ...]
    differences: tuple[Difference, ...]
    unstated: tuple[str, ...]


class SameQuestion:
    """The rule applied to published numbers and our configurations.

    Published numbers have the columns ``list_columns(PUBLISHED)``; configurations the parameters, ``configuration_id``
    and ``device``. With ``runs_completed``, measured configurations take precedence as the most similar.
    """

    def __init__(self, numbers: pd.DataFrame, configurations: pd.DataFrame) -> None:
        ours = configurations.assign(images=images_of_rows(configurations))
        self._identities = list(ours["configuration_id"])
        self._published, self._ours = dict[str, list[Any]](), dict[str, list[Any]]()
        self._differs = dict[str, Mask]()
        for name in (*SAME, *USUAL):
            self._published[name], self._ours[name] = _published_values(numbers, name), _our_values(ours, name)
            self._differs[name] = _differs(self._published[name], self._ours[name])
        self._count = np.sum(list(self._differs.values()), axis=0)
        self._measured = np.flatnonzero(ours.get("runs_completed", pd.Series(1, ours.index)).to_numpy() > 0)

    def matches(self) -> list[Match]:
        """Return what the rule says of each published number."""
        matches = []
        # The most similar one was measured, if any was.
        candidates = self._measured if self._measured.size else np.arange(len(self._identities))
        for row, counts in enumerate(self._count):
            configuration_ids = tuple(self._identities[column] for column in np.flatnonzero(counts == 0))
            nearest: tuple[Difference, ...] = ()
            if counts.size and not configuration_ids:
                nearest = self._differences(row, int(candidates[counts[candidates].argmin()]))
            unstated = tuple(name for name in SAME if self._published[name][row] is None)
            matches.append(Match(configuration_ids, nearest, unstated))
        return matches

    def unmatched(self) -> Mapping[str, tuple[Difference, ...]]:
        """Return configurations without a published match, and their differences."""
        unmatched = {}
        for column, configuration_id in enumerate(self._identities):
            counts = self._count[:, column]
            if counts.size and counts.min():
                unmatched[configuration_id] = self._differences(int(counts.argmin()), column)
        return unmatched

    def _differences(self, row: int, column: int) -> tuple[Difference, ...]:
        names = [name for name, differs in self._differs.items() if differs[row, column]]
        if "data_loader" in names and "images" in names:
            names.remove("images")
        return tuple(Difference(name, self._published[name][row], self._ours[name][column]) for name in names)


def _differs(published: list[Any], ours: list[Any]) -> Mask:
    """Return where values differ, published (rows) by configuration (columns).

    An unstated published value differs from nothing; an unknown value of ours differs from everything.
    """
    values = pd.Series(ours, dtype=object)
    masks = {}
    for value in set(published) - {None}:
        masks[value] = (values != value).to_numpy(np.bool_)
    masks[None] = np.zeros(len(ours), dtype=np.bool_)
    return np.array([masks[value] for value in published], dtype=np.bool_).reshape(len(published), len(ours))


def images_of_rows(rows: pd.DataFrame) -> list[str | None]:
    """Return whether the images of each row are synthetic or read."""
    images: dict[Any, str | None] = {None: None, PARAMETERS["image_dataset"].default: MADE_UP}
    return [images.get(image_dataset, READ) for image_dataset in _known(rows["image_dataset"])]


def _known(values: Iterable[Any]) -> list[Any]:
    """Return values with None for those that are missing."""
    return [None if pd.isna(value) else value for value in values]


def _our_values(configurations: pd.DataFrame, name: str) -> list[Any]:
    """Return our values, with defaults where a parameter does not apply."""
    values = configurations[name].astype(object)
    if name in DIVIDED:
        values = values.where(values.notna(), PARAMETERS[name].default)
    elif name in USUAL and PARAMETERS[name].samples == IMAGES:
        has_sequences = configurations["sequence_length"].fillna(0).astype(float) > 0
        values = values.where(values.notna() | ~has_sequences, PARAMETERS[name].default)
    return _known(values)


def _published_values(numbers: pd.DataFrame, name: str) -> list[Any]:
    """Return the value of ours that each number requires, or None."""
    nothing = pd.Series(index=numbers.index, dtype=object)
    printed, translated = (numbers.get(column, nothing).astype(object) for column in (name, f"matching_{name}"))
    usual = PARAMETERS[name].default if name in USUAL else None
    return [usual if pd.isna(value) else value for value in translated.where(translated.notna(), printed)]
