"""What a caption says about the numbers: where they were measured, on what, how often, and how they were summarised."""

from collections.abc import Iterable, Sequence

import pandas as pd

from dlperf_study.core.wording import counted, duration
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings import published
from dlperf_study.metrics.columns import column_named
from dlperf_study.metrics.parameters import list_settings
from dlperf_study.metrics.run_status import begin_and_end, select_counted
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.prediction.intervals import COVERAGE
from dlperf_study.report.formatting import (
    display_name,
    distinct_values,
    listed,
    listed_columns,
    text_if,
    value_with_unit,
)
from dlperf_study.report.say import caption, say_one
from dlperf_study.report.series import goes_without_saying, usual_values, value_label
from dlperf_study.study.configuration import PARAMETERS, parameters_in_scope
from dlperf_study.study.parameter import Scope
from dlperf_study.study.study import BATCH_OF_SCALING

#: Columns in samples/s, and the same in tokens/s.
_IN_TOKENS = {
    "throughput": "token_throughput",
    "baseline_throughput": "baseline_token_throughput",
    "reference_throughput": "reference_token_throughput",
}


MEANS = "Values are means over counted runs; means of throughput are geometric."
#: How large a sample is: of an image, of a sequence.
SIZES = ("image_size", "sequence_length")
#: Parameters that a caption names in any case, or that tables name in its place.
_ALWAYS_NAMED = (
    *("framework", "strategy", "model", *SIZES, "classes", "nodes", "devices_per_node", "parameter_servers"),
    *("batch_per_device", "precision", "compiler", "data_loader", "sample_ratio", "threads_per_device", "seed"),
)
#: Of these a value alone is understood.
_SAY_THEMSELVES = ("precision", "data_loader")
#: All other parameters of the training: named where a value is not the default.
_UNUSUAL = tuple(name for name in parameters_in_scope(Scope.WORKLOAD, Scope.NETWORK) if name not in _ALWAYS_NAMED)
_NO_INTERVAL = f"no CIs: a CI needs {MINIMUM_RUNS} runs"


def no_sources(dataset: Dataset) -> str:
    """Return that the study names no published source, and how to add some."""
    return text_if(not dataset.plan.published, say_one(published.no_sources(dataset)))


def by_origin(dataset: Dataset, part: str, **facts: object) -> str:
    """Return the sentence that fits the origin of a study's numbers: measured here, or read from logs."""
    return caption("ingested_study" if dataset.plan.ingested_from else "measured_study", part, **facts)


def conditions(dataset: Dataset, model: str | None = None) -> str:
    """Return the caption's sentence on devices, link, images, precision, batch, data, versions and kind of scaling.

    It covers the whole study, or one of its models. What is not known is named once, at the end.
    """
    rows = _of_model(dataset.measured, model)
    runs = _of_model(dataset.completed_runs, model)
    if rows.empty:
        return f"Nothing was measured.{quick_label(dataset)}"
    factors = ["world_size", "nodes", *named_factors(dataset, rows)]
    parts, unknown = [by_origin(dataset, "origin") + _devices_phrase(runs)], []
    for name in [*factors, "device", "interconnect"]:
        values = rows[name] if name in factors else runs[name]
        label = column_named(name).words
        if not distinct_values(values):
            unknown += [] if dataset.plan.is_program else [label]
        elif name != "device":
            parts.append(f"{label}: {list_values(values)}")
    parts += [_unless_named(dataset), versions(runs), f"{dataset.plan.scaling} scaling"]
    if unknown:
        parts.append(f"{by_origin(dataset, 'unknown')}: {', '.join(unknown)}")
    return f"{'; '.join(filter(None, parts))}.{quick_label(dataset)}"


def named_factors(dataset: Dataset, rows: pd.DataFrame) -> list[str]:
    """Return what a caption names of what was trained and how, besides devices and nodes."""
    batch, _ = BATCH_OF_SCALING[dataset.plan.scaling]
    parameter_servers = ["parameter_servers"] if rows["parameter_servers"].any() else []
    trained = "own_program" if dataset.plan.is_program else "model"
    unusual = non_defaults(rows, _UNUSUAL)
    training = [trained, *_sizes(rows), "precision", *unusual, batch, "threads_per_device", "data_loader"]
    return [*parameter_servers, *training, *list_settings(rows)]


def page_conditions(dataset: Dataset) -> str:
    """Return the line that a page has once for all its numbers: the conditions, and what brackets and bars are."""
    rows, runs = dataset.measured, dataset.completed_runs
    if rows.empty:
        return ""
    where = by_origin(dataset, "origin") + _devices_phrase(runs)
    batch, _ = BATCH_OF_SCALING[dataset.plan.scaling]
    names = (
        "precision",
        "data_loader",
        *_sizes(rows),
        *non_defaults(rows, _UNUSUAL),
        batch,
        "threads_per_device",
    )
    training = []
    for name in names:
        if len(distinct_values(rows[name])) == 1:
            label = text_if(name not in _SAY_THEMSELVES, f"{column_named(name).words} ")
            training.append(f"{label}{list_values(rows[name])}")
    of_workload = parameters_in_scope(Scope.WORKLOAD, Scope.NETWORK)
    varied = [name for name in (*of_workload, *list_settings(rows)) if len(distinct_values(rows[name])) > 1]
    differing = text_if(varied, f"varied: {listed_columns(varied)}")
    how, scaling = (differing, _unless_named(dataset), versions(runs)), f"{dataset.plan.scaling} scaling"
    parts = (where, _link_phrase(runs), *training, *how, scaling)
    stretch = stretch_of_time(runs)
    values = f"Values are means over runs{text_if(stretch, f' of these {stretch}')}"
    intervals = _NO_INTERVAL if not dataset.has_interval else _intervals(dataset)
    return f"{' · '.join(filter(None, parts))}. {values}; {intervals}.{quick_label(dataset)}"


def _sizes(rows: pd.DataFrame) -> list[str]:
    """Return the parameters that say how large these samples are; of an unknown kind, images."""
    return known_columns(rows, SIZES) or [SIZES[0]]


def _intervals(dataset: Dataset) -> str:
    """Return of which share brackets and bars are, on pages and in sentences."""
    of_predictions = text_if("prediction" in dataset.plan.sections, f", those of predictions {100 * COVERAGE:g} %")
    return f"brackets and bars are 95 % CIs{of_predictions}"


def stretch_of_time(runs: pd.DataFrame) -> str:
    """Return how long runs went on, and when: ``14 min (2026-11-24, 03:28 to 03:42 UTC)``; empty if that is not known.

    A machine is faster at one time than at another: a throughput or a time is the mean of this stretch, and no interval
    of it holds that of an hour later.
    """
    first, last = begin_and_end(runs)
    if pd.isna(last):
        return ""
    if first.date() == last.date():
        return f"{duration((last - first).total_seconds())} ({first:%Y-%m-%d, %H:%M} to {last:%H:%M} UTC)"
    return f"{counted((last.date() - first.date()).days + 1, 'day')} ({first:%Y-%m-%d} to {last:%Y-%m-%d})"


def page_conditions_in_short(dataset: Dataset) -> str:
    """Return where the numbers of a page were measured and what brackets are: the first page has all conditions."""
    rows, runs = dataset.measured, dataset.completed_runs
    if rows.empty:
        return ""
    where = by_origin(dataset, "origin") + _devices_phrase(runs)
    intervals = _NO_INTERVAL if not dataset.has_interval else _intervals(dataset)
    parts = filter(None, (where, _link_phrase(runs), _unless_named(dataset), intervals))
    return f"{'; '.join(parts)}.{quick_label(dataset)}"


def _link_phrase(runs: pd.DataFrame) -> str:
    return text_if(distinct_values(runs["interconnect"]), f"interconnect {list_values(runs['interconnect'])}")


def _unless_named(dataset: Dataset) -> str:
    usual = usual_of_names(dataset)
    return text_if(usual, f"unless a name says otherwise: {', '.join(usual)}")


def usual_of_names(dataset: Dataset) -> list[str]:
    """Return the values that no name of a series has, but for those that go without saying.

    A selection that has none of these is named by its own.
    """
    rows, usual = dataset.measured, usual_values(dataset.whole or dataset).items()
    of_rows = [(name, value) for name, value in usual if (rows[name] == value).any()]
    return [value_label(name, value) for name, value in of_rows if not goes_without_saying(name, value)]


def non_defaults(rows: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return the parameters that have a known value other than their default."""
    return [name for name in names if any(rows[name].dropna() != PARAMETERS[name].default)]


def repetition(dataset: Dataset, ratios: bool = False) -> str:
    """Return the caption's sentence on means and their intervals; on those of ratios too where some are shown."""
    if not dataset.has_interval:
        return caption("context", "no_interval", means=MEANS, needed=MINIMUM_RUNS)
    of_ratios = ""
    if ratios and dataset.plan.ingested_from:
        of_ratios = "both"
    elif ratios:
        of_ratios = "rounds" if dataset.completed_runs["round"].notna().any() else "none"
    return caption("context", "repetition", means=MEANS, looks=dataset.looks, ratios=of_ratios)


def merging(dataset: Dataset) -> str:
    """Return the caption's sentence on how the numbers of several ranks became the job's; no rule where one has none.

    Empty where each run that was measured has one rank.
    """
    runs = dataset.completed_runs
    if not dataset.plan.ingested_from:
        return text_if((runs["world_size"] > 1).any(), caption("context", "merged"))
    is_merged = runs["ranks_seen"].fillna(1) > 1
    rules = runs.assign(merge_rule=runs["merge_rule"].where(is_merged, ""))
    rules = rules[["log_format", "printed_throughput", "merge_rule"]].dropna().drop_duplicates()
    labels = []
    for name, printed, rule in rules.itertuples(index=False):
        labels.append(f"{display_name(name)}, {printed}{text_if(rule, f': {rule}')}")
    return caption("context", "printed", printed=listed(labels) or "nothing was printed")


def waits_for_batches(dataset: Dataset) -> bool:
    """Return whether a step of any configuration waits for its batch: with a fixed one, none does."""
    rows = dataset.configurations
    return bool(rows["input_throughput"].notna().any() or (rows["input_seconds"] > 0).any())


def computation_note(dataset: Dataset, model: str | None = None) -> str:
    """Return what a computation time contains besides computation; empty where it contains nothing else."""
    rows = _of_model(dataset.measured, model)
    is_sharded = (rows["classifier"] == "sharded") & (rows["world_size"] > 1)
    return text_if(is_sharded.any(), caption("context", "sharded"))


def breakdown_notes(dataset: Dataset) -> tuple[str, ...]:
    """Return which runs measured the parts of a step, where some trained alone on purpose; otherwise nothing."""
    runs = select_counted(dataset.runs)
    first = runs["breakdown_from"].fillna(1)
    if (runs["repetition"] >= first).all():
        return ()
    measured = runs["broken_down_step_seconds"].count()
    return (caption("context", "breakdown", measured=measured, total=len(runs), first=first.max()),)


def longer_than_alone(dataset: Dataset) -> str:
    """Return why a step waits for longer than its communication takes alone; empty where none does."""
    rows = dataset.configurations
    is_longer = rows["exposed_communication_seconds"] > rows["communication_seconds"]
    return text_if(is_longer.any(), caption("context", "longer_than_alone"))


def quick_label(dataset: Dataset) -> str:
    """Return the warning that goes wherever numbers of quick mode go; empty for any other study."""
    return text_if(dataset.plan.quick, " Quick mode: not for publication.")


def known_throughputs(rows: pd.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """Return columns of throughputs that have a number; where there are tokens/s, with these."""
    if rows["token_throughput"].isna().all():
        return tuple(names)
    in_tokens = filter(None, map(_IN_TOKENS.get, names))
    return tuple(known_columns(rows, (*names, *in_tokens)))


def known_columns(rows: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return those columns of which a row has a value."""
    return [name for name in names if rows[name].notna().any()]


def versions(runs: pd.DataFrame) -> str:
    """Return the framework libraries with their versions, and those of what they communicate with and of the GPUs."""
    libraries = []
    for (library, version), of_library in runs.groupby(["library", "library_version"], sort=False):
        communication = ", ".join(of_library["communication_library"].dropna().unique())
        libraries.append(f"{display_name(library)} {version}{text_if(communication, f' ({communication})')}")
    for column in ("cuda_version", "cudnn_version", "gpu_driver"):
        libraries += [f"{column_named(column).label} {version}" for version in runs[column].dropna().unique()]
    return listed(libraries)


def list_values(values: pd.Series) -> str:
    """Return the distinct values of a column as a sentence lists them; numbers in order."""
    distinct = distinct_values(values)
    if not any(isinstance(value, str) for value in distinct):
        distinct.sort()
    return listed(value_with_unit(str(values.name), value) for value in distinct) or "not recorded"


def _devices_phrase(runs: pd.DataFrame) -> str:
    """Return the kinds and names of the devices that are known: `` on GPU (Tesla V100)``."""
    kinds, names = (text_if(distinct_values(runs[name]), list_values(runs[name])) for name in ("device", "device_name"))
    if kinds and names:
        return f" on {kinds} ({names})"
    return text_if(kinds or names, f" on {kinds or names}")


def _of_model(rows: pd.DataFrame, model: str | None) -> pd.DataFrame:
    return rows if model is None else rows[rows["model"] == model]
