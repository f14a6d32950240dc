"""The tables of a study's own numbers. Each takes the dataset and returns a :class:`Table` with its whole caption."""

from collections.abc import Iterator
from itertools import combinations

import pandas as pd

from dlperf_study.analysis.comparison import EQUAL, NOT_DISTINGUISHABLE, verdicts, widest_equality
from dlperf_study.analysis.statistics import log_ratio
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.configuration_table import throughputs_of
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import display_name, integer, is_missing, listed
from dlperf_study.report.series import all_groups, configuration_labels, ordered_levels
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
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.study.job import Outcome
from dlperf_study.study.study import PUBLISHED
from dlperf_study.wording import counted, first_of

#: Of how many configurations every pair is compared, and how many pairs are named.
MOST_IN_PAIRS, MOST_PAIRS = 100, 20
_NOT_THE_PUBLISHED = " They are about this study's own runs; what the published numbers contradict, the audit says."
_NO_DIAGNOSTIC = "No check of this study's own runs has a diagnostic."
_NO_DIAGNOSTIC_HERE = "No diagnostic is about what this page shows; the summary lists those about anything else."
_NEGATIVE = "A difference is the configuration's minus the reference's, per step: negative takes less time."


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
    if not differs.any():
        return ()
    devices = dict(zip(rows["identity"], rows["world_size"], strict=True))
    is_scaled = differs & (rows["baseline_identity"].map(devices) != rows["world_size"])
    baselines = (f"baseline_{dataset.rate}",) if rows["speedup"].notna().any() else ()
    return (*baselines, "speedup", *(("efficiency",) if is_scaled.any() else ()))


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


def _headings(*names: str) -> tuple[Heading, ...]:
    return tuple(Heading(COLUMNS[name].label) for name in names)


def _parameters(dataset: Dataset) -> Iterator[str]:
    """Yield how many parameters each model has; runs of one model that disagree are an error among the diagnostics."""
    for model, rows in context.measured(dataset).groupby("model", sort=False):
        counts = listed(map(integer, ordered_levels(rows["parameters"])))
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
