"""Published tables as printed, with ours below; their stages, changes and sources."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import pandas as pd

from dlperf_study.audit.published.points import Published
from dlperf_study.audit.published.same_question import SameQuestion
from dlperf_study.core.wording import in_sentence
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.findings.published import differences, read_published
from dlperf_study.metrics.columns import COLUMNS, PRODUCTS, TableName, column_named
from dlperf_study.metrics.published import STAGES, Stage, select_same_network, stage_obstacle, stage_rows
from dlperf_study.metrics.statistics import Estimate, log_ratio
from dlperf_study.report import context, formatting, say, series
from dlperf_study.report.say import caption
from dlperf_study.report.tables.missing import explain_missing, explain_missing_interval, explain_unmeasured
from dlperf_study.report.tables.published_tables import mismatch_reasons, published_values
from dlperf_study.report.tables.table import Cell, Heading, Table, make_table
from dlperf_study.report.tables.table_builders import intervals, measured_column

MEASURED_HERE = "measured here"
_STAGES = {stage.metric: stage for stage in STAGES}
_FACTORS = (
    *("world_size", "parameter_servers", "batch_per_device", "precision", "loss_scaling", "compiler"),
    *("data_loader", "classifier", "sample_ratio", "classes"),
)


def as_printed(dataset: Dataset) -> Iterator[Table]:
    """Yield each published table, with measured results below its rows."""
    published = read_published(dataset)
    results = published.cells[published.cells["role"] == "result"]
    if len(results):
        results = results.assign(match=SameQuestion(results, dataset.configurations).matches())
    for source, table in published.results():
        of_table = results[(results["source"] == source) & (results["table"] == table)]
        yield _as_printed(dataset, source, table, of_table)


def _as_printed(dataset: Dataset, source: str, table: str, results: pd.DataFrame) -> Table:
    published, measured = read_published(dataset), _measured_rows(dataset)
    grid, origin = published.as_printed(source, table), published.sources[source]
    rows, of_ours = [], set[str]()
    for label, printed in zip(grid.index, grid.to_numpy(), strict=True):
        rows.append((label, *printed))
        of_row = results[results["row"] == label]
        configuration_ids = set[str]().union(*(match.configuration_ids for match in of_row["match"])) & measured.keys()
        if configuration_ids:
            rows.append((MEASURED_HERE, *_our_cells(dataset, of_row, grid.columns)))
        of_ours |= configuration_ids
    on_page = caption("printed", authors=origin.authors, year=origin.year, ours=of_ours)
    about = " ".join(say.say(differences(list(results["match"])), say.TERMINAL))
    if of_ours:
        configurations = dataset.configurations
        ours = dataset.only(configurations[configurations["configuration_id"].isin(of_ours)])
        about = f"{context.conditions(ours)} {context.repetition(ours)}"
    name, title = f"printed-{source}-{table}".replace("_", "-"), published.full_title(source, table)
    headings = (origin.tables[table].rows, *map(Heading.number, grid.columns))
    return make_table(name, headings, rows, f"{on_page} {about}".strip(), title=title, page_caption=on_page)


@kept_with_dataset
def _measured_rows(dataset: Dataset) -> Mapping[str, Any]:
    rows = dataset.configuration_rows
    return {configuration_id: rows[configuration_id] for configuration_id in dataset.measured["configuration_id"]}


def _our_cells(dataset: Dataset, of_row: pd.DataFrame, columns: Iterable[str]) -> Iterator[Cell]:
    for column in columns:
        cells = list(map(partial(_our_cell, dataset), of_row[of_row["column"] == column].itertuples()))
        footnotes = dict.fromkeys(cell.footnote for cell in cells if cell.footnote)
        yield Cell(" / ".join(cell.printed for cell in cells), footnote="; ".join(footnotes))


def _our_cell(dataset: Dataset, result: Any) -> Cell:
    configuration_ids = result.match.configuration_ids
    if not configuration_ids:
        return Cell.missing(*mismatch_reasons(result.match))
    measured = _measured_rows(dataset)
    row = next(
        (measured[configuration_id] for configuration_id in configuration_ids if configuration_id in measured), None
    )
    if row is None:
        return Cell.missing(explain_unmeasured(dataset, dataset.configuration_rows[configuration_ids[0]]))
    if result.metric in _STAGES:
        steps = result.samples_per_task / row.batch_per_device
        return _append_unit(stage_cell(dataset, row, _STAGES[result.metric], steps), "s")
    if result.metric not in COLUMNS or TableName.CONFIGURATIONS not in COLUMNS[result.metric].tables:
        return Cell.missing("not measured under this name")
    column = measured_column(dataset, result.metric)
    # A time of ours may have another prefix than the printed one.
    return _append_unit(column.cell(row), column.heading.unit if COLUMNS[result.metric].unit == "s" else "")


def _append_unit(cell: Cell, unit: str) -> Cell:
    if unit and cell.text != formatting.MISSING:
        return replace(cell, text=f"{cell.text} {unit}")
    return cell


@dataclass(frozen=True)
class Change:
    """A throughput's change ``between`` two published configurations, as log ratios."""

    table: str
    program: str
    between: str
    published: Estimate
    ours: Estimate


@kept_with_dataset
def changes(dataset: Dataset) -> tuple[Change, ...]:
    """Return the changes between published throughputs that were measured here too."""
    published, measured = read_published(dataset), _measured_rows(dataset)
    points = published.points
    if points.empty:
        return ()
    ours = []
    for match in SameQuestion(points, dataset.configurations).matches():
        ours.append(
            next(
                (configuration_id for configuration_id in match.configuration_ids if configuration_id in measured), None
            )
        )
    points, all_changes = points.assign(ours=ours), []
    for first, last in _pairs(points[points["ours"].notna()]):
        if between := _differing_factors(first, last):
            ratio = log_ratio(dataset.throughputs[last.ours], dataset.throughputs[first.ours])
            title = published.full_title(last.source, last.table)
            all_changes.append(Change(title, last.program, between, published_ratio(first, last), ratio))
    return tuple(all_changes)


def changes_table(dataset: Dataset) -> Table:
    """Return the changes of throughputs in print and here, and their quotients."""
    rows, groups = [], []
    for change in changes(dataset):
        ratios = (change.published, change.ours, change.ours.minus(change.published))
        cells = []
        for ratio, reason in zip(ratios, ("published", "ours", "quotient"), strict=True):
            cells.append(Cell.of(ratio.bounded_factor, caption("published-changes", reason), decision=1))
        rows.append((change.program, change.between, *cells))
        groups.append(change.table)
    columns = (
        Heading.number(label, "×", interval=True)
        for label in ("Published", "Measured here", "Measured here / published")
    )
    about = caption("published-changes") + context.quick_label(dataset)
    empty = context.no_sources(dataset)
    return make_table("published-changes", ("Program", "From, to", *columns), rows, about, empty=empty, groups=groups)


def _pairs(points: pd.DataFrame) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of published throughputs that were measured here too.

    Of each line of a table: the baseline and the most devices. Of the points of one program in a table on the most
    devices that several have: the first and the last.
    """
    by_cell = {point.cell: point for point in points.itertuples()}
    for _, of_program in points.groupby(["source", "table", "program"], sort=False, dropna=False):
        for _, line in of_program.groupby("series", sort=False):
            last = max(line.itertuples(), key=lambda point: point.world_size)
            first = by_cell.get(last.baseline)
            if first is not None and first.cell != last.cell:
                yield first, last
        sizes = of_program["world_size"]
        shared = sizes[sizes.duplicated(keep=False)]
        if len(shared):
            on_most = list(of_program[sizes == shared.max()].itertuples())
            yield on_most[0], on_most[-1]


def _differing_factors(first: Any, last: Any) -> str:
    """Return the factors in which two differ: ``devices from 1 to 8``."""
    differing = []
    for name in _FACTORS:
        values = list(map(attrgetter(name), (first, last)))
        if not any(map(is_missing, values)) and values[0] != values[1]:
            names = " to ".join(map(partial(formatting.value_with_unit, name), values))
            differing.append(f"{column_named(name).words} from {names}")
    return formatting.listed(differing)


def published_ratio(first: Any, last: Any) -> Estimate:
    """Return the logarithm of a published ratio, with any printed interval."""
    ratio = last.value / first.value
    if last.baseline != first.cell or is_missing(last.speedup_low):
        return Estimate(math.log(ratio))
    return Estimate.from_printed(ratio, last.speedup_low, last.speedup_high)


#: What a source may state of how it measured, and the column of our runs with the same fact.
_CONDITIONS = {
    **{"program": "framework", "mode": "", "device": "device", "device_name": "device_name"},
    **{"hardware": "cpu_model", "software": "", "interconnect": "interconnect", "data_loader": "data_loader"},
}
_NAMED_VALUES = ("device", "data_loader")


def sources(dataset: Dataset) -> Table:
    """Return the facts of each source, and of the study's runs."""
    published, runs = read_published(dataset), dataset.completed_runs
    ours = {COLUMNS[fact].label: context.list_values(runs[column]) for fact, column in _CONDITIONS.items() if column}
    ours[COLUMNS["software"].label] = context.versions(runs)
    rows, groups = [], []
    for name, source in published.sources.items():
        for label, fact in _facts(published, name).items():
            rows.append((label, fact, ours.get(label, "")))
            groups.append(source.title)
    headings, about = ("", "Published", "Measured here, all completed runs"), caption("published-sources")
    about += context.quick_label(dataset)
    return make_table("published-sources", headings, rows, about, groups=groups, empty=context.no_sources(dataset))


def _facts(published: Published, name: str) -> dict[str, str]:
    source = published.sources[name]
    conditions = {}
    for column in (*_CONDITIONS, "estimator"):
        values = published_values(published, name, column)
        # Other facts are in the words of the source.
        if values and column in _NAMED_VALUES:
            values = " / ".join(map(formatting.display_name, values.split(" / ")))
        conditions[COLUMNS[column].label] = values
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
    for value in published_values(published, name, "inferred").split(" / "):
        columns = ", ".join(column for column in value.split(", ") if column not in PRODUCTS)
        if columns and columns not in groups:
            groups.append(columns)
    return " / ".join(groups)


def stages(dataset: Dataset) -> Table:
    """Return the stages of each published task, then the measured stages."""
    published = read_published(dataset)
    rows, groups = [], []
    for (source, name), tasks in stage_rows(published.cells).groupby(["source", "table"], sort=False):
        of_table = [*map(_printed_stages, tasks.itertuples()), *_our_stages(dataset, tasks.iloc[0])]
        rows += of_table
        groups += [published.full_title(source, name)] * len(of_table)
    headings = ["Whose", Heading.number(COLUMNS["world_size"].label)]
    headings += [Heading.number(stage.label, "s", interval=bool(stage.column)) for stage in STAGES]
    notes = (caption("stages", "how"), *(f"{stage.label}, measured here: {stage.meaning}." for stage in STAGES))
    on_page, empty = caption("stages"), context.no_sources(dataset)
    in_file = f"{on_page} Measured here: {context.conditions(dataset)} {context.repetition(dataset)}"
    options = {"page_caption": on_page, "empty": empty}
    return make_table("stages", headings, rows, in_file, notes=notes, groups=groups, **options)


def _printed_stages(task: Any) -> list[Any]:
    cells: list[Any] = [str(task.program), str(task.world_size)]
    for stage in STAGES:
        printed = getattr(task, stage.metric)
        is_printed = not is_missing(printed) and printed != "-"
        cells.append(Cell(printed) if is_printed else Cell.missing(caption("stages", "not_printed")))
    return cells


def _our_stages(dataset: Dataset, task: Any) -> list[list[Any]]:
    labels = series.configuration_labels(dataset)
    rows = []
    for row in select_same_network(task, dataset.configurations).itertuples():
        steps = task.samples_per_task / row.batch_per_device
        stage_cells = [stage_cell(dataset, row, stage, steps) for stage in STAGES]
        rows.append([f"Measured here: {labels[row.configuration_id]}", str(row.world_size), *stage_cells])
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
        return Cell(formatting.plain(value - waiting), footnote=caption("stages", "difference"))
    printed, interval = formatting.format_bounded(value, low, high)
    return Cell(printed, interval, "" if interval else explain_missing_interval(dataset, row, stage.column))
