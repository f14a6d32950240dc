"""The tables of the report. Each takes the dataset and returns a :class:`Table` with all that its caption owes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import pandas as pd

from dlperf_study.analysis.comparison import UNDECIDED
from dlperf_study.analysis.dataset import Dataset
from dlperf_study.analysis.statistics import Interval, distinguishable
from dlperf_study.columns import COLUMNS
from dlperf_study.report import context
from dlperf_study.report.answers import NOTHING_DECLARED
from dlperf_study.report.cells import (
    AGAINST_BASELINE,
    ColumnOfCells,
    defined,
    factor_column,
    measured_column,
    run_column,
)
from dlperf_study.report.doubts import belongs, merged, without_numbers
from dlperf_study.report.groups import all_groups
from dlperf_study.report.names import counted, human, listed
from dlperf_study.report.numbers import is_missing, plain, whole
from dlperf_study.report.series import Series, all_series, configuration_labels, short_labels, split_factors
from dlperf_study.report.table import Cell, Heading, Table
from dlperf_study.report.units import unit_of
from dlperf_study.study.outcome import Outcome

#: How each configuration was measured.
PROTOCOL = ("repeats", "warmup_steps", "measured_steps", "computation_steps", "exchange_steps")
PLACE = (
    *("cluster", "host", "device", "device_name", "device_peak_flops", "link", "cpu_model", "cores", "memory_bytes"),
    *("library", "library_version", "python_version", "git_commit", "git_dirty"),
)
LIES_IN = "difference_lies_in"
_FROM_ANOTHER_RUN = (
    "These are means over the steps of one more run, in which Horovod wrote its timeline. Tracing costs time, so no "
    "other number comes from that run; activities of several gradients overlap and count once."
)
_OWN_MEDIANS = "Each column is a median over the runs of its own, so the columns of a row need not add up."
_NEGATIVE = "A difference is the configuration's minus the reference's, per step: negative takes less time."
_ALONE = "Every verdict stands alone: the more there are, the more of them are wrong by chance."
SCALING = {"weak": "weak: the batch per device is fixed", "strong": "strong: the global batch is fixed"}


def measured(dataset: Dataset) -> Table:
    """Return the main table: what each configuration reached, and against which baseline."""
    columns = ("runs_completed", "throughput", "mean_of_rates", "baseline_throughput", "speedup", "efficiency", "mfu")
    remarks = (defined("throughput"), defined("mean_of_rates"), defined("mfu"), *_indistinguishable(dataset))
    return _of_configurations(dataset, "measured", "What was measured", columns, remarks)


def scaling(dataset: Dataset) -> Table:
    """Return speedups and efficiencies, each with the absolute throughput of its baseline."""
    columns = ("throughput", "baseline_throughput", "speedup", "efficiency", AGAINST_BASELINE)
    remarks = (defined("speedup"), defined("efficiency"), *_indistinguishable(dataset))
    return _of_configurations(dataset, "scaling", "Scaling", columns, remarks)


def comparison(dataset: Dataset) -> Table:
    """Return the throughput of each configuration beside that of its reference, their ratio and the verdict."""
    columns = ("runs_completed", "throughput", "reference_throughput", "relative_throughput", "verdict")
    remarks = (*map(defined, columns[2:]), _ALONE, *_parameters(dataset))
    besides = any(word for group in all_groups(dataset) for word in group.rows["besides"])
    named = [*map(factor_column, ("framework", "strategy", "world_size")), *([_words("Besides", "besides")] * besides)]
    return _of_groups(dataset, "comparison", "Which is faster", named, columns, remarks)


def differences(dataset: Dataset) -> Table:
    """Return what a step takes more or less than that of the reference, and in which part."""
    parts = ("step", "computation", "exposed")
    columns = (*(name for part in parts for name in (f"{part}_seconds", f"{part}_difference_seconds")), LIES_IN)
    remarks = (_NEGATIVE, *map(defined, ("computation_seconds", "exposed_seconds", LIES_IN)), _OWN_MEDIANS)
    named = [_words(COLUMNS["identity"].label, "label")]
    return _of_groups(dataset, "differences", "Why", named, columns, (*remarks, *_computation_note(dataset)))


def communication(dataset: Dataset) -> Table:
    """Return what a step consists of and how much of the exchange it hides."""
    times = ("step_seconds", "computation_seconds", "exposed_seconds", "exchange_seconds")
    derived = ("computation_to_communication", "overlap", "bus_bandwidth", "gradient_bytes")
    remarks = (*(defined(name) for name in (*times[1:], *derived)), _OWN_MEDIANS, *_computation_note(dataset))
    return _of_configurations(dataset, "communication", "Computation and communication", (*times, *derived), remarks)


def timeline(dataset: Dataset) -> Table:
    """Return on what the exchange of a traced step spends its time, where the library traced itself."""
    columns = ("traced_step_seconds", "negotiation_seconds", "all_reduce_seconds")
    remarks = (*map(defined, columns), _FROM_ANOTHER_RUN)
    table = _of_configurations(dataset, "timeline", "Horovod's timeline", columns, remarks, columns[1])
    return replace(table, empty="No configuration was traced: `trace_steps` in a study asks Horovod for its timeline.")


def stability(dataset: Dataset) -> Table:
    """Return how steady each run was and what else the machine did meanwhile."""
    shown = ("step_variation", "warmup_slowdown", "settled_at_step", "load_balance", "drain_seconds")
    columns = ("outcome", *shown, "busy_cores_during", "waited_seconds", "run_seconds")
    remarks = (*map(defined, shown), *_computation_note(dataset))
    return _of_runs(dataset, "stability", "Every run", columns, dataset.runs, remarks)


def failures(dataset: Dataset) -> Table:
    """Return the runs that did not complete, and why."""
    rows = dataset.runs[dataset.runs["outcome"] != Outcome.COMPLETED]
    columns = ("outcome", "reason", "ranks_seen", "ranks_expected", "run_seconds")
    empty = "Every run completed." if len(dataset.runs) else "No run was found."
    return _of_runs(dataset, "failures", "Runs that did not complete", columns, rows, empty=empty)


def unsupported(dataset: Dataset) -> Table:
    """Return the configurations that can't run here, and why."""
    rows = dataset.configurations[~dataset.configurations["unsupported_reason"].map(is_missing)]
    labels = configuration_labels(dataset)
    headings = (_heading("identity"), _heading("unsupported_reason"))
    cells = tuple((Cell(labels[row.identity]), Cell(row.unsupported_reason)) for row in rows.itertuples())
    caption = f"Planned, but not possible here; they were not replaced by anything.{context.quick_label(dataset)}"
    empty = "Every planned configuration can run here."
    return Table("unsupported", "Unsupported configurations", caption, headings, cells, empty=empty)


def doubts(dataset: Dataset, topic: str = "") -> Table:
    """Return all complaints, or those of one topic's page; where runs differ only in numbers they share a row."""
    rows = dataset.complaints.fillna({"identity": ""}).sort_values("severity", key=_errors_first, kind="stable")
    rows = rows[rows["subject"].map(partial(belongs, topic=topic)).astype(bool)] if topic else rows
    labels = configuration_labels(dataset)
    alike = rows["message"].map(without_numbers)
    groups = rows.groupby(["severity", "identity", "subject", alike], sort=False)
    cells = tuple(_doubt(labels.get(identity, identity) or "study", group) for (_, identity, _, _), group in groups)
    headings = tuple(map(_heading, ("severity", "identity", "repetition", "subject", "message")))
    caption = f"{COLUMNS['severity'].definition.capitalize()}.{context.quick_label(dataset)}"
    name = f"doubts-{topic}" if topic else "doubts"
    return Table(name, "Doubts", caption, headings, cells, empty="No check had anything to complain about.")


def about(dataset: Dataset) -> Table:
    """Return what the study asks and how each configuration is measured."""
    plan, rows = dataset.plan, dataset.configurations
    facts = {"About": plan.about, "Questions": listed(list(plan.questions)) or "none", "Scaling": SCALING[plan.scaling]}
    facts |= {COLUMNS[name].label: context.levels(rows[name]) for name in (*plan.factors, *PROTOCOL)}
    cells = tuple((Cell(name), Cell(value)) for name, value in facts.items())
    caption = (
        f"{len(rows)} configurations, {int(rows['runs_planned'].sum())} runs planned.{context.quick_label(dataset)}"
    )
    return Table("about", plan.title, caption, (Heading(""), Heading("")), cells)


def places(dataset: Dataset) -> Table:
    """Return the hardware and software of the completed runs: a column for each distinct combination."""
    runs = context.completed_runs(dataset)
    distinct = runs[list(PLACE)].drop_duplicates()
    cells = tuple(
        (Cell(COLUMNS[name].label), *(_place_cell(name, value) for value in distinct[name])) for name in PLACE
    )
    headings = tuple(Heading("") for _ in range(1 + len(distinct)))
    caption = f"Hardware and software of the {counted(len(runs), 'completed run')}.{context.quick_label(dataset)}"
    rows = cells if len(distinct) else ()
    return Table("places", "Where it was measured", caption, headings, rows, empty="No run completed.")


def _of_configurations(
    dataset: Dataset, name: str, title: str, shown: Sequence[str], remarks: tuple[str, ...], needed: str = "identity"
) -> Table:
    """Return a row for every configuration that has a value in the column ``needed``."""
    columns = [*map(factor_column, _keys(dataset)), *(measured_column(dataset, column) for column in shown)]
    series, labels = _labelled_series(dataset)
    parts = [(label, one.rows.dropna(subset=[needed])) for one, label in zip(series, labels, strict=True)]
    rows = [(label, row) for label, part in parts for row in part.itertuples(index=False)]
    cells = tuple(tuple(column.cell(row) for column in columns) for _, row in rows)
    caption = f"{context.conditions(dataset)} {context.repetition(dataset)} {context.MERGED}"
    headings = tuple(column.heading for column in columns)
    return Table(name, title, caption, headings, cells, remarks, groups=tuple(label for label, _ in rows))


def _keys(dataset: Dataset) -> list[str]:
    """Return the columns that name a row within its series: the devices, and whatever else changes along it."""
    split = split_factors(dataset)
    along = [name for name in ("nodes", "servers", "batch_per_device") if name not in split]
    return ["world_size", *(name for name in along if dataset.configurations[name].nunique() > 1)]


def _computation_note(dataset: Dataset) -> list[str]:
    return list(filter(None, [context.computation_note(dataset)]))


def _labelled_series(dataset: Dataset) -> tuple[list[Series], list[str]]:
    series = all_series(dataset)
    return series, short_labels(series)


def _of_groups(
    dataset: Dataset,
    name: str,
    title: str,
    named: Sequence[ColumnOfCells],
    shown: Sequence[str],
    remarks: tuple[str, ...],
) -> Table:
    columns = [*named, *(measured_column(dataset, column) for column in shown)]
    rows = [(group.label, row) for group in all_groups(dataset) for row in group.rows.itertuples(index=False)]
    cells = tuple(tuple(column.cell(row) for column in columns) for _, row in rows)
    caption = f"{context.conditions(dataset)} {context.repetition(dataset)} {context.MERGED}"
    headings = tuple(column.heading for column in columns)
    groups = tuple(label for label, _ in rows)
    return Table(name, title, caption, headings, cells, remarks, NOTHING_DECLARED, groups)


def _words(heading: str, name: str) -> ColumnOfCells:
    """Return a column of what a group calls its rows."""
    return ColumnOfCells(Heading(heading), lambda row: Cell(getattr(row, name)))


def _parameters(dataset: Dataset) -> Iterator[str]:
    """Yield how many parameters each model has; runs of one model that disagree are an error among the doubts."""
    for model, rows in context.measured(dataset).groupby("model", sort=False):
        counts = listed([whole(count) for count in sorted(rows["parameters"].dropna().unique())])
        yield f"{human(model)}: {counts or 'an unknown number of'} parameters on rank 0."


def _of_runs(
    dataset: Dataset,
    name: str,
    title: str,
    shown: Sequence[str],
    runs: pd.DataFrame,
    remarks: tuple[str, ...] = (),
    empty: str = "No run was found.",
) -> Table:
    columns = [run_column(runs, column) for column in (*_keys(dataset), "repetition", *shown)]
    series, labels = _labelled_series(dataset)
    parts = [(label, _runs_of(one, runs)) for one, label in zip(series, labels, strict=True)]
    cells = tuple(tuple(column.cell(row) for column in columns) for _, part in parts for row in part.itertuples())
    groups = tuple(label for label, part in parts for _ in range(len(part)))
    headings = tuple(column.heading for column in columns)
    return Table(name, title, context.conditions(dataset), headings, cells, remarks, empty, groups)


def _runs_of(series: Series, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of a series, by number of devices and repetition."""
    ours = runs[runs["identity"].isin(series.rows["identity"])]
    return ours.sort_values(["world_size", "nodes", "servers", "repetition"], kind="stable")


def _heading(name: str) -> Heading:
    return Heading(COLUMNS[name].label)


def _place_cell(name: str, value: object) -> Cell:
    unit = unit_of(name, [value]) if COLUMNS[name].unit else None
    if is_missing(value):
        return Cell.missing("not recorded")
    return Cell(f"{plain(float(str(value)) / unit.size)} {unit.symbol}" if unit else human(value))


def _doubt(label: str, group: pd.DataFrame) -> tuple[Cell, ...]:
    """Return one row for complaints of one severity, configuration and subject that differ only in numbers."""
    first = group.iloc[0]
    words = (first.severity, label, _repetitions(group), _subject(first.subject), merged(group["message"]))
    return tuple(map(Cell, words))


def _errors_first(severities: pd.Series) -> pd.Series:
    return severities != "error"


def _repetitions(group: pd.DataFrame) -> str:
    return ", ".join(str(value) for value in group["repetition"].dropna().unique()) or "all"


def _subject(subject: str) -> str:
    return COLUMNS[subject].label if subject in COLUMNS else human(subject)


def _indistinguishable(dataset: Dataset) -> tuple[str, ...]:
    """Return one remark per number of devices and model that lists the series whose intervals overlap."""
    series, labels = _labelled_series(dataset)
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
    where = f"{human(key[0])} on {key[1]} device{'s' * (key[1] != 1)}"
    return f"{where}, {UNDECIDED} (intervals overlap): {'; '.join(pairs)}." if pairs else ""
