"""What changed between two measurements, in sentences: on a page, and for the command line with the tables."""

from collections.abc import Sequence

from dlperf_study.analysis.comparison import EQUAL, FASTER, NOT_DISTINGUISHABLE, SLOWER
from dlperf_study.history.changes import Change, MeasurementComparison
from dlperf_study.history.same_configurations import differences_of_most_similar
from dlperf_study.report.formatting import listed, listed_columns, value_text
from dlperf_study.report.tables.history_tables import (
    NOTHING_RECORDED,
    WITHIN_DATES,
    condition_changes,
    labels_of,
    speedup_changes,
    throughput_changes,
)
from dlperf_study.report.tables.table import Table
from dlperf_study.terminal import text_table
from dlperf_study.wording import counted, first_of, level

#: How many changes a sentence names.
MOST_NAMED = 3


def change_sentences(comparison: MeasurementComparison) -> list[str]:
    """Return what changed between two measurements, regressions first, and what may explain it."""
    if not comparison.has_common_configurations:
        return [nothing_in_common(comparison)]
    changes = comparison.throughputs
    labels = labels_of(comparison)
    since = f"From {comparison.before.title} to {comparison.after.title}"
    sentences = [f"{since}, of {counted(len(changes), 'configuration')} {_counts(changes)}."]
    for verdict in (SLOWER, FASTER):
        named = []
        for change in changes:
            if change.verdict.word == verdict:
                ratio = value_text(change.log_ratio.bounded_factor, "×", decision=1)
                named.append(f"{labels[change.identity]} {ratio}")
        if named:
            sentences.append(f"{verdict.capitalize()}: {first_of(named, MOST_NAMED, '; ')}.")
    if comparison.conditions:
        differing = listed_columns(change.column for change in comparison.conditions)
        sentences.append(f"What is recorded of the two differs in {differing}.")
    else:
        sentences.append(NOTHING_RECORDED)
    return sentences


def nothing_in_common(comparison: MeasurementComparison) -> str:
    """Return that two measurements can't be compared, and in what the most similar of their configurations differ."""
    names = f"{comparison.before.title} and {comparison.after.title}"
    differing = []
    for name, values in differences_of_most_similar(comparison.before, comparison.after).items():
        before, after = ("not stated" if value is None else level(value) for value in values)
        differing.append(f"{name} ({before} and {after})")
    similar = f": the two most similar differ in {listed(differing)}" if differing else ""
    return f"{names} have no measured configuration in common{similar}."


def _counts(changes: Sequence[Change]) -> str:
    """Return how many configurations have each verdict: ``1 is slower, 2 are equal``."""
    verdicts = [change.verdict.word for change in changes]
    counts = []
    for verdict in (SLOWER, FASTER, EQUAL, NOT_DISTINGUISHABLE):
        if count := verdicts.count(verdict):
            counts.append(f"{count} {'is' if count == 1 else 'are'} {verdict}")
    if count := verdicts.count(None):
        counts.append(f"{count} {'has' if count == 1 else 'have'} no interval")
    return listed(counts) or "none can be compared"


def describe(comparison: MeasurementComparison) -> str:
    """Return what changed between two measurements as text for the command line."""
    parts = ["\n".join(change_sentences(comparison)), WITHIN_DATES]
    for table in (throughput_changes(comparison), speedup_changes(comparison), condition_changes(comparison)):
        if table.rows:
            parts.append(f"{table.title}\n{as_text(table)}")
    return "\n\n".join(parts)


def as_text(table: Table) -> str:
    """Return the rows of a table under their headings, with the notes below them, as text."""
    rows = []
    for row in table.rows:
        rows.append([cell.printed for cell in row])
    return "\n".join([text_table([heading.text for heading in table.headings], rows), *table.notes_without_footnotes])
