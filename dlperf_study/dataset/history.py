"""The measurements of a study: the last one, and those put aside before it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths, outputs_folder
from dlperf_study.core.progress import Say, say_nothing
from dlperf_study.core.wording import closest
from dlperf_study.dataset.configuration_table import counted_throughputs
from dlperf_study.dataset.dataset import Dataset, up_to_date
from dlperf_study.metrics.comparison import Throughputs
from dlperf_study.metrics.run_status import select_completed
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.plan import Entry

SEPARATOR = "@"


@dataclass(frozen=True)
class Measurement:
    """One measurement of a study, with its name for commands."""

    name: str
    dataset: Dataset

    @property
    def begun(self) -> str:
        """The start of its first completed run, in UTC minutes."""
        times = select_completed(self.dataset.runs)["started"].dropna()
        if len(times):
            return str(times.min())[:16].replace("T", " ")
        return "date unknown"

    @property
    def title(self) -> str:
        """Its name and its date."""
        return f"{self.name} ({self.begun})"

    @cached_property
    def throughputs(self) -> Throughputs:
        """The throughputs of its completed runs, by identity."""
        return counted_throughputs(self.dataset.runs, self.dataset.plan)


def find_measurement(name: str) -> Measurement:
    """Return a measurement by name: ``study``, ``study@1``; or raise RecordError."""
    paths = paths_of_measurement(name)
    if not paths.plan_file.exists():
        names = list(measurement_names())
        raise RecordError(
            f"{name}: no session of a study has this name, and no folder with a plan; "
            f"{closest(name, names)}the sessions are {', '.join(names) or 'none'}"
        )
    return Measurement(name, up_to_date(paths))


def study_measurements(study: str, say: Say = say_nothing) -> list[Measurement]:
    """Return the measurements of a study, the last one last."""
    last = StudyPaths.of(study)
    return [_load(paths, say) for paths in (*last.earlier_measurements(), last)]


def in_order(first: Measurement, second: Measurement) -> tuple[Measurement, Measurement]:
    """Return two measurements, those of one study by age."""
    folders, series = [_folder(first), _folder(second)], _series(first)
    is_reversed = set(folders) <= set(series) and series.index(folders[1]) < series.index(folders[0])
    if is_reversed:
        return second, first
    return first, second


def _folder(measurement: Measurement) -> Path:
    return measurement.dataset.folder.resolve().parent


def _series(measurement: Measurement) -> list[Path]:
    """Return the folders of all measurements of its study, the last one last."""
    last = StudyPaths(_folder(measurement)).last_measurement
    return [*(paths.folder for paths in last.earlier_measurements()), last.folder]


def _load(paths: StudyPaths, say: Say = say_nothing) -> Measurement:
    """Return the measurement in a folder of a study."""
    study = paths.last_measurement.folder.name
    name = study if paths.last_measurement == paths else f"{study}{SEPARATOR}{paths.folder.name}"
    return Measurement(name, up_to_date(paths, say))


def earlier_dates(before: Measurement, after: Measurement) -> list[Measurement]:
    """Return the measurements that tell how dates differ.

    Of one study, all that are earlier than ``after``; of two studies, those of the study of ``before``, up to it.
    """
    series, folder, later_folder = _series(before), _folder(before), _folder(after)
    if later_folder in series:
        return list(map(_load, map(StudyPaths, series[: series.index(later_folder)])))
    if folder not in series:
        return [before]
    return [*map(_load, map(StudyPaths, series[: series.index(folder)])), before]


def measurement_names() -> Iterator[str]:
    """Yield the names of all measurements, ordered within a study."""
    for folder in sorted(outputs_folder().glob("*")):
        paths = StudyPaths(folder)
        for earlier_paths in paths.earlier_measurements():
            yield f"{folder.name}{SEPARATOR}{earlier_paths.folder.name}"
        if paths.plan_file.exists():
            yield folder.name


def paths_of_measurement(name: str) -> StudyPaths:
    """Return the paths of a measurement, which may not exist."""
    if StudyPaths(Path(name)).plan_file.exists():
        return StudyPaths(Path(name).resolve())
    study, _, position = name.partition(SEPARATOR)
    paths = StudyPaths.of(study)
    if position.isdecimal():
        return paths.earlier_measurement(int(position))
    return paths


#: The parameters that tell configurations apart, whatever their study is called; a program's settings are named singly.
_IDENTIFYING = tuple(
    name for name, entry in PARAMETERS.items() if entry.in_identity and name not in ("study", "settings")
)
_IDENTITIES = ("configuration_id", "baseline_id", "reference_id")

#: What tells a configuration apart, by name; None where it is not stated.
IdentifyingValues = Mapping[str, Scalar | None]


def share_identities(before: Measurement, after: Measurement) -> Measurement:
    """Return ``after`` with ``before``'s identities if only study names differ."""
    if before.dataset.plan.study == after.dataset.plan.study:
        return after
    configuration_ids = {
        tuple(values.items()): configuration_id for configuration_id, values in identifying_values(before).items()
    }
    renamed = {}
    for configuration_id, values in identifying_values(after).items():
        renamed[configuration_id] = configuration_ids.get(tuple(values.items()), configuration_id)
    return _renamed(after, renamed, before.dataset.plan.study)


def differences_of_most_similar(before: Measurement, after: Measurement) -> dict[str, tuple[Scalar | None, ...]]:
    """Return the differing values of the two most similar configurations."""
    pairs = product(_of_completed_runs(before), _of_completed_runs(after))
    return min((_differences(*pair) for pair in pairs), key=len, default={})


def _of_completed_runs(measurement: Measurement) -> list[IdentifyingValues]:
    by_id = identifying_values(measurement)
    return [by_id[configuration_id] for configuration_id in measurement.throughputs]


def identifying_values(measurement: Measurement) -> dict[str, IdentifyingValues]:
    """Return what tells each configuration of a measurement apart, by identity."""
    rows = measurement.dataset.configuration_rows
    by_id = measurement.dataset.plan.by_id
    return {
        configuration_id: _identifying_values(entry, rows.get(configuration_id))
        for configuration_id, entry in by_id.items()
    }


def _identifying_values(entry: Entry, row: Any) -> IdentifyingValues:
    """Return the values that identify a configuration's row.

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
    """Return the values that differ, by name."""
    names = dict.fromkeys((*before, *after))
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _renamed(measurement: Measurement, configuration_ids: Mapping[str, str], study: str) -> Measurement:
    """Return a measurement with other identities; renamed configurations are of ``study``."""
    dataset, entries = measurement.dataset, []
    for entry in dataset.plan.entries:
        configuration_id = entry.configuration.configuration_id
        is_same = configuration_ids[configuration_id] == configuration_id
        changes = {
            "configuration": entry.configuration if is_same else replace(entry.configuration, study=study),
            "baseline_id": configuration_ids[entry.baseline_id],
            "reference_id": configuration_ids.get(entry.reference_id or ""),
        }
        entries.append(entry.model_copy(update=changes))
    frames = {}
    for table in ("runs", "configurations", "diagnostics"):
        frame = getattr(dataset, table)
        columns = [column for column in _IDENTITIES if column in frame]
        # Rows about a whole study have no identity.
        frames[table] = frame.assign(**{column: frame[column].map(configuration_ids.get) for column in columns})
    return replace(measurement, dataset=replace(dataset, plan=dataset.plan.changed(entries=tuple(entries)), **frames))
