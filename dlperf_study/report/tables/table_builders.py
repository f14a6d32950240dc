"""Tables with a row per configuration, member of a group or run, and their cells: a value, or why it is missing."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any

import pandas as pd

from dlperf_study.core.part_search import cached_by_parts
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.dataset.series import varying_factors
from dlperf_study.findings import scaling
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.comparison import EQUAL, RATIOS
from dlperf_study.metrics.metric import Shown
from dlperf_study.report import context, formatting, say, section
from dlperf_study.report.series import all_groups, all_series, short_labels
from dlperf_study.report.tables.diagnostic_tables import is_file, mask_numbers, merged
from dlperf_study.report.tables.html import MOST_ROWS
from dlperf_study.report.tables.missing import explain_missing, explain_missing_interval, explain_missing_of_run
from dlperf_study.report.tables.table import Cell, Footnote, Heading, Table, make_table
from dlperf_study.study.job import RunStatus

THROUGHPUT_UNITS = tuple(COLUMNS[name].unit for name in ("throughput", "token_throughput"))
MOST_AT_AN_END, MOST_UNEXPECTED = 10, 20


@cached_by_parts
def intervals() -> dict[str, tuple[str, str]]:
    """Return the interval columns of each column."""
    ends = {}
    for name, metric in COLUMNS.items():
        if f"{name}_low" in COLUMNS and metric.shown is not Shown.DENOMINATOR:
            ends[name] = (f"{name}_low", f"{name}_high")
    return ends


@dataclass(frozen=True)
class TableColumn:
    """One column of a table: its heading, and its cells."""

    heading: Heading
    cell: Callable[[Any], Cell]


def laid_out(
    columns: Sequence[TableColumn], rows: Iterable[Any]
) -> tuple[tuple[Heading, ...], tuple[tuple[Cell, ...], ...]]:
    """Return the headings, and the cells of each row."""
    cells = tuple(tuple(column.cell(row) for column in columns) for row in rows)
    return tuple(column.heading for column in columns), cells


def defined(name: str) -> str:
    """Return a column's definition as a note."""
    return f"{COLUMNS[name].label}: {COLUMNS[name].definition}."


def factor_column(name: str) -> TableColumn:
    """Return a column of values."""

    def cell(row: Any) -> Cell:
        value = getattr(row, name)
        if name == "batch_per_device" and not value:
            return Cell.missing("the global batch cannot be split equally")
        if is_missing(value):
            return Cell.missing("not stated")
        return Cell(formatting.display_name(value))

    column = COLUMNS[name]
    return TableColumn(Heading(column.label, column.unit, numeric=column.is_number), cell)


@kept_with_dataset
def measured_column(dataset: Dataset, name: str) -> TableColumn:
    """Return a column of measured values in their common unit."""
    metric = COLUMNS[name]
    if metric.shown in _SPECIAL_COLUMNS:
        column = _SPECIAL_COLUMNS[metric.shown](name, dataset)
    else:
        unit = formatting.unit_in(dataset.configurations, name)
        heading = Heading(unit.label, unit.symbol, numeric=True, interval=name in intervals())
        column = TableColumn(heading, lambda row: _measured_cell(dataset, row, name, unit))
    if not column.heading.numeric:
        return column
    return link_evidence(dataset, TableColumn(replace(column.heading, column=name), column.cell))


def link_evidence(dataset: Dataset, column: TableColumn) -> TableColumn:
    """Return a column whose numbers link to their runs."""
    with_runs = set(dataset.runs["configuration_id"])

    def cell(row: Any) -> Cell:
        without_evidence = column.cell(row)
        if without_evidence.text == formatting.MISSING or row.configuration_id not in with_runs:
            return without_evidence
        return replace(without_evidence, evidence=section.evidence_anchor(row.configuration_id))

    return TableColumn(column.heading, cell)


def _measured_cell(dataset: Dataset, row: Any, name: str, unit: formatting.Unit) -> Cell:
    value = getattr(row, name)
    if is_missing(value):
        return Cell.missing(explain_missing(dataset, row, name))
    diagnostics = list(_diagnostics(dataset, row, name))
    reason, footnote = "", "; ".join(diagnostics)
    metric, denominator = COLUMNS[name], COLUMNS[name].compared_with
    if denominator and getattr(row, f"is_{denominator}"):
        return Cell(metric.of_itself, footnote=footnote)
    printed, interval = formatting.format_column(row, name, unit.size)
    if name not in intervals():
        interval = ""
    elif not interval:
        reason = explain_missing_interval(dataset, row, name, denominator)
        footnote = "; ".join(dict.fromkeys([reason, *diagnostics]))
    is_doubtful = (row.configuration_id, name) in dataset.doubtful_numbers
    return Cell(printed, interval, footnote, reason=reason, is_doubtful=is_doubtful)


def _diagnostics(dataset: Dataset, row: Any, name: str) -> Iterator[str]:
    """Yield the diagnostics about one number, merged over runs."""
    diagnostics = _diagnostics_that_count(dataset).get(row.configuration_id, [])
    serious_subjects = dataset.doubtful_numbers.get((row.configuration_id, name), [])
    subjects, similar = {name, *COLUMNS[name].related, *serious_subjects}, defaultdict(list)
    for diagnostic in diagnostics:
        if diagnostic.subject in subjects:
            similar[mask_numbers(diagnostic.message)].append(diagnostic)
    for group in similar.values():
        runs, message = _runs_label(group), merged(diagnostic.message for diagnostic in group)
        yield f"{runs}: {message}" if runs else message
    if COLUMNS[name].of_logs:
        # Diagnostics about logs may be long, and are listed with all others: here only their runs.
        runs_of_logs = _runs_label(diagnostic for diagnostic in diagnostics if is_file(diagnostic.subject))
        if runs_of_logs:
            yield f"diagnostics about the log of {runs_of_logs}"


@kept_with_dataset
def _diagnostics_that_count(dataset: Dataset) -> Mapping[str, list[Any]]:
    """Return the diagnostics about each configuration's completed runs."""
    runs = (dataset.whole or dataset).runs
    completed = runs.loc[runs["status"] == RunStatus.COMPLETED, ["configuration_id", "repetition"]]
    of_completed = set(completed.itertuples(index=False, name=None))
    counting = defaultdict[str, list[Any]](list)
    for diagnostic in dataset.diagnostics.dropna(subset="configuration_id").itertuples(index=False):
        if is_missing(diagnostic.repetition) or (diagnostic.configuration_id, diagnostic.repetition) in of_completed:
            counting[diagnostic.configuration_id].append(diagnostic)
    return counting


def _runs_label(diagnostics: Iterable[Any]) -> str:
    """Return the runs of diagnostics: ``runs 1 to 4``."""
    repetitions = (diagnostic.repetition for diagnostic in diagnostics)
    runs = sorted({int(repetition) for repetition in repetitions if not is_missing(repetition)})
    if len(runs) > 2 and runs[-1] - runs[0] == len(runs) - 1:
        return f"runs {runs[0]} to {runs[-1]}"
    if runs:
        return f"run{'s' * (len(runs) > 1)} {formatting.listed(map(str, runs))}"
    return ""


def run_column(runs: pd.DataFrame, name: str, in_unit_of: str = "") -> TableColumn:
    """Return a column of a table of runs, in their common unit."""
    column = COLUMNS[name]
    unit = formatting.fitting_unit(name, runs[in_unit_of or name] if column.is_number else [])

    def cell(row: Any) -> Cell:
        value = getattr(row, name)
        if is_missing(value):
            return Cell.missing(explain_missing_of_run(row, name))
        footnote = ""
        if column.explained_by and not is_missing(explanation := getattr(row, column.explained_by)):
            footnote = f"{COLUMNS[column.explained_by].words}: {explanation}"
        if isinstance(value, float):
            is_throughput = unit.symbol in THROUGHPUT_UNITS
            shown = formatting.throughput(value) if is_throughput else formatting.plain(value / unit.size)
        else:
            shown = value if column.shown is Shown.SENTENCE else formatting.display_name(value)
        return Cell(shown, footnote=footnote)

    return TableColumn(Heading(column.label, unit.symbol, numeric=column.is_number), cell)


def _unitless_column(name: str, dataset: Dataset) -> TableColumn:
    """Return a column of counts or texts, without unit and interval."""
    column = COLUMNS[name]

    def cell(row: Any) -> Cell:
        value, denominator = getattr(row, name), column.compared_with
        if denominator and getattr(row, f"is_{denominator}"):
            return Cell(denominator)
        if is_missing(value):
            return Cell.missing(explain_missing(dataset, row, name))
        if name == "runs_completed":
            # Rounds that were added are more runs than were planned.
            return Cell(f"{value} of {max(row.runs_planned, dataset.run_counts.get(row.configuration_id, 0))}")
        is_least = column.at_least_without and is_missing(getattr(row, column.at_least_without))
        return Cell(f"≥ {value}" if is_least else str(value))

    return TableColumn(Heading(column.label, numeric=column.is_number), cell)


def significance_text(word: str, equal_within: float) -> str:
    """Return the result of a significance test; of equality, within what."""
    if word == EQUAL:
        return f"equal within {formatting.percent_at_most(equal_within)}"
    return word


def _significance_column(name: str, dataset: Dataset) -> TableColumn:
    denominator = COLUMNS[name].compared_with or "baseline"
    ratio = RATIOS[denominator]

    def cell(row: Any) -> Cell:
        if getattr(row, f"is_{denominator}"):
            return Cell(denominator)
        if is_missing(getattr(row, ratio)):
            return Cell.missing(explain_missing(dataset, row, ratio))
        word, equal_within = attrgetter(name, f"{ratio}_equal_within")(row)
        if is_missing(word):
            return Cell.missing(explain_missing_interval(dataset, row, ratio, denominator))
        return Cell(significance_text(word, equal_within))

    return TableColumn(Heading(COLUMNS[name].label), cell)


_SPECIAL_COLUMNS = {Shown.PLAIN: _unitless_column, Shown.SIGNIFICANCE: _significance_column}


def noticeable(rows: Sequence[Any], name: str, cells: Sequence[Sequence[Cell]]) -> tuple[int, ...]:
    """Return the rows that a page shows first: extremes and rarities."""
    values = pd.Series([getattr(row, name, None) for row in rows], dtype="object")
    numbers = pd.to_numeric(values, errors="coerce").dropna()
    footnotes = [list(chain.from_iterable(cell.footnotes for cell in row)) for row in cells]
    uses = Counter[Footnote](chain.from_iterable({*cell.footnotes} for row in cells for cell in row))
    rarest = pd.Series([min(map(uses.__getitem__, of_row), default=len(rows)) for of_row in footnotes])
    unexpected = rarest[rarest < len(rows) / 2].nsmallest(MOST_UNEXPECTED).index
    at_ends = [*numbers.nlargest(MOST_AT_AN_END).index, *numbers.nsmallest(MOST_AT_AN_END).index]
    return tuple(sorted({*at_ends, *unexpected}))


def grouped_table(
    name: str,
    caption: str,
    columns: Sequence[TableColumn],
    groups: Iterable[tuple[str, Iterable[Any]]],
    notes: Iterable[str],
    *,
    page_caption: str = "",
    noticed: str = "",
    **options: str,
) -> Table:
    """Return a table with grouped rows; ``noticed``: the column of extremes."""
    rows, names = list[Any](), list[str]()
    for group, members in groups:
        rows += members
        names += [group] * (len(rows) - len(names))
    headings, cells = laid_out(columns, rows)
    first: tuple[int, ...] = ()
    if noticed and len(rows) > MOST_ROWS:
        first = noticeable(rows, noticed, cells)
    texts_of_page: dict[str, Any] = {"page_caption": page_caption, "first": first, **options}
    return make_table(name, headings, cells, caption, notes=notes, groups=names, **texts_of_page)


def table_of_configurations(
    dataset: Dataset,
    name: str,
    shown: Sequence[str],
    notes: Iterable[str] | None = None,
    selected: pd.DataFrame | None = None,
) -> Table:
    """Return a row per configuration, or per ``selected`` row."""
    configuration_ids = (
        set((dataset.configurations if selected is None else selected)["configuration_id"]) if shown else set()
    )
    columns = [*map(factor_column, _keys(dataset)), *map(partial(measured_column, dataset), shown)]
    groups = []
    for label, of_series in labelled_series(dataset):
        members = filter(configuration_ids.__contains__, of_series)
        groups.append((label, map(dataset.configuration_rows.__getitem__, members)))
    notes = map(defined, shown) if notes is None else notes
    noticed = next((column for column in shown if COLUMNS[column].is_number), "throughput")
    return grouped_table(name, _caption(dataset, shown), columns, groups, notes, noticed=noticed)


def table_of_groups(
    dataset: Dataset, name: str, keys: Sequence[TableColumn], shown: Sequence[str], notes: Iterable[str]
) -> Table:
    """Return a row for every reference and each compared configuration."""
    columns = [*keys, *map(partial(measured_column, dataset), shown)]
    groups = [(group.label, group.members) for group in all_groups(dataset)]
    empty = say.say_one(scaling.nothing_compared(dataset, "reference"))
    return grouped_table(name, _caption(dataset, shown), columns, groups, notes, empty=empty)


def table_of_runs(
    dataset: Dataset,
    name: str,
    shown: Sequence[str],
    runs: pd.DataFrame,
    notes: Iterable[str] = (),
    **options: str,
) -> Table:
    """Return a row for each run, by series, devices and repetition."""
    columns = list(map(partial(run_column, runs), (*_keys(dataset), "repetition")))
    for name_of_column in shown:
        column = run_column(runs, name_of_column)
        if column.heading.numeric:
            column = link_evidence(dataset, column)
        columns.append(column)
    series = labelled_series(dataset)
    positions: dict[str, int] = {}
    for position, (_, of_series) in enumerate(series):
        positions |= dict.fromkeys(of_series, position)
    # Of each series in turn the runs would be looked for among all: of many, for hours.
    by_series = defaultdict[int, list[Any]](list)
    for run in runs.sort_values(["world_size", "nodes", "parameter_servers", "repetition"], kind="stable").itertuples():
        by_series[positions.get(run.configuration_id, len(series))].append(run)
    groups = [(label, by_series[position]) for position, (label, _) in enumerate(series)]
    conditions = context.conditions(dataset)
    return grouped_table(name, conditions, columns, groups, notes, noticed="throughput", **options)


def labelled_series(dataset: Dataset) -> list[tuple[str, list[str]]]:
    """Return the label of every series and its configurations' identities."""
    series = all_series(dataset)
    return [(label, line.configuration_ids) for label, line in zip(short_labels(series), series, strict=True)]


def label_column(heading: str, name: str) -> TableColumn:
    """Return a column of the labels of group members."""
    return TableColumn(Heading(heading), lambda row: Cell(getattr(row, name)))


def _caption(dataset: Dataset, shown: Sequence[str]) -> str:
    with_intervals = intervals().keys() & set(shown)
    has_ratios = any(COLUMNS[name].compared_with for name in with_intervals)
    summary = context.repetition(dataset, has_ratios) if with_intervals else context.MEANS
    return " ".join(filter(None, (context.conditions(dataset), summary, context.merging(dataset))))


def _keys(dataset: Dataset) -> list[str]:
    """Return the columns that name a row within its series."""
    factors, rows = varying_factors(dataset), dataset.configurations
    candidates = ("nodes", "parameter_servers", "batch_per_device")
    return ["world_size", *(name for name in candidates if name not in factors and rows[name].nunique() > 1)]
