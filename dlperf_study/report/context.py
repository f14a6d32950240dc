"""What must stand beside every number: where it was measured, on what, how often, and how it was summarised."""

import pandas as pd

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.columns import COLUMNS
from dlperf_study.report.names import counted, human, listed
from dlperf_study.report.numbers import is_missing, percent
from dlperf_study.study.outcome import Outcome

#: Runs that an interval needs.
RUNS_FOR_AN_INTERVAL = 3
MERGED = "Ranks are merged by the slowest: its window counts as the job's."


def conditions(dataset: Dataset, model: str | None = None) -> str:
    """Return the caption's sentence on devices, link, precision, batch, data, versions and kind of scaling.

    It covers the whole study, or one of its models.
    """
    rows, runs = (part if model is None else part[part["model"] == model] for part in _measured(dataset))
    if rows.empty:
        return f"Nothing was measured.{quick_label(dataset)}"
    servers = ["servers"] if rows["servers"].any() else []
    factors = ("world_size", "nodes", *servers, "model", "precision", "batch_per_device", "data_source")
    parts = [
        f"{levels(runs['device'])} ({levels(runs['device_name'])})",
        *(f"{COLUMNS[name].label.lower()}: {levels(rows[name])}" for name in factors),
        f"link: {levels(runs['link'])}",
        versions(runs),
        f"{dataset.plan.scaling} scaling",
    ]
    return f"Measured on {'; '.join(parts)}.{quick_label(dataset)}"


def repetition(dataset: Dataset) -> str:
    """Return the caption's sentence on medians, intervals and their coverage."""
    known = measured(dataset)[["runs_completed", "interval_coverage"]].dropna().drop_duplicates()
    values = "Values are medians over completed runs."
    if known.empty:
        return f"{values} No configuration has {RUNS_FOR_AN_INTERVAL} completed runs, so none has an interval."
    stated = [f"{percent(covered)} with {runs} runs" for runs, covered in sorted(known.itertuples(index=False))]
    return f"{values} Brackets: an interval that covers the true median with a probability of at most {listed(stated)}."


def quick_label(dataset: Dataset) -> str:
    """Return the warning that goes wherever a quick study's numbers go; empty for any other study."""
    return " Quick study: not for publication." if dataset.plan.quick else ""


def measured(dataset: Dataset) -> pd.DataFrame:
    """Return the configurations with at least one completed run."""
    return dataset.configurations[dataset.configurations["runs_completed"] > 0]


def completed_runs(dataset: Dataset) -> pd.DataFrame:
    """Return the runs that may be summarised."""
    return dataset.runs[dataset.runs["outcome"] == Outcome.COMPLETED]


def versions(runs: pd.DataFrame) -> str:
    """Return the framework libraries with their versions."""
    pairs = runs[["library", "library_version"]].dropna().drop_duplicates().itertuples(index=False)
    return listed([f"{human(library)} {version}" for library, version in pairs])


def levels(values: pd.Series) -> str:
    """Return the distinct values of a column as a sentence lists them; numbers in order."""
    present = [value for value in values.unique() if not is_missing(value)]
    texts = any(isinstance(value, str) for value in present)
    return listed([human(value) for value in (present if texts else sorted(present))]) or "not recorded"


def _measured(dataset: Dataset) -> tuple[pd.DataFrame, pd.DataFrame]:
    return measured(dataset), completed_runs(dataset)


def runs_said(completed: int) -> str:
    """Return why a configuration has no interval."""
    return f"{counted(completed, 'completed run')}: an interval needs {RUNS_FOR_AN_INTERVAL}"
