"""Tables of what published sources state and printed: how they measured, their results, and the stages of a task."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dlperf_study.audit.published.points import Published
from dlperf_study.core.wording import in_sentence
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings.published import read_published
from dlperf_study.metrics.columns import COLUMNS, PRODUCTS
from dlperf_study.metrics.published import STAGES, Stage, select_same_network, stage_obstacle, stage_rows
from dlperf_study.report import context, formatting, series
from dlperf_study.report.context import NO_SOURCES
from dlperf_study.report.tables.missing import explain_missing, explain_missing_interval
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.report.tables.table_builders import intervals

#: What a source may state of how it measured, and the column of our runs with the same fact.
_CONDITIONS = {
    **{"program": "framework", "mode": "", "device": "device", "device_name": "device_name"},
    **{"hardware": "cpu_model", "software": "", "link": "link", "data_source": "data_source"},
}
_LEVELS = ("device", "data_source")


def sources(dataset: Dataset) -> Table:
    """Return the facts of each source, and of the study's runs."""
    published, runs = read_published(dataset), dataset.completed_runs
    ours = {COLUMNS[fact].label: context.levels(runs[column]) for fact, column in _CONDITIONS.items() if column}
    ours[COLUMNS["software"].label] = context.versions(runs)
    rows, groups = [], []
    for name, source in published.sources.items():
        for label, fact in _facts(published, name).items():
            rows.append((Cell(label), Cell(fact), Cell(ours.get(label, ""))))
            groups.append(source.title)
    name, caption = "published-sources", f"Who published what, and how it was measured.{context.quick_label(dataset)}"
    headings = (Heading(""), Heading("Published"), Heading("Ours, of all completed runs"))
    return Table(name, "Published sources", caption, headings, tuple(rows), empty=NO_SOURCES, groups=tuple(groups))


def _facts(published: Published, name: str) -> dict[str, str]:
    source = published.sources[name]
    conditions = {}
    for column in (*_CONDITIONS, "estimator"):
        levels = published_levels(published, name, column)
        # Other facts are in the words of the source.
        if levels and column in _LEVELS:
            levels = " / ".join(map(formatting.display_name, levels.split(" / ")))
        conditions[COLUMNS[column].label] = levels
    facts = {
        "Question": source.question,
        "Authors": source.authors,
        "Year": str(source.year or ""),
        "Page": source.url.removeprefix("https://"),
        "Licence": source.licence,
        "Retrieved": source.retrieved,
        **conditions,
        COLUMNS["inferred"].label: _inferred(published, name),
        "To know": source.differs,
    }
    required = ("Year", *(COLUMNS[column].label for column in _CONDITIONS))
    missing = [in_sentence(label) for label in required if not facts[label]]
    if missing:
        facts["Not stated"] = formatting.listed(missing)
    return {label: fact for label, fact in facts.items() if fact}


def _inferred(published: Published, name: str) -> str:
    """Return the inferred columns of a source, except products."""
    groups = []
    for value in published_levels(published, name, "inferred").split(" / "):
        columns = ", ".join(column for column in value.split(", ") if column not in PRODUCTS)
        if columns and columns not in groups:
            groups.append(columns)
    return " / ".join(groups)


def published_levels(published: Published, name: str, column: str) -> str:
    """Return a source's values in a column, separated by slashes."""
    results = published.cells[(published.cells["source"] == name) & (published.cells["role"] == "result")]
    return " / ".join(str(level) for level in dict.fromkeys(results[column].dropna()))


def hardware_sentence(published: Published) -> str:
    """Return the sentence on the hardware of each source."""
    machines = []
    for name, source in published.sources.items():
        machines.append(f"{source.title}: {published_levels(published, name, 'hardware') or 'not stated'}")
    if machines:
        return f"Published on {'; '.join(machines)}."
    return ""


def comparability_notes(published: Published) -> Iterator[str]:
    """Yield what a reader must know of a source before comparing."""
    for source in published.sources.values():
        if source.differs:
            yield f"{source.title}: {source.differs}"


_HOW_STAGES = (
    "A task is a fixed number of samples of one worker. Ours is our mean step times the steps that these samples are; "
    "no task was timed as one. Ours are of the same network, images and kind of device; what else differs is in their "
    "names and in what must be known of the source."
)


def stages(dataset: Dataset) -> Table:
    """Return the stages of each published task, then the measured stages."""
    published = read_published(dataset)
    rows, groups = [], []
    for (source, name), tasks in stage_rows(published.cells).groupby(["source", "table"], sort=False):
        of_table = [_printed_stages(task) for task in tasks.itertuples()]
        of_table += _our_stages(dataset, tasks.iloc[0])
        rows += of_table
        groups += [published.full_title(source, name)] * len(of_table)
    headings = [Heading("Whose"), Heading(COLUMNS["world_size"].label, numeric=True)]
    headings += [Heading(stage.label, "s", numeric=True, interval=bool(stage.column)) for stage in STAGES]
    notes = (_HOW_STAGES, *(f"{stage.label}: of ours {stage.meaning}." for stage in STAGES))
    page_caption = "Seconds of one worker for one task."
    caption = f"{page_caption} Ours: {context.conditions(dataset)} {context.repetition(dataset)}"
    empty = NO_SOURCES
    if published.sources:
        empty = "Its sources print no stages of a task."
    headed = Table("stages", "Stages of a task", caption, tuple(headings), tuple(rows), notes, empty, tuple(groups))
    return replace(headed, page_caption=page_caption)


def _printed_stages(task: Any) -> tuple[Cell, ...]:
    cells = [Cell(str(task.program)), Cell(str(task.world_size))]
    for stage in STAGES:
        printed = getattr(task, stage.metric)
        is_printed = not is_missing(printed) and printed != "-"
        cells.append(Cell(printed) if is_printed else Cell.missing("its source prints no time of this stage here"))
    return tuple(cells)


def _our_stages(dataset: Dataset, task: Any) -> list[tuple[Cell, ...]]:
    labels = series.configuration_labels(dataset)
    rows = []
    for row in select_same_network(task, dataset.configurations).itertuples():
        steps = task.samples_per_task / row.batch_per_device
        stage_cells = [stage_cell(dataset, row, stage, steps) for stage in STAGES]
        rows.append((Cell(f"Ours: {labels[row.identity]}"), Cell(str(row.world_size)), *stage_cells))
    return rows


def stage_cell(dataset: Dataset, row: Any, stage: Stage, steps: float) -> Cell:
    """Return the seconds of one stage of a task, with its interval."""
    if reason := stage_obstacle(stage, row):
        return Cell.missing(reason)
    for column in filter(None, (stage.column, stage.without)):
        if is_missing(getattr(row, column)):
            return Cell.missing(explain_missing(dataset, row, column))
    value, low, high = (getattr(row, name) * steps for name in (stage.column, *intervals()[stage.column]))
    if stage.without and (waiting := getattr(row, stage.without) * steps):
        return Cell(formatting.plain(value - waiting), footnote="a difference of two means, which has no interval here")
    printed, interval = formatting.format_bounded(value, low, high)
    return Cell(printed, interval, "" if interval else explain_missing_interval(dataset, row, stage.column))
