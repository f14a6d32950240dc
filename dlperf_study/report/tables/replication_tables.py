"""A study as the replication of a published source: what it asked, what it printed with ours below, and what differs.

The answers are sentences made of its numbers and of ours.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from dlperf_study.audit.published.points import Published
from dlperf_study.audit.published.same_question import Match, SameQuestion, images_of_rows
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.metrics.columns import COLUMNS, TableName, column_named
from dlperf_study.metrics.drift import date_change
from dlperf_study.metrics.published import STAGES
from dlperf_study.metrics.statistics import Estimate, log_ratio
from dlperf_study.report import context
from dlperf_study.report.formatting import MISSING, display_name, is_missing, level_with_unit, listed, value_text
from dlperf_study.report.series import published_of
from dlperf_study.report.tables.answers import Verdicts
from dlperf_study.report.tables.history_tables import DATES_UNKNOWN
from dlperf_study.report.tables.missing import explain_unmeasured
from dlperf_study.report.tables.published_sources import printed_grid, published_levels, stage_cell
from dlperf_study.report.tables.published_tables import mismatch_reasons, unanswered_reason
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.report.tables.table_builders import measured_column, table_of_configurations

NO_QUESTION = "No published source of this study has a question that the study asks again."


@dataclass(frozen=True)
class Replication:
    """One source that has a question, its numbers, and the configurations of a study that answer the same."""

    dataset: Dataset
    name: str

    @property
    def title(self) -> str:
        """The title of the publication."""
        return self.published.sources[self.name].title

    @cached_property
    def published(self) -> Published:
        """Its numbers as printed, and as points of scaling curves."""
        return Published.read((self.name,))

    @cached_property
    def results(self) -> pd.DataFrame:
        """Every printed result, also a dash, with its ``match``."""
        cells = self.published.cells
        return self._match(cells[cells["role"] == "result"])

    @cached_property
    def points(self) -> pd.DataFrame:
        """Every published throughput with its ratios and its ``match``."""
        return self._match(self.published.points)

    @cached_property
    def rows(self) -> Mapping[str, Any]:
        """Our configurations with a completed run, by identity."""
        rows = self.dataset.configuration_rows
        return {identity: rows[identity] for identity in context.measured(self.dataset)["identity"]}

    @cached_property
    def is_answered(self) -> list[bool]:
        """Of each published throughput, whether one of ours was measured that answers the same question."""
        return [self.measured(match) is not None for match in self.points["match"]]

    def measured(self, match: Match) -> Any:
        """Return the first configuration with a completed run that answers the question of a number, or None."""
        return next((self.rows[identity] for identity in match.identities if identity in self.rows), None)

    def _match(self, numbers: pd.DataFrame) -> pd.DataFrame:
        return numbers.assign(match=SameQuestion(numbers, self.dataset.configurations).matches())


@kept_with_dataset
def replications_of(dataset: Dataset) -> list[Replication]:
    """Return the replications of a study, one for each of its sources with a question, in the order of the study."""
    sources = published_of(dataset).sources
    return [Replication(dataset, name) for name, source in sources.items() if source.question]


#: What may differ between two published throughputs of one table.
_FACTORS = (
    *("world_size", "servers", "batch_per_device", "precision", "loss_scaling", "compiler"),
    *("data_source", "classifier", "sample_ratio", "classes"),
)
_PREFACE = (
    "A sentence compares how much a throughput changes from one published configuration to another with how much ours "
    f"changes between the same two. How fast the machines are is not compared: they differ. The "
    f"original and ours are one date each, and intervals hold what differs within it. {DATES_UNKNOWN}"
)


def answers(dataset: Dataset) -> Verdicts:
    """Return, for each original, what ours says of its question; nothing where nothing comparable was measured."""
    verdicts: list[tuple[str, str]] = []
    for replication in replications_of(dataset):
        title = replication.title
        verdicts.append((title, _how_many(replication)))
        throughputs = dataset.throughputs
        for first, last in _pairs(replication.points[replication.is_answered]):
            if not (changes := _changes(first, last)):
                continue
            ours = [replication.measured(point.match).identity for point in (first, last)]
            ratio = log_ratio(throughputs[ours[1]], throughputs[ours[0]])
            label = f"{replication.published.sources[last.source].tables[last.table].title}, {last.program}"
            verdicts.append((label, _sentence(changes, _published_ratio(first, last), ratio)))
    preface = _PREFACE if len(verdicts) > len(replications_of(dataset)) else ""
    return Verdicts(tuple(verdicts), preface, context.quick_label(dataset).strip(), NO_QUESTION)


def _how_many(replication: Replication) -> str:
    """Return how many published throughputs have a measured one of ours next to them, and why the others have none."""
    count, total = sum(replication.is_answered), len(replication.points)
    if not count:
        sentences = [
            f"Nothing comparable was measured here: none of its {total} throughputs has one of ours next to it."
        ]
    else:
        sentences = [f"Of its {total} throughputs, {count} {'has' if count == 1 else 'have'} one of ours next to it."]
    unanswered = replication.points.loc[[not is_answered for is_answered in replication.is_answered], "match"]
    if count and len(unanswered):
        sentences.append("The others have none.")
    sentences.append(unanswered_reason(unanswered))
    if unmeasured := sum(bool(match.identities) for match in unanswered):
        sentences.append(f"{unmeasured} {'is' if unmeasured == 1 else 'are'} planned without a completed run here.")
    return " ".join(filter(None, sentences))


def _pairs(points: pd.DataFrame) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of published throughputs that ours answers too.

    Of each line of a table: the baseline and the most devices. Of the points of one program in a table on the most
    devices that several have: the first and the last.
    """
    by_cell = {point.cell: point for point in points.itertuples()}
    for _, of_program in points.groupby(["table", "program"], sort=False, dropna=False):
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


def _changes(first: Any, last: Any) -> list[str]:
    """Return in which factors two published configurations differ: ``devices from 1 to 8``."""
    changes = []
    for name in _FACTORS:
        levels = [getattr(point, name) for point in (first, last)]
        if not any(map(is_missing, levels)) and levels[0] != levels[1]:
            names = [level_with_unit(name, level) for level in levels]
            changes.append(f"{column_named(name).words} from {names[0]} to {names[1]}")
    return changes


def _sentence(changes: list[str], published: Estimate, ours: Estimate) -> str:
    """Return how much both throughputs change between two published configurations, and ours relative to theirs."""
    ratios = published, ours, date_change(published, ours, [published]).log_ratio
    ratio_texts = [value_text(ratio.bounded_factor, "×", no_interval=" (without an interval)") for ratio in ratios]
    both = f"{ratio_texts[0]} in print and {ratio_texts[1]} here"
    return f"With {listed(changes)}, the throughput changes {both}, which is {ratio_texts[2]} as much."


def _published_ratio(first: Any, last: Any) -> Estimate:
    """Return the logarithm of a published ratio; only one to the baseline of its line may have an interval."""
    ratio = last.value / first.value
    if last.baseline != first.cell or is_missing(last.speedup_low):
        return Estimate(math.log(ratio))
    return Estimate.of_printed(ratio, last.speedup_low, last.speedup_high)


OURS = "ours"
#: What is compared of the conditions: a fact of the source, and the column of our runs that has the same.
_CONDITIONS = {
    **{"hardware": "cpu_model", "device": "device", "device_name": "device_name", "link": "link"},
    **{"framework": "framework", "data_source": "data_source"},
}
_OURS_BELOW, _NOTHING_BELOW = "Below a row: ours of the same question.", "Nothing of ours is next to it."
#: The stages of a task by the metric of their times.
_STAGES = {stage.metric: stage for stage in STAGES}
#: Those of which both have the same levels.
_LEVELS = ("device", "data_source")
_APART = "These were measured here, but no number of the original is of the same question: they are not its answer."


def questions(dataset: Dataset) -> Table:
    """Return what each original asked, who printed the answer, when and where."""
    rows, groups = [], []
    for replication in replications_of(dataset):
        source = replication.published.sources[replication.name]
        facts = {
            "Question": source.question,
            "Authors": source.authors,
            "Year": str(source.year or "not stated"),
            "Page": source.url.removeprefix("https://"),
            "Copied": source.retrieved,
            "To know": source.differs,
        }
        for label, fact in facts.items():
            rows.append((Cell(label), Cell(fact)))
            groups.append(source.title)
    name, title, caption = "replication-question", "The original", "What it asked, who printed the answer, and where."
    headings = (Heading(""), Heading(""))
    return Table(name, title, caption, headings, tuple(rows), empty=NO_QUESTION, groups=tuple(groups))


def side_by_side(dataset: Dataset) -> Iterator[Table]:
    """Yield each table of results as printed; below each row of which anything was measured here, ours."""
    for replication in replications_of(dataset):
        for source, table in replication.published.results():
            yield _side_by_side(replication, source, table)


def _side_by_side(replication: Replication, source: str, table: str) -> Table:
    headings, printed_rows = printed_grid(replication.published, source, table)
    columns = [heading.label for heading in headings[1:]]
    results = replication.results[replication.results["table"] == table]
    rows = []
    for printed in printed_rows:
        rows.append(printed)
        of_row = results[results["row"] == printed[0].text]
        if any(replication.measured(match) is not None for match in of_row["match"]):
            rows.append((Cell(OURS), *_our_cells(replication, of_row, columns)))
    origin = replication.published.sources[source]
    year = f", {origin.year}," if origin.year else ""
    as_printed, has_ours = f"As {origin.authors}{year} printed it, cell by cell.", len(rows) > len(printed_rows)
    caption = f"{as_printed} {_describe_ours(replication, results) if has_ours else _explain_none_of_ours(results)}"
    page_caption = f"{as_printed} {_OURS_BELOW if has_ours else _NOTHING_BELOW}"
    name, title = f"replication-{source}-{table}".replace("_", "-"), replication.published.title_of(source, table)
    return Table(name, title, caption, headings, tuple(rows), page_caption=page_caption)


def _describe_ours(replication: Replication, results: pd.DataFrame) -> str:
    """Return what the rows of ours are, and how they were measured."""
    identities = {row.identity for row in map(replication.measured, results["match"]) if row is not None}
    configurations = replication.dataset.configurations
    ours = replication.dataset.only(configurations[configurations["identity"].isin(identities)])
    return f"{_OURS_BELOW} {context.conditions(ours)} {context.repetition(ours)}"


def _explain_none_of_ours(results: pd.DataFrame) -> str:
    """Return why no row of ours is below those of a table."""
    if reason := unanswered_reason(results["match"]):
        return f"{_NOTHING_BELOW} {reason}"
    return "What would be next to it was not measured here."


def _our_cells(replication: Replication, of_row: pd.DataFrame, columns: Iterable[str]) -> Iterator[Cell]:
    """Yield what ours gives for each printed cell of a row; a cell may hold several numbers."""
    for column in columns:
        cells = [_our_cell(replication, result) for result in of_row[of_row["column"] == column].itertuples()]
        footnotes = dict.fromkeys(cell.footnote for cell in cells if cell.footnote)
        yield Cell(" / ".join(cell.printed for cell in cells), footnote="; ".join(footnotes))


def _our_cell(replication: Replication, result: Any) -> Cell:
    """Return ours for one printed result."""
    row = replication.measured(result.match)
    if not result.match.identities:
        return Cell.missing(*mismatch_reasons(result.match))
    if row is None:
        configurations = replication.dataset.configurations
        [planned] = configurations[configurations["identity"] == result.match.identities[0]].itertuples()
        return Cell.missing(explain_unmeasured(replication.dataset, planned))
    if result.metric in _STAGES:
        steps = result.samples_per_task / row.batch_per_device
        return _append_unit(stage_cell(replication.dataset, row, _STAGES[result.metric], steps), "s")
    if result.metric not in COLUMNS or TableName.CONFIGURATIONS not in COLUMNS[result.metric].tables:
        return Cell.missing("not measured under this name")
    column = measured_column(replication.dataset, result.metric)
    # A time of ours may have another prefix than the printed one.
    return _append_unit(column.cell(row), column.heading.unit if COLUMNS[result.metric].unit == "s" else "")


def _append_unit(cell: Cell, unit: str) -> Cell:
    return replace(cell, text=f"{cell.text} {unit}") if unit and cell.text != MISSING else cell


def differences(dataset: Dataset) -> Table:
    """Return the conditions of each original and of our runs, next to each other."""
    rows, groups = [], []
    runs = context.completed_runs(dataset)
    ours = {fact: context.levels(runs[column]) for fact, column in _CONDITIONS.items()}
    ours |= {"images": listed(sorted(filter(None, set(images_of_rows(runs))))), "software": context.versions(runs)}
    for replication in replications_of(dataset):
        for fact, of_ours in ours.items():
            printed = published_levels(replication.published, replication.name, fact)
            if fact in _LEVELS:
                printed = " / ".join(map(display_name, printed.split(" / ")))
            rows.append((Cell(COLUMNS[fact].label), Cell(printed or "not stated"), Cell(of_ours or "not recorded")))
            groups.append(replication.title)
    headings = (Heading(""), Heading("The original"), Heading("Ours, all that was measured here"))
    name, caption = "replication-differences", f"What differs besides what is measured.{context.quick_label(dataset)}"
    return Table(name, "What differs", caption, headings, tuple(rows), empty=NO_QUESTION, groups=tuple(groups))


def apart(dataset: Dataset) -> Table:
    """Return our measured configurations that answer the question of no number of an original."""
    answering = set[str]()
    for replication in replications_of(dataset):
        for match in replication.results["match"]:
            answering.update(match.identities)
    measured = context.measured(dataset)
    alone = measured[~measured["identity"].isin(answering)]
    shown = ("throughput", "speedup", "efficiency")
    table = table_of_configurations(dataset, "replication-apart", "Ours, apart", shown, (_APART,), alone)
    return table
