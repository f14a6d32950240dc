"""Which configurations of two studies are the same but for the name of the study, which is part of every identity."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd

from dlperf_study.history.measurements import Measurement
from dlperf_study.plan.plan import Entry
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.parameter import Scalar

#: The parameters that tell configurations apart, whatever their study is called.
_IDENTIFYING = tuple(name for name, entry in PARAMETERS.items() if entry.in_identity and name != "study")
#: The columns of tables that have identities.
_IDENTITIES = ("identity", "baseline_identity", "reference_identity")

#: What tells a configuration apart, by name; None where it is not stated.
IdentifyingValues = Mapping[str, Scalar | None]


def with_identities_of(before: Measurement, after: Measurement) -> Measurement:
    """Return ``after`` with the identities of ``before`` for configurations that differ in the study's name only."""
    if before.dataset.plan.study == after.dataset.plan.study:
        return after
    identities = {tuple(values.items()): identity for identity, values in identifying_values(before).items()}
    renamed = {}
    for identity, values in identifying_values(after).items():
        renamed[identity] = identities.get(tuple(values.items()), identity)
    return _renamed(after, renamed, before.dataset.plan.study)


def differences_of_most_similar(before: Measurement, after: Measurement) -> dict[str, tuple[Scalar | None, ...]]:
    """Return in what the two most similar configurations with completed runs differ, and the values of each."""
    pairs = product(_of_completed_runs(before), _of_completed_runs(after))
    return min((_differences(*pair) for pair in pairs), key=len, default={})


def _of_completed_runs(measurement: Measurement) -> list[IdentifyingValues]:
    by_identity = identifying_values(measurement)
    return [by_identity[identity] for identity in measurement.throughputs]


def identifying_values(measurement: Measurement) -> dict[str, IdentifyingValues]:
    """Return what tells each configuration of a measurement apart, by identity."""
    rows = measurement.dataset.configuration_rows
    by_identity = measurement.dataset.plan.by_identity
    return {identity: _identifying_values(entry, rows.get(identity)) for identity, entry in by_identity.items()}


def _identifying_values(entry: Entry, row: Any) -> IdentifyingValues:
    """Return what tells one configuration apart; ``row``: of the table of configurations.

    A batch that devices can't share equally is 0 whatever it is, and samples of different lengths are not compared.
    """
    values = entry.configuration.as_dict() | dict.fromkeys(entry.unstated)
    identifying = {name: values[name] for name in _IDENTIFYING}
    identifying["global_batch"] = None if row is None else int(row.global_batch)
    return identifying | {"tokens_per_sample": _tokens_per_sample(row)}


def _tokens_per_sample(row: Any) -> int | None:
    """Return how many tokens the samples of a configuration have; None if they are not counted as both."""
    if row is None or pd.isna(row.token_throughput) or pd.isna(row.throughput):
        return None
    tokens: int = round(row.token_throughput / row.throughput)
    return tokens


def _differences(before: IdentifyingValues, after: IdentifyingValues) -> dict[str, tuple[Scalar | None, ...]]:
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}


def _renamed(measurement: Measurement, identities: Mapping[str, str], study: str) -> Measurement:
    """Return a measurement with other identities; the configurations that have one are of ``study``."""
    dataset, entries = measurement.dataset, []
    for entry in dataset.plan.entries:
        identity = entry.configuration.identity
        is_same = identities[identity] == identity
        entries.append(
            replace(
                entry,
                configuration=entry.configuration if is_same else replace(entry.configuration, study=study),
                baseline_identity=identities[entry.baseline_identity],
                reference_identity=identities.get(entry.reference_identity or ""),
            )
        )
    frames = {}
    for name in ("runs", "configurations", "diagnostics"):
        frames[name] = _with_identities(getattr(dataset, name), identities)
    return replace(measurement, dataset=replace(dataset, plan=replace(dataset.plan, entries=tuple(entries)), **frames))


def _with_identities(frame: pd.DataFrame, identities: Mapping[str, str]) -> pd.DataFrame:
    """Return a table with other identities; rows about a whole study have none."""
    columns = [column for column in _IDENTITIES if column in frame]
    return frame.assign(**{column: frame[column].map(identities.get) for column in columns})
