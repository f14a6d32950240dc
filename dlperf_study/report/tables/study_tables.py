"""The tables of a study's own numbers. Each takes the dataset and returns a :class:`Table` with its whole caption."""

from collections.abc import Iterator
from itertools import combinations

import pandas as pd
from pandas.api.types import is_numeric_dtype

from dlperf_study.analysis.comparison import EQUAL, NOT_DISTINGUISHABLE, verdicts, widest_equality
from dlperf_study.analysis.statistics import log_ratio
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.configuration_table import throughputs_of
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.plan.plan import Plan
from dlperf_study.report import context
from dlperf_study.report.formatting import (
    display_name,
    integer,
    is_missing,
    is_named_default,
    listed,
    plain,
    unit_of,
)
from dlperf_study.report.series import all_groups, configuration_labels
from dlperf_study.report.tables.answers import VERDICTS_TOGETHER, comparison_notes
from dlperf_study.report.tables.cells import defined, factor_column, verdict_text
from dlperf_study.report.tables.communication_tables import computation_notes
from dlperf_study.report.tables.diagnostic_rows import diagnostic_rows
from dlperf_study.report.tables.rows import (
    label_column,
    labelled_series,
    table_of_configurations,
    table_of_groups,
    table_of_runs,
)
from dlperf_study.report.tables.selftest_tables import selftest_note
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.study.configuration import FIELD_NAMES, parameters_of
from dlperf_study.study.job import Outcome
from dlperf_study.study.parameter import Scope
from dlperf_study.study.study import PUBLISHED
from dlperf_study.study.turn import ROUNDS
from dlperf_study.wording import counted, first_of

#: Parameters that are elsewhere on the page or limit a run only.
_OF_THE_PLAN = (*parameters_of(Scope.PLAN), "timeout_seconds")
#: How each configuration was measured.
_MEASUREMENT = tuple(name for name in parameters_of(Scope.MEASUREMENT) if name not in _OF_THE_PLAN)
ENVIRONMENT = (
    *("cluster", "launcher", "host", "addresses", "device", "device_name", "device_peak_flops", "device_peak_source"),
    "link",
    *("cpu_model", "cores", "memory_bytes"),
    *("library", "library_version", "exchange_library", "gpu_driver", "cuda_version", "cudnn_version"),
    *("python_version", "library_settings", "git_commit", "git_dirty"),
)
#: What depends on precision and devices, so that runs in one environment have several.
_OF_CONFIGURATIONS = ("device_peak_flops", "device_peak_source", "exchange_library")
#: Rows that only runs on GPUs, or on several devices, have.
_IF_KNOWN = ("exchange_library", "gpu_driver", "cuda_version", "cudnn_version")
#: What a table shows as it is, and how many letters of it; twelve identify a commit.
_VERBATIM: dict[str, int | None] = {
    **dict.fromkeys(("cluster", "launcher", "host", "addresses", "library_settings")),
    "git_commit": 12,
}
#: Of how many configurations every pair is compared, and how many pairs are named.
MOST_IN_PAIRS, MOST_PAIRS = 100, 20
_NOT_THE_PUBLISHED = " They are about this study's own runs; what the published numbers contradict, the audit says."
_NO_RUN = "No run completed."
_NO_PEAK = "neither the cluster file nor the table of data sheets has it"
_NO_DIAGNOSTIC = "No check of this study's own runs has a diagnostic."
_NO_DIAGNOSTIC_HERE = "No diagnostic is about what this page shows; the summary lists those about anything else."
_NEGATIVE = "A difference is the configuration's minus the reference's, per step: negative takes less time."
SCALING = {"weak": "weak: the batch per device is fixed", "strong": "strong: the global batch is fixed"}


def measured(dataset: Dataset) -> Table:
    """Return the main table: what each configuration reached, and against which baseline."""
    # What other programs print is often a mean of rates; of our own runs it is on the page of published numbers.
    names = ("throughput", "mean_of_rates") if dataset.plan.ingested_from else ("throughput",)
    rates = context.known_rates(dataset.configurations, names)
    # Without the peak of the device no configuration has one.
    utilisation = ("mfu",) if dataset.configurations["mfu"].notna().any() else ()
    columns = ("runs_completed", *rates, *_ratios(dataset), *utilisation)
    notes = (*map(defined, (*rates, *utilisation)), *_indistinguishable(dataset))
    return table_of_configurations(dataset, "measured", "What was measured", columns, notes)


def _ratios(dataset: Dataset) -> tuple[str, ...]:
    """Return the columns of ratios to the baseline that say something: none where each configuration is its own.

    Where every baseline has as many devices, an efficiency is the speedup once more.
    """
    rows = dataset.configurations
    differs = rows["baseline_identity"].notna() & (rows["baseline_identity"] != rows["identity"])
    if len(rows) > 1 and not differs.any():
        return ()
    devices = dict(zip(rows["identity"], rows["world_size"], strict=True))
    is_scaled = differs & (rows["baseline_identity"].map(devices) != rows["world_size"])
    baseline = ("baseline_throughput",) if rows["baseline_throughput"].notna().any() else ()
    return (*baseline, "speedup", *(("efficiency",) if is_scaled.any() else ()))


def scaling(dataset: Dataset) -> Table:
    """Return speedups and efficiencies, each with the absolute throughput of its baseline."""
    ratios = ("speedup", "efficiency", "baseline_verdict")
    columns = (*context.known_rates(dataset.configurations, ("throughput", "baseline_throughput")), *ratios)
    definitions = map(defined, ratios)
    notes = (*definitions, *comparison_notes(dataset), *_indistinguishable(dataset))
    return table_of_configurations(dataset, "scaling", "Scaling", columns, notes)


def comparison(dataset: Dataset) -> Table:
    """Return the throughput of each configuration next to that of its reference, their ratio and the verdict."""
    columns = ("runs_completed", "throughput", "reference_throughput", "relative_throughput", "verdict")
    notes = (*map(defined, columns[2:]), VERDICTS_TOGETHER, *comparison_notes(dataset), *_parameters(dataset))
    keys = list(map(factor_column, ("framework", "strategy", "world_size")))
    if any(group.rows["other_differences"].any() for group in all_groups(dataset)):
        keys.append(label_column("Also", "other_differences"))
    return table_of_groups(dataset, "comparison", "Which is faster", keys, columns, notes)


def differences(dataset: Dataset) -> Table:
    """Return what a step takes more or less than that of the reference, and in which part."""
    parts = [
        "computation_seconds",
        *(["input_seconds"] if context.waits_for_batches(dataset) else []),
        "exposed_seconds",
    ]
    columns: list[str] = []
    for part in ("step_seconds", *parts):
        columns += [part, part.replace("_seconds", "_difference_seconds")]
    columns.append("difference_lies_in")
    definitions = map(defined, (*parts, "difference_lies_in"))
    notes = (_NEGATIVE, *definitions, *computation_notes(dataset))
    keys = [label_column(COLUMNS["identity"].label, "label")]
    return table_of_groups(dataset, "differences", "Why", keys, columns, notes)


def failures(dataset: Dataset) -> Table:
    """Return the runs that failed or are refused, and why; what does not fit in memory is in the table on memory."""
    wording = context.page_wording(dataset)
    runs = dataset.runs[~dataset.runs["outcome"].isin([Outcome.COMPLETED, Outcome.OUT_OF_MEMORY])]
    columns = ["outcome", "reason", "ranks_seen", "ranks_expected"]
    if wording.is_measured:
        columns.append("run_seconds")
    empty = wording.no_failure if len(dataset.runs) else "No run was found."
    return table_of_runs(dataset, "failures", wording.failures_title, columns, runs, empty=empty)


def unsupported(dataset: Dataset) -> Table:
    """Return the configurations that can't run here or have no logs, and why."""
    wording, labels = context.page_wording(dataset), configuration_labels(dataset)
    rows = dataset.configurations[~dataset.configurations["unsupported_reason"].map(is_missing)]
    cells = tuple((Cell(labels[row.identity]), Cell(row.unsupported_reason)) for row in rows.itertuples())
    caption = f"{wording.unsupported if cells else ''}{context.quick_label(dataset)}"
    headings = _headings("identity", "unsupported_reason")
    return Table("unsupported", wording.unsupported_title, caption, headings, cells, empty=wording.none_unsupported)


def diagnostics(dataset: Dataset, topic: str = "") -> Table:
    """Return all diagnostics, or those of one topic's page; where runs differ only in numbers they share a row."""
    headings = _headings("severity", "identity", "repetition", "subject", "message")
    published = _NOT_THE_PUBLISHED if topic == PUBLISHED else ""
    caption = f"{COLUMNS['severity'].definition.capitalize()}.{published}{context.quick_label(dataset)}"
    empty = _NO_DIAGNOSTIC if dataset.diagnostics.empty else _NO_DIAGNOSTIC_HERE
    name = f"diagnostics-{topic}" if topic else "diagnostics"
    return Table(name, "Diagnostics", caption, headings, tuple(diagnostic_rows(dataset, topic)), empty=empty)


def about(dataset: Dataset) -> Table:
    """Return what the study asks and how each configuration is measured."""
    plan, rows = dataset.plan, dataset.configurations
    facts = {"About": plan.about, "Questions": listed(list(plan.questions)) or "none", "Scaling": SCALING[plan.scaling]}
    departures = context.departures(rows, FIELD_NAMES)
    fixed = [name for name in departures if name not in (*_OF_THE_PLAN, *plan.factors)]
    for name in dict.fromkeys((*plan.factors, "image_size", *fixed, "repeats", *_MEASUREMENT)):
        if rows[name].notna().any():
            facts[COLUMNS[name].label] = _levels_text(name, rows[name])
    facts |= _course(plan)
    if note := selftest_note(dataset):
        facts["Self-test"] = note
    cells = tuple((Cell(name), Cell(value)) for name, value in facts.items())
    runs = context.page_wording(dataset).runs.format(counted(int(rows["runs_planned"].sum()), "run"))
    caption = f"{counted(len(rows), 'configuration')}, {runs}{_added_runs(dataset)}.{context.quick_label(dataset)}"
    return Table("about", plan.title, caption, _no_headings(2), cells)


def _levels_text(name: str, values: pd.Series) -> str:
    """Return the levels of a parameter with their unit, unless the label has it; a batch per device of 0 is none."""
    if name == "batch_per_device" and (values == 0).any():
        shared = f"{_levels_text(name, values[values > 0])}; " if (values > 0).any() else ""
        return f"{shared}none where the global batch can't be shared equally"
    unit = COLUMNS[name].unit
    is_named = any(is_named_default(name, value) for value in values)
    has_no_unit = not unit or unit in COLUMNS[name].words.split() or not is_numeric_dtype(values) or is_named
    levels = context.levels(values)
    if has_no_unit:
        return levels
    # Units that are nouns are in the plural.
    return (
        counted(1, unit.removesuffix("s"))
        if levels == "1" and unit in ("runs", "steps", "samples", "exchanges")
        else f"{levels} {unit}"
    )


def _course(plan: Plan) -> dict[str, str]:
    """Return in which order the runs are measured and what adds rounds; nothing for ingested logs."""
    facts = {}
    if plan.order:
        shuffled = f", shuffled with order_seed {plan.order_seed}" if plan.order == ROUNDS else ""
        facts["Order of the runs"] = f"{plan.order}{shuffled}"
    if plan.precision is not None:
        facts["Precision of the intervals"] = f"± {100 * plan.precision:g} %"
        budget = f", within {plan.time_budget_minutes:g} min" if plan.time_budget_minutes is not None else ""
        facts["Rounds added for it"] = f"until there are {plan.max_repeats}{budget}"
    if plan.largest_batch is not None:
        facts["Largest batch per device"] = f"searched up to {plan.largest_batch}"
    return facts


def _added_runs(dataset: Dataset) -> str:
    """Return how many runs were measured beyond the plan, as a part of a sentence; empty where none was."""
    planned = dataset.configurations.set_index("identity")["runs_planned"]
    measured_runs = dataset.runs["identity"].value_counts().reindex(planned.index, fill_value=0)
    added = int((measured_runs - planned).clip(lower=0).sum())
    reason = " for precision" if dataset.plan.precision is not None else ""
    return f", {added} added{reason}" if added else ""


def environments(dataset: Dataset) -> Table:
    """Return the hardware and software of the completed runs: a column for each distinct combination."""
    runs, wording = context.completed_runs(dataset), context.page_wording(dataset)
    always = set(ENVIRONMENT) - set(_IF_KNOWN) if wording.is_measured else set()
    names = [name for name in ENVIRONMENT if name in always or runs[name].notna().any()]
    compared = [name for name in names if name not in _OF_CONFIGURATIONS]
    groups = [runs] if names and not compared else []
    if compared and len(runs):
        groups = [group for _, group in runs.groupby(compared, dropna=False, sort=False)]
    rows = []
    for name in names if len(runs) else ():
        cells = [_environment_cell(name, group[name], wording) for group in groups]
        rows.append((Cell(COLUMNS[name].label), *cells))
    environment = wording.environment.format(counted(len(runs), "completed run"))
    caption = f"{environment if rows or wording.is_measured else ''}{context.quick_label(dataset)}"
    empty = wording.no_environment if len(runs) else _NO_RUN
    headings = _no_headings(1 + len(groups))
    return Table("environments", wording.environment_title, caption, headings, tuple(rows), empty=empty)


def _environment_cell(name: str, values: pd.Series, wording: context.PageWording) -> Cell:
    """Return the value of runs in one environment; several where it depends on the configuration."""
    distinct = [value for value in values.unique() if not is_missing(value)]
    if not distinct:
        is_peak = wording.is_measured and name in ("device_peak_flops", "device_peak_source")
        return Cell.missing(_NO_PEAK if is_peak else wording.unknown)
    return Cell(", ".join(_environment_level(name, value) for value in distinct))


def _environment_level(name: str, value: object) -> str:
    if name in _VERBATIM:
        return str(value)[: _VERBATIM[name]]
    if not COLUMNS[name].unit:
        return display_name(value)
    unit = unit_of(name, [value])
    return f"{plain(float(str(value)) / unit.size)} {unit.symbol}"


def _headings(*names: str) -> tuple[Heading, ...]:
    return tuple(Heading(COLUMNS[name].label) for name in names)


def _no_headings(count: int) -> tuple[Heading, ...]:
    return (Heading(""),) * count


def _parameters(dataset: Dataset) -> Iterator[str]:
    """Yield how many parameters each model has; runs of one model that disagree are an error among the diagnostics."""
    for model, rows in context.measured(dataset).groupby("model", sort=False):
        counts = listed([integer(count) for count in sorted(rows["parameters"].dropna().unique())])
        yield f"{display_name(model)}: {counts or 'an unknown number of'} parameters on rank 0."


def _indistinguishable(dataset: Dataset) -> Iterator[str]:
    """Yield, for a number of devices and model, the pairs of series that are equal or not distinguishable.

    All pairs of one number of devices and model are judged together. The first pairs are named, and the others counted.
    """
    rows = pd.concat([configurations.assign(series=label) for label, configurations in labelled_series(dataset)])
    throughputs = throughputs_of(dataset.runs, dataset.plan)
    for (model, world_size), group in rows.groupby(["model", "world_size"], sort=False):
        setting = f"{display_name(model)} on {counted(world_size, 'device')}"
        measured = group[group["identity"].isin(throughputs)]
        if len(measured) > MOST_IN_PAIRS:
            yield f"{setting}: {len(measured)} configurations, too many to compare each with every other one here."
            continue
        ratios = {}
        for first, second in combinations(measured[["identity", "series"]].itertuples(index=False), 2):
            ratio = log_ratio(throughputs[str(first.identity)], throughputs[str(second.identity)])
            ratios[f"{first.series} and {second.series}"] = ratio
        pairs = []
        for pair, verdict in verdicts(ratios, widest_equality(dataset.plan)).items():
            if verdict.word in (EQUAL, NOT_DISTINGUISHABLE) and verdict.equal_within is not None:
                pairs.append(f"{pair} are {verdict_text(verdict.word, verdict.equal_within)}")
        if pairs:
            yield f"{setting}: {first_of(pairs, MOST_PAIRS, '; ')}."
