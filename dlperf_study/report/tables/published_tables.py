"""Tables of published results next to ours where they answer the same question, and why where they do not."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pandas as pd

from dlperf_study.audit.published.points import Published, communication_points
from dlperf_study.audit.published.same_question import Difference, Match, SameQuestion
from dlperf_study.audit.published.source import TOKENS_PER_DEVICE, parse_value
from dlperf_study.core.wording import in_sentence
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings.published import read_published
from dlperf_study.metrics.columns import COLUMNS, column_named
from dlperf_study.metrics.scaling import differences_from_baseline
from dlperf_study.report import context, formatting, series
from dlperf_study.report.formatting import text_if
from dlperf_study.report.say import caption
from dlperf_study.report.tables.audit_tables import audit_links
from dlperf_study.report.tables.table import Cell, Heading, Table, make_table
from dlperf_study.report.tables.table_builders import TableColumn, defined, grouped_table, measured_column
from dlperf_study.study.configuration import PARAMETERS

NO_CONFIGURATION = "the study has no configuration"
#: What need not be the same, but is said where it is known of both.
_NAMED = ("device_name", "interconnect")


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
    unanswered = [match.differences for match in matches if not match.configuration_ids]
    if not unanswered:
        return []
    return [difference for difference in unanswered[0] if all(difference in differences for differences in unanswered)]


def _listed(differences: Iterable[Difference]) -> str:
    """Return differences as text: ``device (published GPU, measured here CPU)``."""
    parts = []
    for difference in differences:
        name, ours = difference.name, "not known"
        if difference.ours is not None:
            ours = formatting.value_with_unit(name, difference.ours)
        published = formatting.value_with_unit(name, difference.published)
        parts.append(f"{COLUMNS[name].words} (published {published}, measured here {ours})")
    return formatting.listed(parts)


def differs_in(dataset: Dataset, number: Any, row: Any, match: Match) -> str:
    """Return known differences between a published number and its match."""
    runs, parts = dataset.completed_runs, []
    runs = runs[runs["configuration_id"] == row.configuration_id]
    for name in _NAMED:
        published, ours = getattr(number, name), context.list_values(runs[name])
        if len(runs) and not is_missing(published) and ours != published:
            parts.append(f"{column_named(name).words}: published {published}, measured here {ours}")
    if len(runs) and not is_missing(number.software):
        parts.append(f"software: published {number.software}, measured here {context.versions(runs)}")
    for name in match.unstated:
        value = getattr(row, name, None)
        # It is always said where images come from.
        if is_missing(value) or (name != "data_loader" and name not in PARAMETERS):
            continue
        if name == "data_loader" or value != PARAMETERS[name].default:
            ours = formatting.value_with_unit(name, value)
            parts.append(f"its source does not state {column_named(name).words}, measured here {ours}")
    return text_if(parts, f"the same question, but {'; '.join(parts)}")


_WITH_DIFFERENCES = ("throughput", "exposed_communication_share")


def published_values(published: Published, name: str, column: str) -> str:
    """Return a source's values in a column, separated by slashes."""
    results = published.cells[(published.cells["source"] == name) & (published.cells["role"] == "result")]
    return " / ".join(str(value) for value in dict.fromkeys(results[column].dropna()))


def hardware_sentence(published: Published) -> str:
    """Return the sentence on the hardware of each source."""
    machines = []
    for name, source in published.sources.items():
        machines.append(f"{source.title}: {published_values(published, name, 'hardware') or 'not stated'}")
    return text_if(machines, f"Published on {'; '.join(machines)}.")


def comparability_notes(published: Published) -> Iterator[str]:
    """Yield what a reader must know of a source before comparing."""
    for source in published.sources.values():
        if source.differs:
            yield f"{source.title}: {source.differs}"


def next_to_ours(dataset: Dataset) -> Table:
    """Return published throughputs and speedups beside the matching measured ones."""
    published = read_published(dataset)
    speedup = _link_to_audit(dataset, _SPEEDUP)
    points = _matched(dataset, published.points)
    # Where nothing is measured, one column says why.
    names, notes = ["throughput"], [caption("published", "how")]
    if points["configuration_id"].isin(dataset.measured["configuration_id"]).any():
        names += ["mean_step_throughput", "baseline_throughput", "speedup"]
        notes.append(defined("mean_step_throughput"))
    ours = [_our_column(dataset, name, points["match"]) for name in names]
    columns = [*_keys(points), _THROUGHPUT, _BASELINE, speedup, _AS_PRINTED, *ours]
    notes += comparability_notes(published)
    return _table(dataset, points, "published", columns, context.repetition(dataset, ratios=True), notes)


def communication(dataset: Dataset) -> Table:
    """Return printed communication times next to the measured exposed share."""
    published = read_published(dataset)
    points = _matched(dataset, communication_points(published.cells))
    printed = TableColumn(Heading("Communication, as published"), lambda row: Cell(row.communication))
    ours = _our_column(dataset, "exposed_communication_share", points["match"])
    columns = [*_keys(points), _link_to_audit(dataset, printed), ours]
    notes = [caption("published-communication", "share")]
    return _table(dataset, points, "published-communication", columns, context.repetition(dataset), notes)


def ours_alone(dataset: Dataset) -> Table:
    """Return the configurations without a matching published number, and why."""
    published = read_published(dataset)
    results = published.cells[published.cells["role"] == "result"]
    labels, rows = series.configuration_labels(dataset), []
    for configuration_id, differences in SameQuestion(results, dataset.configurations).unmatched().items():
        reason = f"the most similar published number differs in {_listed(differences)}"
        rows.append((labels[configuration_id], reason))
    headings = ("Configuration measured here", "Why it is next to no published number")
    about, empty = caption("published-without-number"), context.no_sources(dataset)
    return make_table("published-without-number", headings, rows, about, empty=empty)


def _matched(dataset: Dataset, points: pd.DataFrame) -> pd.DataFrame:
    """Return a row per point and matching configuration."""
    matches = SameQuestion(points, dataset.configurations).matches()
    matched = points.assign(
        match=matches, configuration_id=list(map(attrgetter("configuration_ids"), matches))
    ).explode("configuration_id")
    return matched.assign(line=series.published_labels(matched))


def _table(
    dataset: Dataset, rows: pd.DataFrame, name: str, columns: list[TableColumn], repetition: str, notes: list[str]
) -> Table:
    published = read_published(dataset)
    in_file = (
        f"{caption('published', 'apart')} {hardware_sentence(published)} Measured here: {context.conditions(dataset)} "
    )
    groups = ((published.full_title(row.source, row.table), (row,)) for row in rows.itertuples())
    options = {"page_caption": caption("published", "on_page"), "empty": context.no_sources(dataset)}
    return grouped_table(name, in_file + repetition, columns, groups, notes, **options)


def _keys(points: pd.DataFrame) -> list[TableColumn]:
    line = TableColumn(Heading("Line"), lambda row: Cell(row.line))
    devices = TableColumn(Heading.number(COLUMNS["world_size"].label), lambda row: Cell(str(row.world_size)))
    if points["line"].nunique() > 1:
        return [line, devices]
    return [devices]


def _throughput(row: Any) -> Cell:
    if row.value != parse_value(row.printed):
        footnote = f"printed as {row.printed} {TOKENS_PER_DEVICE}"
        return Cell(formatting.format_column(row, "throughput")[0], footnote=footnote)
    if is_missing(row.throughput_low):
        return Cell(row.printed, footnote=caption("published", row.estimator))
    bounds = (row.throughput_low, row.throughput_high)
    return Cell(row.printed, formatting.format_bounded(row.value, *bounds)[1], _outside_note(row.value, *bounds))


def _outside_note(value: float, low: float, high: float) -> str:
    return text_if(not low <= value <= high, caption("published", "outside"))


def _speedup(row: Any) -> Cell:
    if is_missing(row.speedup):
        return Cell.missing(caption("published", "no_baseline"))
    if row.is_baseline:
        return Cell("1")
    footnote = caption("published", "no_runs_of_baseline")
    if not is_missing(row.speedup_low):
        footnote = _outside_note(row.speedup, row.speedup_low, row.speedup_high)
    elif is_missing(row.throughput_low):
        # The baseline of its line may have no runs where the point has them.
        footnote = caption("published", row.estimator)
    return Cell(*formatting.format_column(row, "speedup"), footnote)


def _baseline(row: Any) -> Cell:
    if is_missing(row.baseline_printed):
        return Cell.missing(caption("published", "no_baseline"))
    return Cell(row.baseline_printed)


def _printed_ratio(row: Any) -> Cell:
    if is_missing(row.printed_ratio):
        return Cell.missing(caption("published", "no_ratio"))
    footnote = text_if(row.ratio != "speedup", f"printed as {formatting.display_name(row.ratio)}")
    return Cell(row.printed_ratio, footnote=footnote)


_UNIT, _RATIO = COLUMNS["throughput"].unit, COLUMNS["speedup"].unit
_THROUGHPUT = TableColumn(Heading.number("Published throughput", _UNIT, interval=True), _throughput)
_BASELINE = TableColumn(Heading.number("Published baseline throughput", _UNIT), _baseline)
_SPEEDUP = TableColumn(Heading.number("Published speedup", _RATIO, interval=True), _speedup)
_AS_PRINTED = TableColumn(Heading.number("As printed"), _printed_ratio)


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
    heading = replace(column.heading, label=f"Measured {in_sentence(column.heading.label)}")
    unlike = differences_from_baseline(dataset.configurations, dataset.plan.scaling) if name == "speedup" else {}

    def cell(row: Any) -> Cell:
        if row.configuration_id not in rows:
            return Cell.missing(*mismatch_reasons(row.match, common))
        if parameters := unlike.get(row.configuration_id):
            differing = formatting.listed_columns(parameters)
            return Cell.missing(f"the baseline measured here differs from it in {differing}: not how one line scales")
        ours = column.cell(rows[row.configuration_id])
        if name not in _WITH_DIFFERENCES:
            return ours
        footnotes = filter(None, (ours.footnote, differs_in(dataset, row, rows[row.configuration_id], row.match)))
        return replace(ours, footnote="; ".join(footnotes))

    return TableColumn(heading, cell)
