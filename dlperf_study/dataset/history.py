"""The measurements of a study: the last one, and those put aside before it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from dlperf_study.core.errors import EvidenceError
from dlperf_study.core.paths import StudyPaths, outputs_folder
from dlperf_study.core.progress import Say, say_nothing
from dlperf_study.core.wording import closest
from dlperf_study.dataset.configuration_table import throughputs_of
from dlperf_study.dataset.dataset import Dataset, up_to_date
from dlperf_study.metrics.comparison import Throughputs
from dlperf_study.metrics.outcome import select_completed
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.plan import Entry

#: Between the name of a study and the number of an earlier measurement of it.
SEPARATOR = "@"


@dataclass(frozen=True)
class Measurement:
    """One measurement of a study, with the name by which a command finds it."""

    name: str
    dataset: Dataset

    @property
    def begun(self) -> str:
        """When its first completed run began, to the minute, in UTC; ``date unknown`` for logs without times."""
        times = select_completed(self.dataset.runs)["started"].dropna()
        return str(times.min())[:16].replace("T", " ") if len(times) else "date unknown"

    @property
    def title(self) -> str:
        """Its name and its date."""
        return f"{self.name} ({self.begun})"

    @cached_property
    def throughputs(self) -> Throughputs:
        """The rates of its completed runs, in the unit of ``dataset.rate``, by identity."""
        return throughputs_of(self.dataset.runs, self.dataset.plan)


def find_measurement(name: str) -> Measurement:
    """Return a measurement by its name: ``study``, ``study@1`` of an earlier one, or a folder that has a plan.

    Raises EvidenceError, with the names there are, when nothing was measured under it.
    """
    paths = paths_of_measurement(name)
    if not paths.plan_file.exists():
        names = list(measurement_names())
        raise EvidenceError(
            f"{name}: no measurement has this name, and no folder with a plan; "
            f"{closest(name, names)}there are: {', '.join(names) or 'none'}"
        )
    return Measurement(name, up_to_date(paths))


def measurements_of(study: str, say: Say = say_nothing) -> list[Measurement]:
    """Return the measurements of a study in order, the last one at the end; ``say`` prints how far reading is."""
    return [_load(paths, say) for paths in _paths_of_series(StudyPaths.of(study))]


def _paths_of_series(last: StudyPaths) -> list[StudyPaths]:
    return [*last.earlier_measurements(), last]


def in_order(first: Measurement, second: Measurement) -> tuple[Measurement, Measurement]:
    """Return two measurements, those of one study in the order in which they were made."""
    folders = [measurement.dataset.folder.resolve().parent for measurement in (first, second)]
    series = [paths.folder for paths in _paths_of_series(StudyPaths(folders[0]).last_measurement)]
    is_reversed = set(folders) <= set(series) and series.index(folders[1]) < series.index(folders[0])
    return (second, first) if is_reversed else (first, second)


def _load(paths: StudyPaths, say: Say = say_nothing) -> Measurement:
    """Return the measurement in a folder of a study, with the name that it has there."""
    study = paths.last_measurement.folder.name
    name = study if paths.last_measurement == paths else f"{study}{SEPARATOR}{paths.folder.name}"
    return Measurement(name, up_to_date(paths, say))


def earlier_dates(before: Measurement, after: Measurement) -> list[Measurement]:
    """Return the measurements that tell how dates differ.

    Of one study, all that are earlier than ``after``; of two studies, those of the study of ``before``, up to it.
    """
    folders = [measurement.dataset.folder.resolve().parent for measurement in (before, after)]
    series = _paths_of_series(StudyPaths(folders[0]).last_measurement)
    of_series = [paths.folder for paths in series]
    if folders[1] in of_series:
        return list(map(_load, series[: of_series.index(folders[1])]))
    earlier = series[: of_series.index(folders[0])] if folders[0] in of_series else []
    return [*map(_load, earlier), before]


def measurement_names() -> Iterator[str]:
    """Yield the names of all measurements under outputs, those of a study in order."""
    for folder in sorted(outputs_folder().glob("*")):
        paths = StudyPaths(folder)
        for earlier_paths in paths.earlier_measurements():
            yield f"{folder.name}{SEPARATOR}{earlier_paths.folder.name}"
        if paths.plan_file.exists():
            yield folder.name


def paths_of_measurement(name: str) -> StudyPaths:
    """Return the paths of a measurement, whether there is one or not."""
    if StudyPaths(Path(name)).plan_file.exists():
        return StudyPaths(Path(name).resolve())
    study, _, position = name.partition(SEPARATOR)
    paths = StudyPaths.of(study)
    return paths.earlier_measurement(int(position)) if position.isdecimal() else paths


#: The parameters that tell configurations apart, whatever their study is called; a program's settings are named singly.
_IDENTIFYING = tuple(
    name for name, entry in PARAMETERS.items() if entry.in_identity and name not in ("study", "settings")
)
#: The columns of tables that have identities.
_IDENTITIES = ("identity", "baseline_identity", "reference_identity")

#: What tells a configuration apart, by name; None where it is not stated.
IdentifyingValues = Mapping[str, Scalar | None]


def share_identities(before: Measurement, after: Measurement) -> Measurement:
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
    identifying = {name: values[name] for name in _IDENTIFYING} | entry.configuration.own_settings
    identifying["global_batch"] = None if row is None else int(row.global_batch)
    identifying["tokens_per_sample"] = None
    if row is not None and pd.notna(row.token_throughput) and pd.notna(row.throughput):
        identifying["tokens_per_sample"] = round(row.token_throughput / row.throughput)
    return identifying


def _differences(before: IdentifyingValues, after: IdentifyingValues) -> dict[str, tuple[Scalar | None, ...]]:
    """Return the values that differ, by name; a setting of one program may be none of the other."""
    names = dict.fromkeys((*before, *after))
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _renamed(measurement: Measurement, identities: Mapping[str, str], study: str) -> Measurement:
    """Return a measurement with other identities; the configurations that have one are of ``study``."""
    dataset, entries = measurement.dataset, []
    for entry in dataset.plan.entries:
        identity = entry.configuration.identity
        is_same = identities[identity] == identity
        changes = {
            "configuration": entry.configuration if is_same else replace(entry.configuration, study=study),
            "baseline_identity": identities[entry.baseline_identity],
            "reference_identity": identities.get(entry.reference_identity or ""),
        }
        entries.append(entry.model_copy(update=changes))
    frames = {}
    for table in ("runs", "configurations", "diagnostics"):
        frame = getattr(dataset, table)
        columns = [column for column in _IDENTITIES if column in frame]
        # Rows about a whole study have no identity.
        frames[table] = frame.assign(**{column: frame[column].map(identities.get) for column in columns})
    return replace(measurement, dataset=replace(dataset, plan=dataset.plan.changed(entries=tuple(entries)), **frames))
