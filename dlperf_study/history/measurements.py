"""The measurements of a study: the last one and those put aside before it, and how a command names one."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dlperf_study.analysis.comparison import Throughputs
from dlperf_study.dataset.configuration_table import throughputs_of
from dlperf_study.dataset.dataset import Dataset, up_to_date
from dlperf_study.errors import EvidenceError
from dlperf_study.paths import StudyPaths, outputs_folder
from dlperf_study.study.job import Outcome
from dlperf_study.wording import closest

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
        runs = self.dataset.runs
        times = runs.loc[runs["outcome"] == Outcome.COMPLETED, "started"].dropna()
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
    paths = _paths_of(name)
    if not paths.plan_file.exists():
        names = list(measurement_names())
        raise EvidenceError(
            f"{name}: no measurement has this name, and no folder with a plan; "
            f"{closest(name, names)}there are: {', '.join(names) or 'none'}"
        )
    return Measurement(name, up_to_date(paths))


def measurements_of(study: str) -> list[Measurement]:
    """Return the measurements of a study in order, the last one at the end."""
    paths = StudyPaths.of(study)
    earlier = []
    for earlier_paths in paths.earlier_measurements():
        earlier.append(Measurement(f"{study}{SEPARATOR}{earlier_paths.folder.name}", up_to_date(earlier_paths)))
    return [*earlier, Measurement(study, up_to_date(paths))]


def measurement_names() -> Iterator[str]:
    """Yield the names of all measurements under outputs, those of a study in order."""
    for folder in sorted(outputs_folder().glob("*")):
        paths = StudyPaths(folder)
        for earlier_paths in paths.earlier_measurements():
            yield f"{folder.name}{SEPARATOR}{earlier_paths.folder.name}"
        if paths.plan_file.exists():
            yield folder.name


def _paths_of(name: str) -> StudyPaths:
    """Return the paths of a measurement, whether there is one or not."""
    if StudyPaths(Path(name)).plan_file.exists():
        return StudyPaths(Path(name).resolve())
    study, _, number = name.partition(SEPARATOR)
    paths = StudyPaths.of(study)
    return paths.earlier_measurement(int(number)) if number.isdecimal() else paths
