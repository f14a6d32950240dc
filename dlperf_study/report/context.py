"""What must stand beside every number: where it was measured, on what, how often, and how it was summarised."""

import pandas as pd

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.analysis.statistics import MINIMUM_RUNS
from dlperf_study.columns import COLUMNS
from dlperf_study.report.names import human, listed
from dlperf_study.report.numbers import is_missing, percent
from dlperf_study.study.outcome import Outcome
from dlperf_study.study.study import BATCH_OF_SCALING

#: The data source of which no step reads anything.
NOTHING_READ = "synthetic_device"
MERGED = "Ranks are merged by the slowest: its window counts as the job's."
_SHARDED = (
    "A sharded classifier has collectives in its forward and backward pass: they count as computation, and not as "
    "communication, and ranks that wait for each other in them look alike."
)


def conditions(dataset: Dataset, model: str | None = None) -> str:
    """Return the caption's sentence on devices, link, precision, batch, data, versions and kind of scaling.

    It covers the whole study, or one of its models.
    """
    rows, runs = _of_model(measured(dataset), model), _of_model(completed_runs(dataset), model)
    if rows.empty:
        return f"Nothing was measured.{quick_label(dataset)}"
    servers = ["servers"] if rows["servers"].any() else []
    batch, _ = BATCH_OF_SCALING[dataset.plan.scaling]
    factors = ("world_size", "nodes", *servers, "model", "precision", batch, "threads_per_device", "data_source")
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
        return f"{values} No configuration has {MINIMUM_RUNS} completed runs, so none has an interval."
    stated = [f"{percent(covered)} with {runs} runs" for runs, covered in sorted(known.itertuples(index=False))]
    covers = "Intervals, in brackets or as bars, cover the true median with a probability of at most"
    return f"{values} {covers} {listed(stated)}."


def computation_note(dataset: Dataset, model: str | None = None) -> str:
    """Return what a computation time holds besides computation; empty where it holds nothing else."""
    rows = _of_model(measured(dataset), model)
    spread = (rows["classifier"] == "sharded") & (rows["world_size"] > 1)
    return _SHARDED if spread.any() else ""


def input_note(dataset: Dataset) -> str:
    """Return what the measured steps hold of reading samples; empty where nothing was measured."""
    sources = set(measured(dataset)["data_source"])
    if sources == {NOTHING_READ}:
        return "Samples lie on the device before a step begins: nothing is read, and no input pipeline is compared."
    return "Reading samples is part of a step and has no time of its own here." if sources else ""


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


def _of_model(rows: pd.DataFrame, model: str | None) -> pd.DataFrame:
    return rows if model is None else rows[rows["model"] == model]
