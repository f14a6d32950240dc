"""The stages of a task: as their source prints them, and below them ours, from our windows."""

from dataclasses import replace
from typing import Any

from dlperf_study.analysis.published_points import Published
from dlperf_study.analysis.stages import STAGES, Stage, of_same_network, stage_rows, why_not_measured
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context, formatting
from dlperf_study.report.context import NO_SOURCES
from dlperf_study.report.formatting import is_missing
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.cells import INTERVALS
from dlperf_study.report.tables.missing import why_missing, why_no_interval
from dlperf_study.report.tables.table import Cell, Heading, Table

_HOW = (
    "A task is a fixed number of samples of one worker. Ours is our mean step times the steps that these samples are; "
    "no task was timed as one. Ours are of the same network, images and kind of device; what else differs is in their "
    "names and in what must be known of the source."
)


def stages(dataset: Dataset) -> Table:
    """Return the stages of every published task, and after those of a table the stages of ours."""
    published = Published.read(dataset.plan.published)
    rows, groups = [], []
    for (source, name), tasks in stage_rows(published.cells).groupby(["source", "table"], sort=False):
        of_table = [_printed(task) for task in tasks.itertuples()]
        of_table += _ours(dataset, tasks.iloc[0])
        rows += of_table
        groups += [published.title_of(source, name)] * len(of_table)
    headings = [Heading("Whose"), Heading(COLUMNS["world_size"].label, numeric=True)]
    headings += [Heading(stage.label, "s", numeric=True, interval=bool(stage.column)) for stage in STAGES]
    notes = (_HOW, *(f"{stage.label}: of ours {stage.meaning}." for stage in STAGES))
    page_caption = "Seconds of one worker for one task."
    caption = f"{page_caption} Ours: {context.conditions(dataset)} {context.repetition(dataset)}"
    empty = "Its sources print no stages of a task." if published.sources else NO_SOURCES
    headed = Table("stages", "Stages of a task", caption, tuple(headings), tuple(rows), notes, empty, tuple(groups))
    return replace(headed, page_caption=page_caption)


def _printed(task: Any) -> tuple[Cell, ...]:
    """Return the row of a published task."""
    cells = [Cell(str(task.program)), Cell(str(task.world_size))]
    for stage in STAGES:
        printed = getattr(task, stage.metric)
        is_printed = not is_missing(printed) and printed != "-"
        cells.append(Cell(printed) if is_printed else Cell.missing("its source prints no time of this stage here"))
    return tuple(cells)


def _ours(dataset: Dataset, task: Any) -> list[tuple[Cell, ...]]:
    """Return the rows of our configurations, each for a task of as many samples as the published one."""
    labels = configuration_labels(dataset)
    rows = []
    for row in of_same_network(task, dataset.configurations).itertuples():
        steps = task.samples_per_task / row.batch_per_device
        stage_cells = [stage_cell(dataset, row, stage, steps) for stage in STAGES]
        rows.append((Cell(f"Ours: {labels[row.identity]}"), Cell(str(row.world_size)), *stage_cells))
    return rows


def stage_cell(dataset: Dataset, row: Any, stage: Stage, steps: float) -> Cell:
    """Return the seconds of one stage of a task, with their interval, or why our windows don't measure it."""
    if reason := why_not_measured(stage, row):
        return Cell.missing(reason)
    for column in filter(None, (stage.column, stage.without)):
        if is_missing(getattr(row, column)):
            return Cell.missing(why_missing(dataset, row, column))
    value, low, high = (getattr(row, name) * steps for name in (stage.column, *INTERVALS[stage.column]))
    if stage.without and (waiting := getattr(row, stage.without) * steps):
        return Cell(formatting.plain(value - waiting), footnote="a difference of two means, which has no interval here")
    printed, interval = formatting.with_interval(value, low, high)
    return Cell(printed, interval, "" if interval else why_no_interval(dataset, row, stage.column))
