"""Every path under ``outputs/``. No other module joins a path below that folder.

The folder is ``outputs/`` in the workspace unless ``DLPERF_STUDY_OUTPUTS`` names a different one.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dlperf_study.core.resources import PACKAGE_FOLDER, workspace

#: The folder of the package: the top of a checkout. Only what is in a checkout may use it: tools, tests, `generated`.
PROJECT = PACKAGE_FOLDER.parent
OUTPUTS_VARIABLE = "DLPERF_STUDY_OUTPUTS"
#: In the notebooks of a report that is built: its folder, in which it stays until all of it is there.
REPORT_VARIABLE = "DLPERF_STUDY_REPORT"
#: How the names of the self-test's studies begin, and the folder of its results and of all its studies.
SELFTEST = "selftest"
#: How the name of a study in quick mode ends, and its folder.
QUICK_SUFFIX = "-quick"
#: The folder of what was measured before, and of that without a completed run, which is no measurement.
EARLIER, WITHOUT_RESULT = "earlier", "without-result"
#: The folder of a configuration with the run that is never counted: NCCL's report.
NCCL_REPORTS = "nccl"
#: The name of a run's folder; nothing is repeated a billion times.
_NUMBER = re.compile("[1-9][0-9]{0,8}")


def outputs_folder() -> Path:
    """Return the folder that holds all evidence and all reports."""
    return Path(os.environ.get(OUTPUTS_VARIABLE) or workspace() / "outputs").resolve()


def is_building_report() -> bool:
    """Return whether this process is a notebook of a report that is built."""
    return bool(os.environ.get(REPORT_VARIABLE))


def image_datasets_folder() -> Path:
    """Return the folder of this project's image datasets."""
    return workspace() / "data"


def is_selftest(study: str) -> bool:
    """Return whether a study is of the self-test, by name."""
    return study.partition("_")[0] == SELFTEST


class _Below:
    """A path below its class's folder; an object gives a Path."""

    def __init__(self, relative_path: str) -> None:
        self._relative_path = relative_path

    def __get__(self, owner: "RunPaths | JobPaths | ConfigurationPaths | StudyPaths", kind: type) -> Path:
        return owner.folder / self._relative_path


@dataclass(frozen=True)
class RunPaths:
    """The evidence of one repetition."""

    folder: Path

    run_file = _Below("run.json")  # the record of the run; written last
    configuration_file = _Below("configuration.json")
    submission_file = _Below("submission.json")  # the commands that were started
    scratch = _Below("scratch")  # what launchers write for themselves; deleted when the run ends
    waiting = _Below("scratch/waiting.txt")  # the nodes that were too busy to start the run at once, a line each

    @property
    def home(self) -> "ConfigurationPaths":
        """The configuration of this run."""
        folder = self.folder.parents[1]
        return ConfigurationPaths(folder.parents[1] if folder.parent.name == NCCL_REPORTS else folder)

    @property
    def repetition(self) -> int:
        """Which repetition it is, from 1."""
        return int(self.folder.name)

    @property
    def process_logs(self) -> list[Path]:
        """What each started process printed, in order of name."""
        return sorted(self.folder.glob("*.log"))

    @property
    def evidence_files(self) -> list[Path]:
        """The existing files with numbers, besides the record, by name."""
        patterns = (self.configuration_file.name, "rank-*.jsonl", "telemetry-*.jsonl")
        return sorted(file for pattern in patterns for file in self.folder.glob(pattern))

    def rank_log(self, rank: int) -> Path:
        """What one rank measured."""
        return self.folder / f"rank-{rank:05d}.jsonl"

    def telemetry(self, node: int) -> Path:
        """What the node agent of one node sampled during the run."""
        return self.folder / f"telemetry-{node:05d}.jsonl"


@dataclass(frozen=True)
class JobPaths:
    """One job submitted to a queueing system, and its results."""

    folder: Path

    order = _Below("order.json")  # the runs that the job is to do
    script = _Below("job.sbatch")
    job_id = _Below("job_id.txt")  # the id that the queueing system gave it
    states = _Below("states.txt")  # one line per change
    output = _Below("output.txt")  # what the job printed

    def result(self, index: int) -> Path:
        """How one run of the job ended, as the job reports it."""
        return self.folder / f"result-{index}.json"

    def recorded(self, index: int) -> Path:
        """Exists once the controller has recorded how this run ended."""
        return self.folder / f"recorded-{index}"


@dataclass(frozen=True)
class ConfigurationPaths:
    """The evidence of one configuration of a study."""

    folder: Path

    notebook = _Below("run_configuration.ipynb")  # executed
    failure = _Below("failure.txt")  # why the notebook stopped early
    compiled = _Below("compiled")  # what compilers keep for the next run; no evidence

    @property
    def study(self) -> "StudyPaths":
        """Its study."""
        return StudyPaths(self.folder.parent.parent)

    def run(self, repetition: int) -> RunPaths:
        """Return the paths of one repetition; the first is 1."""
        return RunPaths(self.folder / "runs" / str(repetition))

    def nccl_report(self, reported_identity: str) -> RunPaths:
        """Return the paths of the NCCL report run, never counted."""
        return ConfigurationPaths(self.folder / NCCL_REPORTS / reported_identity).run(1)

    def interrupted(self) -> Path:
        """The next free folder for an interrupted run: kept, never counted."""
        return _next(self.folder / "interrupted")

    def runs(self) -> Iterator[RunPaths]:
        """Yield the runs in order of repetition."""
        yield from map(RunPaths, _numbered(self.folder / "runs"))

    def misnamed_runs(self) -> list[Path]:
        """Return the folders whose names are no repetition."""
        folders = [path for path in (self.folder / "runs").glob("[!.]*") if path.is_dir()]
        return sorted(path for path in folders if not _NUMBER.fullmatch(path.name))

    def jobs(self) -> list[JobPaths]:
        """Return the submitted jobs, in order."""
        return [JobPaths(folder) for folder in _numbered(self.folder / "jobs")]

    def next_job(self) -> JobPaths:
        """Return the paths of the next job."""
        return JobPaths(_next(self.folder / "jobs"))


@dataclass(frozen=True)
class StudyPaths:
    """Everything one study writes."""

    folder: Path

    plan_file = _Below("plan.json")  # what was to be measured, and what could not be
    configurations = _Below("configurations")  # a folder for each that was ever measured, also if no longer planned
    lock = _Below("controller.lock")  # held by whoever drives this study where a queue starts its runs
    progress_page = _Below("progress.html")  # what is known so far, while the study is measured and watched
    ingestion_lock = _Below("ingestion.lock")  # held by whoever ingests logs into this study
    dataset = _Below("dataset")  # the tables, as Parquet and CSV
    dataset_inputs = _Below("dataset.inputs")  # a digest of what the tables were made from
    paper = _Below("paper")  # figures, tables and numbers for a paper, as LaTeX
    like_dlperf = _Below("result")  # the results of ingested logs as DLPerf would have written them
    report = _Below("report")  # the pages; they need nothing outside this folder
    report_page = _Below("report/index.html")  # the page a person opens first
    report_lock = _Below("report.lock")  # held by whoever builds the report
    report_inputs = _Below("report.inputs")  # a digest of what the report was made from
    report_unfinished = _Below("report.unfinished")  # a report while it is built, and the rest of one that failed
    report_previous = _Below("report.previous")  # the last report while a new one takes its place
    # In the folder that the studies of all self-tests share:
    selftest_results = _Below("results.json")  # the results of all self-tests
    selftest_unfinished = _Below("unfinished")  # exists while a self-test has measured a part of its studies

    @classmethod
    def of(cls, study: str) -> "StudyPaths":
        """Return the paths of a study; self-test studies share a folder."""
        folder = outputs_folder()
        return cls(folder / SELFTEST / study if is_selftest(study) and study != SELFTEST else folder / study)

    @property
    def tables(self) -> Path:
        """The tables of the report, as HTML and LaTeX."""
        return self._report_folder / "tables"

    @property
    def figures(self) -> Path:
        """The figures of the report, as SVG and PDF."""
        return self._report_folder / "figures"

    @property
    def _report_folder(self) -> Path:
        return Path(os.environ.get(REPORT_VARIABLE) or self.folder)

    @property
    def last_measurement(self) -> "StudyPaths":
        """The paths of the study's last measurement."""
        folder = self.folder
        return StudyPaths(folder.parent.parent) if folder.parent.name == EARLIER and folder.name.isdecimal() else self

    def program(self, digest: str) -> Path:
        """A user program's files and declaration, by digest."""
        return self.folder / "program" / digest[:16]

    def parts(self, digest: str) -> Path:
        """The user's parts as runs got them, by digest."""
        return self.folder / "parts" / f"{digest[:16]}.tar.gz"

    def next_earlier(self) -> Path:
        """The next free folder for earlier results."""
        return _next(self.folder / EARLIER)

    def next_without_result(self) -> Path:
        """The next free folder for results without a completed run."""
        return _next(self.folder / WITHOUT_RESULT)

    def earlier_measurement(self, number: int) -> "StudyPaths":
        """Return the paths of an earlier measurement, from 1."""
        return StudyPaths(self.folder / EARLIER / str(number))

    def earlier_measurements(self) -> "list[StudyPaths]":
        """Return the paths of the earlier measurements, in order."""
        every = map(StudyPaths, _numbered(self.folder / EARLIER))
        return [paths for paths in every if paths.plan_file.exists() and paths.configurations.exists()]

    def configuration(self, configuration_id: str) -> ConfigurationPaths:
        """Return the paths of one configuration."""
        return ConfigurationPaths(self.configurations / configuration_id)

    def begun_runs(self) -> dict[str, list[RunPaths]]:
        """Return the begun runs by identity, in order of repetition."""
        return {folder.name: [*ConfigurationPaths(folder).runs()] for folder in self.configurations.glob("*")}


def _numbered(folder: Path) -> list[Path]:
    """Return the paths named by numbers from 1, in order."""
    return sorted((path for path in folder.glob("*") if _NUMBER.fullmatch(path.name)), key=lambda path: int(path.name))


def _next(folder: Path) -> Path:
    """Return the path named by the next number, from 1."""
    numbered = _numbered(folder)
    last = int(numbered[-1].name) if numbered else 0
    return folder / str(last + 1)
