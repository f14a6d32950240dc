"""The tables of a study's own numbers and runs: each takes the dataset and returns a table with its whole caption."""

from functools import partial
from typing import Any

import pandas as pd

from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS, names_of_users
from dlperf_study.metrics.statistics import log_ratio
from dlperf_study.report import context, formatting, section, series
from dlperf_study.report.tables import page_tables, table_builders
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.study.configuration import FIELD_NAMES
from dlperf_study.study.job import ROUNDS, Outcome
from dlperf_study.training.part_names import same_alone

_TOKENS_AND_FLOPS = (
    "A sample is a sequence, and all its positions are tokens. FLOPs of a sequence, forward and backward: 6 for each "
    "weight that multiplies a token, and 12 x layers x hidden x sequence length² for attention, of which a causal mask "
    "saves nothing in this count (as in PaLM; others count the half)."
)
_NEGATIVE = "A difference is the configuration's minus the reference's, per step: negative takes less time."
VERDICTS_TOGETHER = (
    "All verdicts of a study are made together (Holm): with a probability of at least 95 % none of them "
    "wrongly says faster or slower. So an interval that barely excludes 1 may belong to no such verdict."
)
_ORDER_UNKNOWN = (
    "Logs do not say in which order the runs were made: intervals of ratios take them as independent, and hold nothing "
    "that a machine changed between the runs of one configuration and those of the next."
)
_IN_BLOCKS = (
    "Runs that were not measured in rounds, but in blocks or by hand, have no ratio with an interval and no verdict: a "
    "machine that slowly changes its speed sets configurations apart, and nothing tells that from a difference between "
    "them."
)


def measured(dataset: Dataset) -> Table:
    """Return the main table: throughputs, speedups, and their baselines."""
    # What other programs print is often a mean of rates; of our own runs it is on the page of published numbers.
    names = ("throughput", "mean_of_rates") if dataset.plan.ingested_from else ("throughput",)
    of_device = context.known_columns(dataset.configurations, ("device_token_throughput",))
    rates = (*context.known_rates(dataset.configurations, names), *of_device)
    # Without the peak of the device no configuration has a share of it.
    utilisation = context.known_columns(dataset.configurations, ("mfu", "hfu"))
    ratios = _ratios(dataset)
    has_speedup = ratios and dataset.configurations["speedup"].notna().any()
    baseline_rates = []
    if has_speedup:
        baseline_rates = [f"baseline_{dataset.rate}"]
    # On a phone the first columns are what is seen.
    columns = (*rates, *ratios, *utilisation, *baseline_rates, "runs_completed")
    notes = [*map(table_builders.defined, (*rates, *utilisation))]
    rows = dataset.measured
    # Conventions of what a FLOP of a sequence is differ by 30 %.
    if rows["sequence_length"].notna().any() and rows["flops_per_sample"].notna().any():
        notes.append(_TOKENS_AND_FLOPS)
    return table_builders.table_of_configurations(dataset, "measured", "What was measured", columns, notes)


def _ratios(dataset: Dataset) -> tuple[str, ...]:
    """Return the columns of ratios that differ from each other."""
    rows = dataset.configurations
    differs = rows["baseline_identity"].notna() & (rows["baseline_identity"] != rows["identity"])
    if not differs.any():
        return ()
    devices = dict(zip(rows["identity"], rows["world_size"], strict=True))
    is_scaled = differs & (rows["baseline_identity"].map(devices) != rows["world_size"])
    if is_scaled.any():
        return ("speedup", "efficiency")
    return ("speedup",)


def scaling(dataset: Dataset) -> Table:
    """Return speedups and efficiencies with the throughput of each baseline."""
    ratios = ("speedup", "efficiency", "baseline_verdict")
    rates, baselines = (
        context.known_rates(dataset.configurations, (name,)) for name in ("throughput", "baseline_throughput")
    )
    columns = (*rates, *ratios, *baselines)
    definitions = map(table_builders.defined, ratios)
    notes = (*definitions, *comparison_notes(dataset))
    return table_builders.table_of_configurations(dataset, "scaling", "Scaling", columns, notes)


def comparison(dataset: Dataset) -> Table:
    """Return the throughput, reference, ratio and verdict of each configuration."""
    ratios = ("relative_throughput",)
    rates, references = (
        context.known_rates(dataset.configurations, (name,)) for name in ("throughput", "reference_throughput")
    )
    columns = (*rates, *ratios, "verdict", *references, "runs_completed")
    definitions = map(table_builders.defined, [name for name in columns[:-1] if name != "throughput"])
    notes = [*definitions, VERDICTS_TOGETHER, *comparison_notes(dataset)]
    # Runs of one model that disagree are an error among the diagnostics.
    for _, rows in dataset.measured.groupby("model", sort=False):
        counts = formatting.listed(map(formatting.integer, series.ordered_levels(rows["parameters"])))
        notes.append(f"{formatting.model_name(rows.iloc[0])}: {counts or 'an unknown number of'} parameters on rank 0.")
    keys = list(map(table_builders.factor_column, ("framework", "strategy", "world_size")))
    if any(group.rows["other_differences"].any() for group in series.all_groups(dataset)):
        keys.append(table_builders.label_column("Also", "other_differences"))
    return table_builders.table_of_groups(dataset, "comparison", "Which is faster", keys, columns, tuple(notes))


def differences(dataset: Dataset) -> Table:
    """Return the difference of each step part from the reference."""
    parts = [
        "computation_seconds",
        *(["input_seconds"] if context.waits_for_batches(dataset) else []),
        "exposed_seconds",
    ]
    columns: list[str] = []
    for part in ("broken_down_step_seconds", *parts):
        columns += [part, part.replace("_seconds", "_difference_seconds")]
    columns.append("difference_lies_in")
    definitions = map(table_builders.defined, (*parts, "difference_lies_in"))
    notes = (_NEGATIVE, *definitions, *page_tables.computation_notes(dataset))
    keys = [table_builders.label_column(COLUMNS["identity"].label, "label")]
    return table_builders.table_of_groups(dataset, "differences", "Why", keys, columns, notes)


def failures(dataset: Dataset) -> Table:
    """Return failed and rejected runs; out-of-memory is in the memory table."""
    wording, all_runs = context.page_wording(dataset), dataset.runs
    has_completed = all_runs["identity"].isin(dataset.completed_runs["identity"])
    is_elsewhere = (all_runs["outcome"] == Outcome.OUT_OF_MEMORY) & ~has_completed
    runs = all_runs[(all_runs["outcome"] != Outcome.COMPLETED) & ~is_elsewhere]
    columns = ["outcome", "reason", "ranks_seen", "ranks_expected"]
    if wording.is_measured:
        columns.append("run_seconds")
    empty = _NO_RUN
    if len(all_runs):
        empty = wording.no_failure
    if is_elsewhere.any():
        empty = "No run failed but those that did not fit in memory, which are in the table on memory."
    return table_builders.table_of_runs(dataset, "failures", wording.failures_title, columns, runs, empty=empty)


def unsupported(dataset: Dataset) -> Table:
    """Return configurations that cannot run or have no logs, and why."""
    wording, labels = context.page_wording(dataset), series.configuration_labels(dataset)
    rows = dataset.configurations[~dataset.configurations["unsupported_reason"].map(is_missing)]
    cells = tuple((Cell(labels[row.identity]), Cell(row.unsupported_reason)) for row in rows.itertuples())
    caption = f"{wording.unsupported if cells else ''}{context.quick_label(dataset)}"
    headings = tuple(Heading(COLUMNS[name].label) for name in ("identity", "unsupported_reason"))
    return Table("unsupported", wording.unsupported_title, caption, headings, cells, empty=wording.none_unsupported)


#: What each run has; a column of which no run has a number, or all have 0, is left out.
_NUMBERS = (
    *("run_seconds", "throughput", "token_throughput", "step_seconds"),
    *("computation_seconds", "input_seconds", "exposed_seconds", "exchange_seconds"),
    *("final_loss", "energy_per_sample"),
)
_OF_RUN = (
    *("identity", "repetition", "outcome", "reason", "started", "framework", "exchange", "breakdown_from"),
    "disturbed",
)
_TO_THE_SECOND = 19
_CAPTION = "One row per run. Numbers on the other pages lead to their configuration here."
_NO_RUN = "No run was found."


def runs(dataset: Dataset) -> Table:
    """Return every run, grouped by configuration and folder."""
    numbers = [name for name in (*_NUMBERS, *names_of_users()) if dataset.runs[name].fillna(0).any()]
    # Lines of logs have times without a date, or none.
    begun = []
    if dataset.runs["started"].notna().any():
        begun = [_started()]
    columns = [
        _run_number(dataset.runs),
        _outcome(),
        *begun,
        *map(partial(table_builders.run_column, dataset.runs), numbers),
    ]
    labels = series.configuration_labels(dataset)
    positions = {identity: position for position, identity in enumerate(labels)}
    # A tuple of all columns would take most of the time of this page.
    shown = dataset.runs[[*_OF_RUN, *numbers]]
    ordered = shown.assign(position=shown["identity"].map(positions)).sort_values(["position", "repetition"])
    groups = ordered["identity"].map(labels)
    if not dataset.plan.ingested_from:
        # Logs stay where they were read.
        groups += f": outputs/{dataset.plan.study}/configurations/" + ordered["identity"] + "/runs"
    members = ((group, (row,)) for group, row in zip(groups, ordered.itertuples(), strict=True))
    caption = f"{_CAPTION} {context.conditions(dataset)}"
    return table_builders.grouped_table(
        "runs", "Runs", caption, columns, members, map(table_builders.defined, numbers), _NO_RUN, _CAPTION
    )


def _run_number(runs: pd.DataFrame) -> table_builders.TableColumn:
    first_runs = runs.groupby("identity")["repetition"].min()

    def cell(row: Any) -> Cell:
        is_first = row.repetition == first_runs[row.identity]
        return Cell(str(row.repetition), anchor=section.evidence_anchor(row.identity) if is_first else "")

    return table_builders.TableColumn(Heading("Run", numeric=True), cell)


def _outcome() -> table_builders.TableColumn:
    def cell(row: Any) -> Cell:
        if row.outcome != Outcome.COMPLETED:
            return Cell(str(row.outcome), footnote=str(row.reason or ""))
        is_disturbed = not is_missing(row.disturbed) and row.disturbed
        return Cell(str(row.outcome), footnote="disturbed by background load" if is_disturbed else "")

    return table_builders.TableColumn(Heading("Outcome"), cell)


def _started() -> table_builders.TableColumn:
    def cell(row: Any) -> Cell:
        started = str(row.started)[:_TO_THE_SECOND].replace("T", " ")
        if isinstance(row.started, str):
            return Cell(started)
        return Cell.missing("its record has no time")

    return table_builders.TableColumn(Heading("Started", "UTC", numeric=True), cell)


def comparison_notes(dataset: Dataset) -> tuple[str, ...]:
    """Return the limits of comparisons that no interval shows."""
    runs = dataset.completed_runs
    notes = []
    if (runs["order"] != ROUNDS).any() and runs["identity"].nunique() > 1:
        notes.append(_ORDER_UNKNOWN if dataset.plan.ingested_from else _IN_BLOCKS)
    alone = dataset.measured[dataset.measured["world_size"] == 1]
    programs = [_note_of_same_program(dataset, alone, group) for group in same_alone()]
    if any(programs):
        notes.append(" ".join(filter(None, programs)))
    return tuple(notes)


def _note_of_same_program(dataset: Dataset, rows: pd.DataFrame, frameworks: tuple[str, ...]) -> str:
    """Return the difference between frameworks that run one program."""
    on_one_device = rows[rows["framework"].isin(frameworks)]
    common = [name for name in FIELD_NAMES if name != "framework"]
    throughputs = dataset.throughputs
    ratios = []
    for _, pair in on_one_device.groupby(common, sort=False, dropna=False):
        if len(pair) == 2:
            first, second = (throughputs[identity] for identity in pair["identity"])
            ratio = max(log_ratio(first, second), log_ratio(second, first), key=lambda estimate: estimate.mean)
            times = formatting.value_text(ratio.bounded_factor, "×", decision=1, no_interval=", without an interval")
            ratios.append(f"{formatting.model_name(pair.iloc[0])}: {times}")
    if not ratios:
        return ""
    names = formatting.listed(map(formatting.display_name, frameworks))
    return (
        f"On one device {names} run the same program. What differs there ({', '.join(ratios)}) is not theirs, but how "
        "far apart one program is measured twice here; believe no smaller difference between other configurations."
    )
