"""The tables of a study's own numbers and runs: each takes the dataset and returns a table with its whole caption."""

from functools import partial
from typing import Any

import pandas as pd

from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS, names_of_users
from dlperf_study.metrics.statistics import log_ratio
from dlperf_study.report import context, formatting, section, series
from dlperf_study.report.formatting import text_if
from dlperf_study.report.say import caption
from dlperf_study.report.tables import page_tables, table_builders
from dlperf_study.report.tables.table import Cell, Heading, Table, make_table
from dlperf_study.report.tables.table_builders import TableColumn
from dlperf_study.study.configuration import FIELD_NAMES
from dlperf_study.study.job import INTERLEAVED, RunStatus
from dlperf_study.training.parts import same_alone

#: What each run has; a column of which no run has a number, or all have 0, is left out.
_NUMBERS = (
    *("run_seconds", "throughput", "token_throughput", "step_seconds"),
    *("compute_seconds", "input_seconds", "exposed_communication_seconds", "communication_seconds"),
    *("final_loss", "energy_per_sample"),
)
_OF_RUN = (
    *("configuration_id", "repetition", "status", "reason", "started", "framework", "communication", "breakdown_from"),
    "disturbed",
)
_TO_THE_SECOND = 19


def measured(dataset: Dataset) -> Table:
    """Return the main table: throughputs, speedups, and their baselines."""
    # What other programs print is often a mean of throughputs; of our own runs it is on the page of published numbers.
    names = ("throughput", "mean_step_throughput") if dataset.plan.ingested_from else ("throughput",)
    of_device = context.known_columns(dataset.configurations, ("device_token_throughput",))
    throughputs = (*context.known_throughputs(dataset.configurations, names), *of_device)
    # Without the peak of the device no configuration has a share of it.
    utilisation = context.known_columns(dataset.configurations, ("mfu", "hfu"))
    ratios = _ratios(dataset)
    # On a phone the first columns are what is seen.
    columns = [*throughputs, *ratios, *utilisation, "runs_completed"]
    if ratios and dataset.configurations["speedup"].notna().any():
        columns.insert(-1, f"baseline_{dataset.throughput_column}")
    notes = [*map(table_builders.defined, (*throughputs, *utilisation))]
    rows = dataset.measured
    # Conventions of what a FLOP of a sequence is differ by 30 %.
    if rows["sequence_length"].notna().any() and rows["flops_per_sample"].notna().any():
        notes.append(caption("measured", "flops"))
    return table_builders.table_of_configurations(dataset, "measured", columns, notes)


def _ratios(dataset: Dataset) -> tuple[str, ...]:
    """Return the columns of ratios that differ from each other."""
    rows = dataset.configurations
    differs = rows["baseline_id"].notna() & (rows["baseline_id"] != rows["configuration_id"])
    if not differs.any():
        return ()
    devices = dict(zip(rows["configuration_id"], rows["world_size"], strict=True))
    is_scaled = differs & (rows["baseline_id"].map(devices) != rows["world_size"])
    return ("speedup", "efficiency") if is_scaled.any() else ("speedup",)


def scaling(dataset: Dataset) -> Table:
    """Return speedups and efficiencies with the throughput of each baseline."""
    ratios = ("speedup", "efficiency", "baseline_significance")
    throughputs = context.known_throughputs(dataset.configurations, ("throughput",))
    columns = (*throughputs, *ratios, *context.known_throughputs(dataset.configurations, ("baseline_throughput",)))
    notes = (*map(table_builders.defined, ratios), *comparison_notes(dataset))
    return table_builders.table_of_configurations(dataset, "scaling", columns, notes)


def comparison(dataset: Dataset) -> Table:
    """Return the throughput, reference, ratio and significance of each configuration."""
    throughputs = context.known_throughputs(dataset.configurations, ("throughput",))
    references = context.known_throughputs(dataset.configurations, ("reference_throughput",))
    columns = (*throughputs, "relative_throughput", "significance", *references, "runs_completed")
    definitions = map(table_builders.defined, filter("throughput".__ne__, columns[:-1]))
    notes = [*definitions, caption("comparison", "significances"), *comparison_notes(dataset)]
    # Runs of one model that disagree are an error among the diagnostics.
    for _, rows in dataset.measured.groupby("model", sort=False):
        counts = formatting.listed(map(formatting.integer, series.ordered_values(rows["parameters"])))
        notes.append(caption("comparison", "parameters", model=formatting.model_name(rows.iloc[0]), counts=counts))
    keys = list(map(table_builders.factor_column, ("framework", "strategy", "world_size")))
    if any(group.rows["other_differences"].any() for group in series.all_groups(dataset)):
        keys.append(table_builders.label_column("Also", "other_differences"))
    return table_builders.table_of_groups(dataset, "comparison", keys, columns, notes)


def differences(dataset: Dataset) -> Table:
    """Return the difference of each step part from the reference."""
    parts = ["compute_seconds", "exposed_communication_seconds"]
    if context.waits_for_batches(dataset):
        parts.insert(1, "input_seconds")
    columns: list[str] = []
    for part in ("broken_down_step_seconds", *parts):
        columns += [part, part.replace("_seconds", "_difference_seconds")]
    columns.append("largest_difference")
    definitions = map(table_builders.defined, (*parts, "largest_difference"))
    notes = (caption("differences", "sign"), *definitions, *page_tables.computation_notes(dataset))
    keys = [table_builders.label_column(COLUMNS["configuration_id"].label, "label")]
    return table_builders.table_of_groups(dataset, "differences", keys, columns, notes)


def failures(dataset: Dataset) -> Table:
    """Return failed and rejected runs; out-of-memory is in the memory table."""
    all_runs = dataset.runs
    has_completed = all_runs["configuration_id"].isin(dataset.completed_runs["configuration_id"])
    is_elsewhere = (all_runs["status"] == RunStatus.OUT_OF_MEMORY) & ~has_completed
    runs = all_runs[(all_runs["status"] != RunStatus.COMPLETED) & ~is_elsewhere]
    columns = ["status", "reason", "ranks_seen", "ranks_expected"]
    if not dataset.plan.ingested_from:
        columns.append("run_seconds")
    title, empty = context.by_origin(dataset, "failures_title"), context.by_origin(dataset, "no_failure")
    if is_elsewhere.any():
        empty = caption("failures", "memory")
    elif all_runs.empty:
        empty = caption("failures", "no_run")
    return table_builders.table_of_runs(dataset, "failures", columns, runs, title=title, empty=empty)


def unsupported(dataset: Dataset) -> Table:
    """Return configurations that cannot run or have no logs, and why."""
    labels, rows = series.configuration_labels(dataset), []
    for row in dataset.configurations.dropna(subset="unsupported_reason").itertuples():
        rows.append((labels[row.configuration_id], row.unsupported_reason))
    options = {"title": context.by_origin(dataset, "unsupported_title")}
    options["empty"] = context.by_origin(dataset, "none_unsupported")
    about = text_if(rows, context.by_origin(dataset, "unsupported")) + context.quick_label(dataset)
    headings = (COLUMNS["configuration_id"].label, COLUMNS["unsupported_reason"].label)
    return make_table("unsupported", headings, rows, about, **options)


def runs(dataset: Dataset) -> Table:
    """Return every run, grouped by configuration and folder."""
    numbers = [name for name in (*_NUMBERS, *names_of_users()) if dataset.runs[name].fillna(0).any()]
    columns = [_run_number(dataset.runs), TableColumn(Heading("Status"), _outcome)]
    # Lines of logs have times without a date, or none.
    if dataset.runs["started"].notna().any():
        columns.append(TableColumn(Heading.number("Started", "UTC"), _started))
    columns += map(partial(table_builders.run_column, dataset.runs), numbers)
    labels = series.configuration_labels(dataset)
    positions = {configuration_id: position for position, configuration_id in enumerate(labels)}
    # A tuple of all columns would take most of the time of this page.
    shown = dataset.runs[[*_OF_RUN, *numbers]]
    ordered = shown.assign(position=shown["configuration_id"].map(positions)).sort_values(["position", "repetition"])
    groups = ordered["configuration_id"].map(labels)
    if not dataset.plan.ingested_from:
        # Logs stay where they were read.
        groups += f": outputs/{dataset.plan.study}/configurations/" + ordered["configuration_id"] + "/runs"
    members = ((group, (row,)) for group, row in zip(groups, ordered.itertuples(), strict=True))
    on_page, notes = caption("runs"), map(table_builders.defined, numbers)
    in_file = f"{on_page} {context.conditions(dataset)}"
    return table_builders.grouped_table("runs", in_file, columns, members, notes, page_caption=on_page)


def _run_number(runs: pd.DataFrame) -> TableColumn:
    first_runs = runs.groupby("configuration_id")["repetition"].min()

    def cell(row: Any) -> Cell:
        is_first = row.repetition == first_runs[row.configuration_id]
        return Cell(str(row.repetition), anchor=text_if(is_first, section.evidence_anchor(row.configuration_id)))

    return TableColumn(Heading.number("Run"), cell)


def _outcome(row: Any) -> Cell:
    if row.status != RunStatus.COMPLETED:
        return Cell(str(row.status), footnote=str(row.reason or ""))
    is_disturbed = not is_missing(row.disturbed) and row.disturbed
    return Cell(str(row.status), footnote=text_if(is_disturbed, "disturbed by background load"))


def _started(row: Any) -> Cell:
    if isinstance(row.started, str):
        return Cell(row.started[:_TO_THE_SECOND].replace("T", " "))
    return Cell.missing("its record has no time")


def comparison_notes(dataset: Dataset) -> tuple[str, ...]:
    """Return the limits of comparisons that no interval shows."""
    runs = dataset.completed_runs
    notes = []
    if (runs["order"] != INTERLEAVED).any() and runs["configuration_id"].nunique() > 1:
        notes.append(context.by_origin(dataset, "order"))
    alone = dataset.measured[dataset.measured["world_size"] == 1]
    same_programs = filter(None, (_note_of_same_program(dataset, alone, group) for group in same_alone()))
    return tuple(filter(None, (*notes, " ".join(same_programs))))


def _note_of_same_program(dataset: Dataset, rows: pd.DataFrame, frameworks: tuple[str, ...]) -> str:
    """Return the difference between frameworks that run one program."""
    on_one_device = rows[rows["framework"].isin(frameworks)]
    common = [name for name in FIELD_NAMES if name != "framework"]
    throughputs = dataset.throughputs
    ratios = []
    for _, pair in on_one_device.groupby(common, sort=False, dropna=False):
        if len(pair) == 2:
            first, second = (throughputs[configuration_id] for configuration_id in pair["configuration_id"])
            ratio = max(log_ratio(first, second), log_ratio(second, first), key=lambda estimate: estimate.mean)
            times = formatting.value_text(ratio.bounded_factor, "×", decision=1, no_interval=", without an interval")
            ratios.append(f"{formatting.model_name(pair.iloc[0])}: {times}")
    if not ratios:
        return ""
    names = formatting.listed(map(formatting.display_name, frameworks))
    return caption("comparison", "same_program", names=names, ratios=", ".join(ratios))
