"""Tables of published results next to ours where they answer the same question, and why where they do not."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from dlperf_study.audit.published.points import Published, exchange_points
from dlperf_study.audit.published.same_question import Difference, Match, SameQuestion
from dlperf_study.audit.published.source import TOKENS_PER_DEVICE, parse_value
from dlperf_study.core.wording import in_sentence
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings.published import read_published
from dlperf_study.metrics.columns import COLUMNS, column_named
from dlperf_study.metrics.scaling import differences_from_baseline
from dlperf_study.report import context, formatting, series
from dlperf_study.report.context import NO_SOURCES
from dlperf_study.report.tables.audit_tables import audit_links
from dlperf_study.report.tables.published_sources import comparability_notes, hardware_sentence
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.report.tables.table_builders import TableColumn, defined, grouped_table, measured_column
from dlperf_study.study.configuration import PARAMETERS

NO_CONFIGURATION = "the study has no configuration"
#: What need not be the same, but is said where it is known of both.
_NAMED = ("device_name", "link")


def mismatch_reasons(match: Match, common: Sequence[Difference] = ()) -> tuple[str, ...]:
    """Return why no configuration matches; ``common`` differences come first."""
    if not match.differences:
        return (NO_CONFIGURATION,)
    further = [difference for difference in match.differences if difference not in common]
    reason = f"no configuration answers the same question; the most similar differs in {_listed(common or further)}"
    if common and further:
        return (reason, f"and also in {_listed(further)}")
    return (reason,)


def common_differences(matches: Iterable[Match]) -> list[Difference]:
    """Return the differences that all unmatched published numbers share."""
    unanswered = [match.differences for match in matches if not match.identities]
    if not unanswered:
        return []
    return [difference for difference in unanswered[0] if all(difference in differences for differences in unanswered)]


def _listed(differences: Iterable[Difference]) -> str:
    """Return differences as text: ``device (published GPU, ours CPU)``."""
    parts = []
    for difference in differences:
        ours = "not known" if difference.ours is None else formatting.level_with_unit(difference.name, difference.ours)
        label = COLUMNS[difference.name].words
        parts.append(
            f"{label} (published {formatting.level_with_unit(difference.name, difference.published)}, ours {ours})"
        )
    return formatting.listed(parts)


def differs_in(dataset: Dataset, number: Any, row: Any, match: Match) -> str:
    """Return known differences between a published number and its match."""
    runs, parts = dataset.completed_runs, []
    runs = runs[runs["identity"] == row.identity]
    for name in _NAMED:
        published, ours = getattr(number, name), context.levels(runs[name])
        if len(runs) and not is_missing(published) and ours != published:
            parts.append(f"{column_named(name).words}: published {published}, ours {ours}")
    if len(runs) and not is_missing(number.software):
        parts.append(f"software: published {number.software}, ours {context.versions(runs)}")
    for name in match.unstated:
        level = getattr(row, name, None)
        if is_missing(level):
            continue
        # It is always said where images come from.
        if name == "data_source" or (name in PARAMETERS and level != PARAMETERS[name].default):
            parts.append(
                f"its source does not state {column_named(name).words}, ours {formatting.level_with_unit(name, level)}"
            )
    if parts:
        return f"the same question, but {'; '.join(parts)}"
    return ""


WITHOUT_RUNS = {
    "median": "no interval: only the median of its runs is printed",
    "one value": "no interval: one value printed",
    "not stated": "no interval: one value printed, and how it was obtained is not stated",
}
_WITH_DIFFERENCES = ("throughput", "exposed_share")
_NO_BASELINE = "its source prints no single device of this line"
_COMPARED = "Different programs on different machines: compare how they scale, not how fast they are."
_APART = (
    "Published and measured numbers come from different programs on different machines, often years apart: what may be "
    "compared is how they scale, not how fast they are, and neither is divided by the other here."
)
_HOW = (
    "Published speedups are computed from the printed throughputs, against the baseline that the source names or else "
    "the single device of the same line; what the source itself printed is next to them. Their intervals are "
    "95 % t intervals over the printed runs. A letter at a speedup leads to what the audit says of the numbers of its "
    "row."
)


def next_to_ours(dataset: Dataset) -> Table:
    """Return published throughputs and speedups beside the matching measured ones."""
    published = read_published(dataset)
    speedup = _link_to_audit(dataset, _published_speedup())
    points = _matched(dataset, published.points)
    # Where nothing is measured, one column says why.
    names, notes = ["throughput"], [_HOW]
    if points["identity"].isin(dataset.measured["identity"]).any():
        names += ["mean_of_rates", "baseline_throughput", "speedup"]
        notes.append(defined("mean_of_rates"))
    ours = [_our_column(dataset, name, points["match"]) for name in names]
    columns = [*_keys(points), _published_throughput(), _BASELINE, speedup, _AS_PRINTED, *ours]
    notes += comparability_notes(published)
    conditions = f"{context.conditions(dataset)} {context.repetition(dataset, ratios=True)}"
    caption = f"{_APART} {hardware_sentence(published)} Ours: {conditions}"
    return _table(published, points, "published", "Published, and ours", columns, caption, tuple(notes))


def communication(dataset: Dataset) -> Table:
    """Return printed communication times next to the measured exposed share."""
    published = read_published(dataset)
    points = _matched(dataset, exchange_points(published.cells))
    printed = TableColumn(Heading("Communication, as published"), lambda row: Cell(row.communication))
    ours = _our_column(dataset, "exposed_share", points["match"])
    columns = [*_keys(points), _link_to_audit(dataset, printed), ours]
    caption = (
        f"{_APART} {hardware_sentence(published)} Ours: {context.conditions(dataset)} {context.repetition(dataset)}"
    )
    notes = ("Of stage times, the share is the printed time of the all-reduce over that of the task.",)
    name, title = "published-communication", "Communication, published and ours"
    return _table(published, points, name, title, columns, caption, notes)


def ours_alone(dataset: Dataset) -> Table:
    """Return the configurations without a matching published number, and why."""
    published = read_published(dataset)
    results = published.cells[published.cells["role"] == "result"]
    labels, rows = series.configuration_labels(dataset), []
    for identity, differences in SameQuestion(results, dataset.configurations).unmatched().items():
        reason = f"the most similar published number differs in {_listed(differences)}"
        rows.append((Cell(labels[identity]), Cell(reason)))
    headings = (Heading("Configuration of ours"), Heading("Why it is next to no published number"))
    caption = "They were planned, and measured where possible, but no source printed a number of the same question."
    empty = NO_SOURCES
    if published.sources:
        empty = "Every configuration of this study is next to a published number."
    return Table("published-without-number", "Ours alone", caption, headings, tuple(rows), empty=empty)


def _matched(dataset: Dataset, points: pd.DataFrame) -> pd.DataFrame:
    """Return a row per point and matching configuration."""
    matches = SameQuestion(points, dataset.configurations).matches()
    matched = points.assign(match=matches, identity=[match.identities for match in matches]).explode("identity")
    return matched.assign(line=series.published_labels(matched))


def _table(
    published: Published,
    rows: pd.DataFrame,
    name: str,
    title: str,
    columns: list[TableColumn],
    caption: str,
    notes: tuple[str, ...],
) -> Table:
    groups = ((published.full_title(row.source, row.table), (row,)) for row in rows.itertuples())
    empty = NO_SOURCES
    if published.sources:
        empty = "Its sources print no such number."
    return grouped_table(name, title, caption, columns, groups, notes, empty, _COMPARED)


def _keys(points: pd.DataFrame) -> list[TableColumn]:
    line = TableColumn(Heading("Line"), lambda row: Cell(row.line))
    devices = TableColumn(Heading(COLUMNS["world_size"].label, numeric=True), lambda row: Cell(str(row.world_size)))
    if points["line"].nunique() > 1:
        return [line, devices]
    return [devices]


def _published_throughput() -> TableColumn:
    heading = Heading("Published throughput", COLUMNS["throughput"].unit, numeric=True, interval=True)

    def cell(row: Any) -> Cell:
        if row.value != parse_value(row.printed):
            return Cell(
                formatting.format_column(row, "throughput")[0], footnote=f"printed as {row.printed} {TOKENS_PER_DEVICE}"
            )
        if is_missing(row.throughput_low):
            return Cell(row.printed, footnote=WITHOUT_RUNS[row.estimator])
        bounds = (row.throughput_low, row.throughput_high)
        return Cell(row.printed, formatting.format_bounded(row.value, *bounds)[1], _outside_note(row.value, *bounds))

    return TableColumn(heading, cell)


def _outside_note(value: float, low: float, high: float) -> str:
    if low <= value <= high:
        return ""
    return "outside its interval, which is that of the means of printed runs"


def _published_speedup() -> TableColumn:
    heading = Heading("Published speedup", COLUMNS["speedup"].unit, numeric=True, interval=True)

    def cell(row: Any) -> Cell:
        if is_missing(row.speedup):
            return Cell.missing(_NO_BASELINE)
        if row.is_baseline:
            return Cell("1")
        if is_missing(row.speedup_low):
            # The baseline of its line may have no runs where the point has them.
            no_runs = is_missing(row.throughput_low)
            footnote = "no interval: no runs of its baseline"
            if no_runs:
                footnote = WITHOUT_RUNS[row.estimator]
        else:
            footnote = _outside_note(row.speedup, row.speedup_low, row.speedup_high)
        return Cell(*formatting.format_column(row, "speedup"), footnote)

    return TableColumn(heading, cell)


def _baseline(row: Any) -> Cell:
    if is_missing(row.baseline_printed):
        return Cell.missing(_NO_BASELINE)
    return Cell(row.baseline_printed)


_BASELINE = TableColumn(Heading("Published baseline throughput", COLUMNS["throughput"].unit, numeric=True), _baseline)


def _printed_ratio(row: Any) -> Cell:
    if is_missing(row.printed_ratio):
        return Cell.missing("its source prints no ratio here")
    footnote = "" if row.ratio == "speedup" else f"printed as {formatting.display_name(row.ratio)}"
    return Cell(row.printed_ratio, footnote=footnote)


_AS_PRINTED = TableColumn(Heading("As printed", numeric=True), _printed_ratio)


def _link_to_audit(dataset: Dataset, column: TableColumn) -> TableColumn:
    """Return a column whose cells link to the audit's diagnostics."""
    links = audit_links(dataset)

    def cell(row: Any) -> Cell:
        printed = column.cell(row)
        # A diagnostic may be about several of the numbers.
        distinct = dict.fromkeys(link for key in row.keys for link in links.get(key, ()))
        return replace(printed, further=(*printed.further, *distinct))

    return TableColumn(column.heading, cell)


def _our_column(dataset: Dataset, name: str, matches: Iterable[Match]) -> TableColumn:
    rows, common = dataset.configuration_rows, common_differences(matches)
    column = measured_column(dataset, name)
    heading = replace(column.heading, label=f"Our {in_sentence(column.heading.label)}")
    unlike = differences_from_baseline(dataset.configurations, dataset.plan.scaling) if name == "speedup" else {}

    def cell(row: Any) -> Cell:
        if row.identity not in rows:
            return Cell.missing(*mismatch_reasons(row.match, common))
        if parameters := unlike.get(row.identity):
            differing = formatting.listed_columns(parameters)
            return Cell.missing(f"our baseline differs from it in {differing}: not how one line scales")
        ours = column.cell(rows[row.identity])
        if name not in _WITH_DIFFERENCES:
            return ours
        footnotes = filter(None, (ours.footnote, differs_in(dataset, row, rows[row.identity], row.match)))
        return replace(ours, footnote="; ".join(footnotes))

    return TableColumn(heading, cell)
