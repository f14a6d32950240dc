"""Every run of every configuration with its numbers, and where its evidence is: to this page, numbers lead."""

from functools import partial
from operator import attrgetter
from typing import Any

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.links import evidence_anchor
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.cells import TableColumn, defined, laid_out, run_column
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.study.job import Outcome

#: What each run has; a column of which no run has a number, or all have 0, is left out.
_NUMBERS = (
    *("run_seconds", "throughput", "token_throughput", "step_seconds"),
    *("computation_seconds", "input_seconds", "exposed_seconds", "exchange_seconds"),
    *("final_loss", "energy_per_sample"),
)
#: Of a time as 2026-11-22T14:55:41.349872+00:00, the letters up to the second.
_TO_THE_SECOND = 19
_CAPTION = "One row per run. Numbers on the other pages lead to their configuration here."
_NO_RUN = "No run was found."


def runs(dataset: Dataset) -> Table:
    """Return every run below the name of its configuration and the folder of its evidence."""
    numbers = [name for name in _NUMBERS if dataset.runs[name].fillna(0).any()]
    columns = [_run_number(), _outcome(), _started(), *map(partial(run_column, dataset.runs), numbers)]
    labels = configuration_labels(dataset)
    positions = {identity: position for position, identity in enumerate(labels)}
    # A tuple of all columns would take most of the time of this page.
    shown = dataset.runs[["identity", "repetition", "outcome", "reason", "started", "exchange", *numbers]]
    ordered = shown.assign(position=shown["identity"].map(positions)).sort_values(["position", "repetition"])
    groups = ordered["identity"].map(labels)
    if not dataset.plan.ingested_from:
        # Logs stay where they were read.
        groups += f": outputs/{dataset.plan.study}/configurations/" + ordered["identity"] + "/runs"
    headings, cells = laid_out(columns, ordered.itertuples())
    caption = f"{_CAPTION} {context.conditions(dataset)}"
    notes = tuple(map(defined, numbers))
    return Table("runs", "Runs", caption, headings, cells, notes, _NO_RUN, tuple(groups), page_caption=_CAPTION)


def _run_number() -> TableColumn:
    """Return the column of the runs' folders; the first run of a configuration is where links lead."""

    def cell(row: Any) -> Cell:
        return Cell(str(row.repetition), anchor=evidence_anchor(row.identity) if row.repetition == 1 else "")

    return TableColumn(Heading("Run", numeric=True), cell)


def _outcome() -> TableColumn:
    """Return the column of outcomes; why a run failed is a footnote."""

    def cell(row: Any) -> Cell:
        outcome, reason = attrgetter("outcome", "reason")(row)
        return Cell(str(outcome), footnote="" if outcome == Outcome.COMPLETED else str(reason or ""))

    return TableColumn(Heading("Outcome"), cell)


def _started() -> TableColumn:
    """Return the column of the times at which runs began, to the second."""

    def cell(row: Any) -> Cell:
        started = str(row.started)[:_TO_THE_SECOND].replace("T", " ")
        return Cell(started) if isinstance(row.started, str) else Cell.missing("not read from logs")

    return TableColumn(Heading("Started", "UTC", numeric=True), cell)
