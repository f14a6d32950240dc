"""The tables of the report. Each takes the dataset and returns a :class:`Table` with all that its caption owes."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import pandas as pd

from dlperf_study.analysis.comparison import UNDECIDED
from dlperf_study.analysis.statistics import Interval, distinguishable
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import human, is_missing, listed, plain, unit_of, whole
from dlperf_study.report.series import all_groups, configuration_labels
from dlperf_study.report.tables.answers import ALONE, cautions
from dlperf_study.report.tables.cells import AGAINST_BASELINE, defined, factor_column
from dlperf_study.report.tables.diagnostic_rows import PUBLISHED, diagnostic_rows
from dlperf_study.report.tables.missing import TRACED_COLUMNS
from dlperf_study.report.tables.rows import labelled_series, of_configurations, of_groups, of_runs, words
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.study.configuration import FIELD_NAMES, parameters_of
from dlperf_study.study.job import Outcome
from dlperf_study.study.parameter import Scope
from dlperf_study.wording import counted

#: Parameters that are said elsewhere on the page or bound a run only.
_OF_THE_PLAN = (*parameters_of(Scope.PLAN), "timeout_seconds")
#: How each configuration was measured.
_MEASUREMENT = tuple(name for name in parameters_of(Scope.MEASUREMENT) if name not in _OF_THE_PLAN)
PLACE = (
    *("cluster", "launcher", "host", "addresses", "device", "device_name", "device_peak_flops", "link"),
    *("cpu_model", "cores", "memory_bytes"),
    *("library", "library_version", "python_version", "library_settings", "git_commit", "git_dirty"),
)
#: What is known of an ingested run.
PRINTED = (
    *("throughput", "mean_of_rates", "fixed_window_throughput", "fixed_window_mean_of_rates"),
    *("fixed_window", "printed_lines", "steady_lines", "settled_at_step"),
)
LIES_IN = "difference_lies_in"
#: What stands in a table as it is, and how many letters of it; twelve name a commit.
_VERBATIM: dict[str, int | None] = {
    **dict.fromkeys(("cluster", "launcher", "host", "addresses", "library_settings")),
    "git_commit": 12,
}
_DECLARED_UNKNOWN = "the cluster file gives none"
_NO_COSTS = (
    "Negotiation and all-reduce lie beside the backward pass and beside each other, and activities of several "
    "gradients count once: they are no costs of the step. What it waits for is the exposed communication."
)
_TRACE_NOT_ASKED = "No configuration was traced: `trace_steps` in a study asks Horovod for its timeline."
_TRACE_MISSING = (
    "`trace_steps` asked for a timeline, but there is none: only Horovod writes one, on more than one device, and no "
    "such run was traced here."
)
_NOT_THE_PUBLISHED = " They are about this study's own runs; what the published numbers contradict, the audit says."
_NO_RUN = "No run completed."
_NO_DIAGNOSTIC = "No check of this study's own runs had anything to complain about."
_NO_DIAGNOSTIC_HERE = "No diagnostic is about what this page shows; the summary lists those about anything else."
_OWN_MEDIANS = "Each column is a median over the runs of its own, so the columns of a row need not add up."
_NEGATIVE = "A difference is the configuration's minus the reference's, per step: negative takes less time."
SCALING = {"weak": "weak: the batch per device is fixed", "strong": "strong: the global batch is fixed"}


def measured(dataset: Dataset) -> Table:
    """Return the main table: what each configuration reached, and against which baseline."""
    columns = ("runs_completed", "throughput", "mean_of_rates", "baseline_throughput", "speedup", "efficiency", "mfu")
    remarks = (defined("throughput"), defined("mean_of_rates"), defined("mfu"), *_indistinguishable(dataset))
    return of_configurations(dataset, "measured", "What was measured", columns, remarks)


def scaling(dataset: Dataset) -> Table:
    """Return speedups and efficiencies, each with the absolute throughput of its baseline."""
    columns = ("throughput", "baseline_throughput", "speedup", "efficiency", AGAINST_BASELINE)
    remarks = (defined("speedup"), defined("efficiency"), *cautions(dataset), *_indistinguishable(dataset))
    return of_configurations(dataset, "scaling", "Scaling", columns, remarks)


def comparison(dataset: Dataset) -> Table:
    """Return the throughput of each configuration beside that of its reference, their ratio and the verdict."""
    columns = ("runs_completed", "throughput", "reference_throughput", "relative_throughput", "verdict")
    remarks = (*map(defined, columns[2:]), ALONE, *cautions(dataset), *_parameters(dataset))
    besides = any(word for group in all_groups(dataset) for word in group.rows["besides"])
    named = [*map(factor_column, ("framework", "strategy", "world_size")), *([words("Besides", "besides")] * besides)]
    return of_groups(dataset, "comparison", "Which is faster", named, columns, remarks)


def differences(dataset: Dataset) -> Table:
    """Return what a step takes more or less than that of the reference, and in which part."""
    parts = ("step", "computation", "exposed")
    columns = (*(name for part in parts for name in (f"{part}_seconds", f"{part}_difference_seconds")), LIES_IN)
    remarks = (_NEGATIVE, *map(defined, ("computation_seconds", "exposed_seconds", LIES_IN)), _OWN_MEDIANS)
    named = [words(COLUMNS["identity"].label, "label")]
    return of_groups(dataset, "differences", "Why", named, columns, (*remarks, *_computation_note(dataset)))


def communication(dataset: Dataset) -> Table:
    """Return what a step consists of and how much of the exchange it hides."""
    times = ("step_seconds", "computation_seconds", "exposed_seconds", "exchange_seconds")
    derived = ("computation_to_communication", "overlap", "bus_bandwidth", "gradient_bytes")
    remarks = (*(defined(name) for name in (*times[1:], *derived)), _OWN_MEDIANS, *_computation_note(dataset))
    return of_configurations(dataset, "communication", "Computation and communication", (*times, *derived), remarks)


def timeline(dataset: Dataset) -> Table:
    """Return on what the exchange of a traced step spends its time, where the library traced itself."""
    rows = _traced(dataset)
    steps = context.levels(rows["trace_steps"])
    caption = (
        f"{context.conditions(context.only(dataset, rows))} Means over the {steps} steps after the warm-up of one run "
        "more of each configuration, as rank 0 saw them: one run has no interval. Tracing costs time, so no other "
        "number comes from that run."
    )
    asked = any(dataset.configurations["trace_steps"] > 0)
    empty = _TRACE_MISSING if asked else _TRACE_NOT_ASKED
    table = of_configurations(
        dataset, "timeline", "Horovod's timeline", TRACED_COLUMNS, (*map(defined, TRACED_COLUMNS), _NO_COSTS), rows
    )
    return replace(table, caption=caption if len(rows) else "", empty=empty)


def stability(dataset: Dataset) -> Table:
    """Return how steady each run was and what else the machine did meanwhile; of ingested runs, what they printed."""
    if dataset.plan.ingested_from:
        return _printed(dataset)
    shown = ("step_variation", "warmup_slowdown", "settled_at_step", "load_balance", "drain_seconds")
    columns = ("outcome", *shown, "busy_cores_during", "waited_seconds", "run_seconds")
    remarks = (*map(defined, shown), *_computation_note(dataset))
    return of_runs(dataset, "stability", "Every run", columns, dataset.runs, remarks)


def _printed(dataset: Dataset) -> Table:
    """Return the rates of each ingested run; the format, where all are of one, stands in a remark only."""
    several = dataset.runs["log_format"].nunique() > 1
    columns = ("log_format", *PRINTED) if several else PRINTED
    remarks = (*map(defined, columns), context.merging(dataset))
    return of_runs(dataset, "stability", "Every run", columns, dataset.runs, remarks)


def failures(dataset: Dataset) -> Table:
    """Return the runs that did not complete or are refused, and why."""
    rows, said = dataset.runs[dataset.runs["outcome"] != Outcome.COMPLETED], context.words(dataset)
    columns = ("outcome", "reason", "ranks_seen", "ranks_expected", *(["run_seconds"] if said.is_ours else []))
    empty = said.no_failure if len(dataset.runs) else "No run was found."
    return of_runs(dataset, "failures", said.failures_title, columns, rows, empty=empty)


def unsupported(dataset: Dataset) -> Table:
    """Return the configurations that can't run here or have no logs, and why."""
    rows = dataset.configurations[~dataset.configurations["unsupported_reason"].map(is_missing)]
    labels, said = configuration_labels(dataset), context.words(dataset)
    headings = (_heading("identity"), _heading("unsupported_reason"))
    cells = tuple((Cell(labels[row.identity]), Cell(row.unsupported_reason)) for row in rows.itertuples())
    caption = f"{said.absent * bool(cells)}{context.quick_label(dataset)}"
    return Table("unsupported", said.absent_title, caption, headings, cells, empty=said.none_absent)


def diagnostics(dataset: Dataset, topic: str = "") -> Table:
    """Return all diagnostics, or those of one topic's page; where runs differ only in numbers they share a row."""
    headings = tuple(map(_heading, ("severity", "identity", "repetition", "subject", "message")))
    published = _NOT_THE_PUBLISHED * (topic == PUBLISHED)
    caption = f"{COLUMNS['severity'].definition.capitalize()}.{published}{context.quick_label(dataset)}"
    name, empty = (
        f"diagnostics-{topic}" if topic else "diagnostics",
        _NO_DIAGNOSTIC if dataset.diagnostics.empty else _NO_DIAGNOSTIC_HERE,
    )
    return Table(name, "Diagnostics", caption, headings, tuple(diagnostic_rows(dataset, topic)), empty=empty)


def about(dataset: Dataset) -> Table:
    """Return what the study asks and how each configuration is measured."""
    plan, rows = dataset.plan, dataset.configurations
    facts = {"About": plan.about, "Questions": listed(list(plan.questions)) or "none", "Scaling": SCALING[plan.scaling]}
    fixed = [name for name in context.departures(rows, FIELD_NAMES) if name not in (*_OF_THE_PLAN, *plan.factors)]
    shown = dict.fromkeys((*plan.factors, "image_size", *fixed, "repeats", *_MEASUREMENT))
    facts |= {COLUMNS[name].label: context.levels(rows[name]) for name in shown if rows[name].notna().any()}
    cells = tuple((Cell(name), Cell(value)) for name, value in facts.items())
    runs = context.words(dataset).runs.format(counted(int(rows["runs_planned"].sum()), "run"))
    caption = f"{counted(len(rows), 'configuration')}, {runs}.{context.quick_label(dataset)}"
    return Table("about", plan.title, caption, (Heading(""), Heading("")), cells)


def places(dataset: Dataset) -> Table:
    """Return the hardware and software of the completed runs: a column for each distinct combination."""
    runs, said = context.completed_runs(dataset), context.words(dataset)
    names = [name for name in PLACE if said.is_ours or runs[name].notna().any()]
    distinct = runs[names].drop_duplicates()
    cells = tuple(
        (Cell(COLUMNS[name].label), *(_place_cell(name, value, said) for value in distinct[name])) for name in names
    )
    headings = tuple(Heading("") for _ in range(1 + len(distinct)))
    rows = cells if len(runs) else ()
    place = said.place.format(counted(len(runs), "completed run"))
    caption = f"{place * bool(rows or said.is_ours)}{context.quick_label(dataset)}"
    return Table("places", said.place_title, caption, headings, rows, empty=said.no_place if len(runs) else _NO_RUN)


def _traced(dataset: Dataset) -> pd.DataFrame:
    """Return the configurations that were traced, also where nothing can be read from the trace."""
    diagnostics, rows = dataset.diagnostics, dataset.configurations
    diagnosed = rows["identity"].isin(diagnostics.loc[diagnostics["subject"] == "trace", "identity"])
    return rows[diagnosed | rows["negotiation_seconds"].notna()]


def _computation_note(dataset: Dataset) -> list[str]:
    return list(filter(None, [context.computation_note(dataset)]))


def _parameters(dataset: Dataset) -> Iterator[str]:
    """Yield how many parameters each model has; runs of one model that disagree are an error among the diagnostics."""
    for model, rows in context.measured(dataset).groupby("model", sort=False):
        counts = listed([whole(count) for count in sorted(rows["parameters"].dropna().unique())])
        yield f"{human(model)}: {counts or 'an unknown number of'} parameters on rank 0."


def _heading(name: str) -> Heading:
    return Heading(COLUMNS[name].label)


def _place_cell(name: str, value: object, said: context.Words) -> Cell:
    unit = unit_of(name, [value]) if COLUMNS[name].unit else None
    if is_missing(value):
        return Cell.missing(_DECLARED_UNKNOWN if said.is_ours and name == "device_peak_flops" else said.unknown)
    if name in _VERBATIM:
        return Cell(str(value)[: _VERBATIM[name]])
    return Cell(f"{plain(float(str(value)) / unit.size)} {unit.symbol}" if unit else human(value))


def _indistinguishable(dataset: Dataset) -> tuple[str, ...]:
    """Return one remark per number of devices and model that lists the series whose intervals overlap."""
    series, labels = labelled_series(dataset)
    rows = pd.concat([one.rows.assign(series=label) for one, label in zip(series, labels, strict=True)])
    groups = rows.dropna(subset=["throughput_low"]).groupby(["model", "world_size"], sort=False)
    return tuple(remark for key, group in groups if (remark := _overlaps(key, group)))


def _interval(row: Any) -> Interval:
    return Interval(row.throughput_low, row.throughput_high, row.interval_coverage)


def _overlaps(key: tuple[str, int], group: pd.DataFrame) -> str:
    pairs = [
        f"{one.series} and {other.series}"
        for one, other in combinations(group.itertuples(), 2)
        if not distinguishable(_interval(one), _interval(other))
    ]
    where = f"{human(key[0])} on {counted(key[1], 'device')}"
    return f"{where}, {UNDECIDED} (intervals overlap): {'; '.join(pairs)}." if pairs else ""
