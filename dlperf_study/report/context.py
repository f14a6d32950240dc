"""What must stand beside every number: where it was measured, on what, how often, and how it was summarised."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from dlperf_study.analysis.statistics import MINIMUM_RUNS
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.formatting import human, is_missing, listed, percent
from dlperf_study.report.series import measured_of
from dlperf_study.study.configuration import PARAMETERS, parameters_of
from dlperf_study.study.job import Outcome
from dlperf_study.study.parameter import Scope
from dlperf_study.study.study import BATCH_OF_SCALING

# What is said otherwise of a measured study and of ingested logs, side by side: pages claim no more than was done.


@dataclass(frozen=True)
class Words:
    """Sentences of the pages. ``runs`` and ``place`` have room for a number of runs.

    ``is_ours``: the machine, and the time a run took, were seen from here. ``absent`` is about planned configurations
    without any run; ``unknown`` precedes conditions that nobody stated; ``step`` says whose time a step is.
    """

    is_ours: bool
    began: str
    unknown: str
    step: str
    runs: str
    place_title: str
    place: str
    no_place: str
    absent_title: str
    absent: str
    none_absent: str
    failures_title: str
    no_failure: str


_MEASURED = Words(
    is_ours=True,
    began="Measured",
    unknown="not recorded",
    step="A step's time is that of its slowest rank",
    runs="{} planned",
    place_title="Where it was measured",
    place="Hardware and software of the {}.",
    no_place="",
    absent_title="Unsupported configurations",
    absent="Planned, but not possible here; they were not replaced by anything.",
    none_absent="Every planned configuration can run here.",
    failures_title="Runs that did not complete",
    no_failure="Every run completed.",
)
_INGESTED = Words(
    is_ours=False,
    began="Printed by other programs",
    unknown="not stated",
    step="A step's time is that of the whole job, as printed",
    runs="{} among the logs",
    place_title="Where the programs ran",
    place="As stated with the logs of the {}; nothing of it was seen here.",
    no_place="Nobody stated on which devices, over which link and with which library these programs ran.",
    absent_title="Configurations without logs",
    absent="Declared, but no log of them is there; nothing stands in for them.",
    none_absent="There are logs of every declared configuration.",
    failures_title="Runs that do not count",
    no_failure="Every run counts.",
)


def words(dataset: Dataset) -> Words:
    """Return the words for where the numbers of a study come from."""
    return _INGESTED if dataset.plan.ingested_from else _MEASURED


#: The data source of which no step reads anything.
NOTHING_READ = "synthetic_device"
MEDIANS = "Values are medians over completed runs."
_OF_RATIOS = (
    " Those of speedups, ratios and differences are made from the runs of both; no such bound is known for them, and "
    "nothing better is to be expected."
)
#: Parameters that a caption names in any case, or that tables name in its place.
_NOT_UNUSUAL = (
    *("framework", "strategy", "model", "image_size", "classes", "nodes", "devices_per_node", "servers"),
    *("batch_per_device", "precision", "compiler", "data_source", "sample_ratio", "threads_per_device", "seed"),
)
#: All other parameters of the training: named where a level is not the default.
_UNUSUAL = tuple(name for name in parameters_of(Scope.WORKLOAD, Scope.NETWORK) if name not in _NOT_UNUSUAL)
_MERGED = "Ranks are merged by the slowest: its window counts as the job's."
_SHARDED = (
    "A sharded classifier has collectives in its forward and backward pass: they count as computation, and not as "
    "communication, and ranks that wait for each other in them look alike."
)


def conditions(dataset: Dataset, model: str | None = None) -> str:
    """Return the caption's sentence on devices, link, images, precision, batch, data, versions and kind of scaling.

    It covers the whole study, or one of its models. What nobody stated stands once, at the end.
    """
    rows, runs = _of_model(measured(dataset), model), _of_model(completed_runs(dataset), model)
    if rows.empty:
        return f"Nothing was measured.{quick_label(dataset)}"
    servers = ["servers"] if rows["servers"].any() else []
    batch, _ = BATCH_OF_SCALING[dataset.plan.scaling]
    unusual = departures(rows, _UNUSUAL)
    trained = ("model", "image_size", "precision", *unusual, batch, "threads_per_device", "data_source")
    factors = ("world_size", "nodes", *servers, *trained)
    columns = {name: rows[name] for name in factors} | {name: runs[name] for name in ("device", "link")}
    unknown = [_called(name) for name, values in columns.items() if not _present(values)]
    said = words(dataset)
    parts = [
        f"{said.began}{_on_devices(runs)}",
        *(f"{_called(name)}: {levels(columns[name])}" for name in (*factors, "link") if _present(columns[name])),
        versions(runs),
        f"{dataset.plan.scaling} scaling",
        f"{said.unknown}: {', '.join(unknown)}" if unknown else "",
    ]
    return f"{'; '.join(filter(None, parts))}.{quick_label(dataset)}"


def departures(rows: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return the parameters that have a stated level other than their default."""
    return [name for name in names if any(rows[name].dropna() != PARAMETERS[name].default)]


def repetition(dataset: Dataset, ratios: bool = False) -> str:
    """Return the caption's sentence on medians, intervals and their coverage; of ratios too where some are shown."""
    known = measured(dataset)[["runs_completed", "interval_coverage"]].dropna().drop_duplicates()
    if known.empty:
        return f"{MEDIANS} No configuration has {MINIMUM_RUNS} completed runs, so none has an interval."
    stated = [f"{percent(covered)} with {runs} runs" for runs, covered in sorted(known.itertuples(index=False))]
    covers = "Intervals of throughputs, in brackets or as bars, cover the true median with a probability of at most"
    return f"{MEDIANS} {covers} {listed(stated)}.{_OF_RATIOS * ratios}"


def merging(dataset: Dataset) -> str:
    """Return the caption's sentence on how the numbers of several ranks became the job's."""
    if not dataset.plan.ingested_from:
        return _MERGED
    runs = completed_runs(dataset)
    rules = runs[["log_format", "merge_rule"]].dropna().drop_duplicates().itertuples(index=False)
    said = listed([f"{human(log_format)}: {rule}" for log_format, rule in rules])
    return f"Rates are the steady part of what programs printed, made the job's ({said or 'nothing was printed'})."


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


def only(dataset: Dataset, rows: pd.DataFrame) -> Dataset:
    """Return a dataset of some of its configurations and their runs."""
    runs = dataset.runs[dataset.runs["identity"].isin(rows["identity"])]
    return replace(dataset, configurations=rows, runs=runs)


def measured(dataset: Dataset) -> pd.DataFrame:
    """Return the configurations with at least one completed run."""
    return measured_of(dataset.configurations)


def completed_runs(dataset: Dataset) -> pd.DataFrame:
    """Return the runs that may be summarised."""
    return dataset.runs[dataset.runs["outcome"] == Outcome.COMPLETED]


def versions(runs: pd.DataFrame) -> str:
    """Return the framework libraries with their versions."""
    pairs = runs[["library", "library_version"]].dropna().drop_duplicates().itertuples(index=False)
    return listed([f"{human(library)} {version}" for library, version in pairs])


def levels(values: pd.Series) -> str:
    """Return the distinct values of a column as a sentence lists them; numbers in order."""
    present = _present(values)
    texts = any(isinstance(value, str) for value in present)
    return listed([human(value) for value in (present if texts else sorted(present))]) or "not recorded"


def _present(values: pd.Series) -> list[Any]:
    """Return the distinct values of a column, in order of appearance."""
    return [value for value in values.unique() if not is_missing(value)]


def _called(name: str) -> str:
    return COLUMNS[name].label.lower()


def _on_devices(runs: pd.DataFrame) -> str:
    """Return the kinds and names of the devices that are known: `` on GPU (Tesla V100)``."""
    kinds, names = (levels(runs[name]) if _present(runs[name]) else "" for name in ("device", "device_name"))
    known = f"{kinds} ({names})" if kinds and names else kinds or names
    return f" on {known}" if known else ""


def _of_model(rows: pd.DataFrame, model: str | None) -> pd.DataFrame:
    return rows if model is None else rows[rows["model"] == model]
