"""The tables of the report. Each takes the dataset and returns a :class:`Table` with all that its caption owes."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.analysis.statistics import Interval, distinguishable
from dlperf_study.columns import COLUMNS
from dlperf_study.report import context
from dlperf_study.report.cells import (
    AGAINST_BASELINE,
    UNDECIDED,
    defined,
    factor_column,
    measured_column,
    run_column,
)
from dlperf_study.report.missing import EXCHANGE_COLUMNS
from dlperf_study.report.names import counted, human, listed
from dlperf_study.report.numbers import is_missing, plain
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
SCALING = {"weak": "weak: the batch per device is fixed", "strong": "strong: the global batch is fixed"}
#: The page on which a complaint belongs, by its subject; all others belong to quality.
TOPICS = {
    "scaling": {"throughput", "mean_of_rates", "baseline_throughput", "speedup", "efficiency", "mfu"},
    "communication": {*EXCHANGE_COLUMNS, "computation_seconds", "step_seconds", "exchange"},
}


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


def communication(dataset: Dataset) -> Table:
    """Return what a step consists of and how much of the exchange it hides."""
    times = ("step_seconds", "computation_seconds", "exposed_seconds", "exchange_seconds")
    derived = ("computation_to_communication", "overlap", "bus_bandwidth", "gradient_bytes")
    own_medians = "Each column is a median over the runs of its own, so the columns of a row need not add up."
    remarks = (*(defined(name) for name in (*times[1:], *derived)), own_medians, *_computation_note(dataset))
    return _of_configurations(dataset, "communication", "Computation and communication", (*times, *derived), remarks)


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
    """Return all complaints, or those that belong on the page of one topic; every complaint has its page."""
    rows = dataset.complaints.fillna({"identity": ""}).sort_values("severity", key=_errors_first, kind="stable")
    rows = rows[rows["subject"].map(_topic) == topic] if topic else rows
    labels = configuration_labels(dataset)
    groups = rows.groupby(["severity", "identity", "subject", "message"], sort=False)
    cells = tuple(
        tuple(
            map(
                Cell,
                (severity, labels.get(identity, identity) or "study", _repetitions(group), _subject(subject), message),
            )
        )
        for (severity, identity, subject, message), group in groups
    )
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
    dataset: Dataset, name: str, title: str, shown: Sequence[str], remarks: tuple[str, ...]
) -> Table:
    columns = [*map(factor_column, _keys(dataset)), *(measured_column(dataset, column) for column in shown)]
    series, labels = _labelled_series(dataset)
    rows = [(label, row) for one, label in zip(series, labels, strict=True) for row in one.rows.itertuples(index=False)]
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


def _errors_first(severities: pd.Series) -> pd.Series:
    return severities != "error"


def _repetitions(group: pd.DataFrame) -> str:
    return ", ".join(str(value) for value in group["repetition"].dropna().unique()) or "all"


def _subject(subject: str) -> str:
    return COLUMNS[subject].label if subject in COLUMNS else human(subject)


def _topic(subject: str) -> str:
    return next((topic for topic, subjects in TOPICS.items() if subject in subjects), "quality")


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
