"""Every path under ``outputs/``. No other module joins a path below that folder.

The folder is ``outputs/`` beside the package unless ``DLPERF_STUDY_OUTPUTS`` names another one.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
OUTPUTS_VARIABLE = "DLPERF_STUDY_OUTPUTS"


def outputs_folder() -> Path:
    """Return the folder that holds all evidence and all reports."""
    return Path(os.environ.get(OUTPUTS_VARIABLE) or PROJECT / "outputs").resolve()


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that whoever looks finds the old one or the whole new one, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@dataclass(frozen=True)
class RunPaths:
    """The evidence of one repetition."""

    folder: Path

    @property
    def run_file(self) -> Path:
        """The record of the run; written last."""
        return self.folder / "run.json"

    @property
    def configuration_file(self) -> Path:
        """What was asked for."""
        return self.folder / "configuration.json"

    @property
    def submission_file(self) -> Path:
        """What was started."""
        return self.folder / "submission.json"

    @property
    def scratch(self) -> Path:
        """What launchers write for themselves; deleted when the run ends."""
        return self.folder / "scratch"

    @property
    def process_logs(self) -> list[Path]:
        """What each started process printed, in order of name."""
        return sorted(self.folder.glob("*.log"))

    @property
    def timeline(self) -> Path:
        """What the library traced of itself, if it was asked to."""
        return self.folder / "timeline.json"

    def rank_log(self, rank: int) -> Path:
        """What one rank measured."""
        return self.folder / f"rank-{rank:05d}.jsonl"


@dataclass(frozen=True)
class ConfigurationPaths:
    """What one configuration of a study left behind."""

    folder: Path

    @property
    def notebook(self) -> Path:
        """The executed notebook of the configuration."""
        return self.folder / "run_configuration.ipynb"

    @property
    def failure(self) -> Path:
        """Why the notebook stopped, when it did not end by itself."""
        return self.folder / "failure.txt"

    def run(self, repetition: int) -> RunPaths:
        """Return where one repetition lies; the first is 1."""
        return RunPaths(self.folder / "runs" / str(repetition))

    def trace(self, traced_identity: str) -> RunPaths:
        """Return where the run lies in which the library traced itself; it is never counted."""
        return ConfigurationPaths(self.folder / "trace" / traced_identity).run(1)

    def interrupted(self) -> Path:
        """The next free folder for a run that was cut off: kept, never counted."""
        parent = self.folder / "interrupted"
        taken = [int(p.name) for p in parent.glob("*") if p.name.isdigit()]
        return parent / str(max(taken, default=0) + 1)

    def runs(self) -> Iterator[RunPaths]:
        """Yield the runs in order of repetition."""
        folders = (self.folder / "runs").glob("*")
        for folder in sorted((f for f in folders if f.name.isdigit()), key=lambda f: int(f.name)):
            yield RunPaths(folder)


@dataclass(frozen=True)
class StudyPaths:
    """Everything one study writes."""

    folder: Path

    @classmethod
    def of(cls, study: str) -> "StudyPaths":
        """Return where a study lies, by its name."""
        return cls(outputs_folder() / study)

    @property
    def plan_file(self) -> Path:
        """What was to be measured, and what could not be."""
        return self.folder / "plan.json"

    @property
    def configurations(self) -> Path:
        """One folder per configuration that was ever measured, also those no longer planned."""
        return self.folder / "configurations"

    def configuration(self, identity: str) -> ConfigurationPaths:
        """Return where one configuration lies."""
        return ConfigurationPaths(self.configurations / identity)

    @property
    def dataset(self) -> Path:
        """The tables, as Parquet and CSV."""
        return self.folder / "dataset"

    @property
    def tables(self) -> Path:
        """The tables of the report, as HTML and LaTeX."""
        return self.folder / "tables"

    @property
    def figures(self) -> Path:
        """The figures of the report, as SVG and PDF."""
        return self.folder / "figures"

    @property
    def report(self) -> Path:
        """The pages; they need nothing outside this folder."""
        return self.folder / "report"

    @property
    def report_unfinished(self) -> Path:
        """A report while it is built, and what is left of one that failed."""
        return self.folder / "report.unfinished"

    @property
    def report_previous(self) -> Path:
        """The last report while a new one takes its place."""
        return self.folder / "report.previous"

    @property
    def report_page(self) -> Path:
        """The page a person opens first."""
        return self.report / "index.html"
