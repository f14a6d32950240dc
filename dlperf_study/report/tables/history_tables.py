"""What changed between two measurements, and over all measurements of a study: sentences and tables."""

from collections.abc import Callable, Iterator, Sequence

from dlperf_study.analysis.comparison import EQUAL, FASTER, NOT_DISTINGUISHABLE, SLOWER
from dlperf_study.analysis.dates import MINIMUM_DATES
from dlperf_study.analysis.statistics import MINIMUM_RUNS, Estimate
from dlperf_study.columns import COLUMNS
from dlperf_study.history.changes import Change, ConditionChange, MeasurementComparison, departures_from_earlier
from dlperf_study.history.measurements import Measurement
from dlperf_study.report.formatting import display_name, listed, plain, with_interval
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.cells import verdict_text
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.terminal import text_table
from dlperf_study.wording import counted, first_of

#: How many measurements have a column of their own, the last ones, and how many changes a sentence names.
MOST_DATES, MOST_NAMED = 6, 3
#: How many characters of a digest, a commit or a list of variables are shown.
_SHORT = {"measuring_code": 12, "git_commit": 12, "library_settings": 120, "host": 120}
WITHIN_DATES = (
    "Intervals of changes are of the runs of both measurements (Welch). They hold what differs from run to run on one "
    "date, and not what differs from date to date: a machine that nobody touched is not equally fast on two days."
)
TOGETHER = (
    "All verdicts of a table are made together (Holm): with a probability of at least 95 % none of them wrongly says "
    "faster or slower."
)
_RATIO = Heading("Change", "×", numeric=True, interval=True)
_NOT_ENOUGH_RUNS = f"fewer than {MINIMUM_RUNS} completed runs in one of the two, or equal runs: no interval"
_NO_INTERVAL_OF_SPEEDUP = "the speedup of one of the two has no interval"
_NOTHING_RECORDED = (
    "Nothing that is recorded differs between them: what changed is the state of the machine, or something that no run "
    "records."
)


def describe(comparison: MeasurementComparison) -> str:
    """Return what changed between two measurements as text for the command line."""
    parts = ["\n".join(change_sentences(comparison)), WITHIN_DATES]
    for table in (throughput_changes(comparison), speedup_changes(comparison), condition_changes(comparison)):
        if table.rows:
            parts.append(f"{table.title}\n{as_text(table)}")
    return "\n\n".join(parts)


def as_text(table: Table) -> str:
    """Return the rows of a table under their headings, with the notes below them, as text."""
    rows = [[" ".join(filter(None, (cell.text, cell.interval))) for cell in row] for row in table.rows]
    return "\n".join([text_table([heading.text for heading in table.headings], rows), *table.notes_without_footnotes])


def change_sentences(comparison: MeasurementComparison) -> list[str]:
    """Return what changed between two measurements, regressions first, and what may explain it."""
    changes = comparison.throughputs
    labels = _labels(comparison)
    since = f"From {comparison.before.title} to {comparison.after.title}"
    sentences = [f"{since}, of {counted(len(changes), 'configuration')} {_counts(changes)}."]
    for verdict in (SLOWER, FASTER):
        named = [_named(change, labels) for change in changes if change.verdict.word == verdict]
        if named:
            sentences.append(f"{verdict.capitalize()}: {first_of(named, MOST_NAMED, '; ')}.")
    if comparison.conditions:
        differing = [COLUMNS[change.column].label.lower() for change in comparison.conditions]
        sentences.append(f"What is recorded of the two differs in {listed(differing)}.")
    else:
        sentences.append(_NOTHING_RECORDED)
    return sentences


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


def _named(change: Change, labels: dict[str, str]) -> str:
    cell = _ratio_cell(change.log_ratio, "")
    return f"{labels[change.identity]} {cell.text}× {cell.interval}"


def throughput_changes(comparison: MeasurementComparison) -> Table:
    """Return the throughput of each configuration in both measurements, and what may be said of the change."""
    rates = _rates(comparison.before), _rates(comparison.after)
    headings = (
        Heading("Configuration"),
        *(Heading(name, COLUMNS["throughput"].unit, numeric=True, interval=True) for name in ("Before", "After")),
        _RATIO,
        Heading("Verdict"),
    )
    rows = _change_rows(comparison, comparison.throughputs, rates, _NOT_ENOUGH_RUNS)
    caption = f"Before: {comparison.before.title}. After: {comparison.after.title}. {WITHIN_DATES}"
    notes = (TOGETHER, *_not_compared(comparison))
    return Table("throughput-changes", "Changes of throughput", caption, headings, rows, notes)


def speedup_changes(comparison: MeasurementComparison) -> Table:
    """Return the speedup of each configuration in both measurements, and what may be said of the change."""
    speedups = _speedups(comparison.before), _speedups(comparison.after)
    headings = (
        Heading("Configuration"),
        *(Heading(name, "×", numeric=True, interval=True) for name in ("Before", "After")),
        _RATIO,
        Heading("Verdict"),
    )
    rows = _change_rows(comparison, comparison.speedups, speedups, _NO_INTERVAL_OF_SPEEDUP)
    caption = (
        "Each speedup is against the baseline of its own measurement: what makes a whole date faster or slower is in "
        "both and cancels."
    )
    empty = "The two have no speedup in common."
    return Table("speedup-changes", "Changes of speedup", caption, headings, rows, (TOGETHER,), empty)


def condition_changes(comparison: MeasurementComparison) -> Table:
    """Return what is recorded of the runs of the two measurements and differs."""
    headings = tuple(map(Heading, ("Recorded", "Before", "After")))
    rows = tuple(map(_condition_row, comparison.conditions))
    caption = "Of the completed runs of the configurations that both have; any of it may explain a change."
    return Table("condition-changes", "What differs", caption, headings, rows, empty=_NOTHING_RECORDED)


def dates(measurements: Sequence[Measurement]) -> Table:
    """Return the throughput of each configuration on each date, and how the last departs from the earlier ones.

    ``measurements``: of one study, in order; the last MOST_DATES of them have a column.
    """
    shown, labels = measurements[-MOST_DATES:], configuration_labels(measurements[-1].dataset)
    unit = COLUMNS["throughput"].unit
    columns = [Heading(measurement.begun, unit, numeric=True, interval=True) for measurement in shown]
    headings = (Heading("Configuration"), *columns, _RATIO, Heading("Verdict"))
    departures = {change.identity: change for change in departures_from_earlier(measurements)}
    ordered = [*departures, *(identity for identity in measurements[-1].throughputs if identity not in departures)]
    rates = [_rates(measurement) for measurement in shown]
    rows = []
    for identity in ordered:
        cells = [rate.get(identity, Cell.missing("no completed run on that date")) for rate in rates]
        rows.append((Cell(labels[identity]), *cells, *_departure_cells(departures.get(identity))))
    caption = (
        "In brackets: 95 % intervals over the runs of a date. Change: the last date relative to the mean of all "
        "earlier ones; its interval holds what differs from date to date too, as far as the earlier dates tell."
    )
    return Table("dates", "All measurements", caption, headings, tuple(rows), (TOGETHER,))


def _departure_cells(change: Change | None) -> tuple[Cell, Cell]:
    reason = f"an interval over dates needs {MINIMUM_DATES} earlier ones that differ"
    if change is None:
        return Cell.missing(reason), Cell.missing(reason)
    return _ratio_cell(change.log_ratio, reason), _verdict_cell(change, reason)


def _change_rows(
    comparison: MeasurementComparison,
    changes: Sequence[Change],
    values: tuple[dict[str, Cell], dict[str, Cell]],
    no_interval: str,
) -> tuple[tuple[Cell, ...], ...]:
    labels, (before, after) = _labels(comparison), values
    rows = []
    for change in changes:
        ratio, verdict = _ratio_cell(change.log_ratio, no_interval), _verdict_cell(change, no_interval)
        rows.append((Cell(labels[change.identity]), before[change.identity], after[change.identity], ratio, verdict))
    return tuple(rows)


def _not_compared(comparison: MeasurementComparison) -> Iterator[str]:
    """Yield what only one of the two measured, and what is another network under the same name."""
    labels = _labels(comparison)
    for reason, identities in (
        (f"Only in {comparison.before.name}", comparison.only_before),
        (f"Only in {comparison.after.name}", comparison.only_after),
        ("Not compared, because the two trained different numbers of parameters", comparison.other_networks),
    ):
        if identities:
            yield f"{reason}: {first_of([labels[identity] for identity in identities], MOST_DATES, '; ')}."


def _labels(comparison: MeasurementComparison) -> dict[str, str]:
    return configuration_labels(comparison.before.dataset) | configuration_labels(comparison.after.dataset)


def _rates(measurement: Measurement) -> dict[str, Cell]:
    """Return the throughput of each measured configuration, by identity."""
    few = f"fewer than {MINIMUM_RUNS} completed runs, or equal ones: no interval"
    return _cells(measurement, "throughput", few)


def _speedups(measurement: Measurement) -> dict[str, Cell]:
    return _cells(measurement, "speedup", "no interval: see the report of that measurement")


def _cells(measurement: Measurement, column: str, no_interval: str) -> dict[str, Cell]:
    rows = measurement.dataset.configurations.set_index("identity")[[column, f"{column}_low", f"{column}_high"]]
    cells = {}
    for identity, value, low, high in rows.dropna(subset=column).itertuples():
        has_interval = low == low
        cells[str(identity)] = (
            Cell(*with_interval(value, low, high)) if has_interval else Cell(plain(value), footnote=no_interval)
        )
    return cells


def _ratio_cell(log_ratio: Estimate, no_interval: str) -> Cell:
    interval = log_ratio.factor_interval()
    if interval is None:
        return Cell(plain(log_ratio.factor), footnote=no_interval)
    return Cell(*with_interval(log_ratio.factor, interval.low, interval.high, decision=1))


def _verdict_cell(change: Change, no_interval: str) -> Cell:
    verdict = change.verdict
    if verdict.word is None or verdict.equal_within is None:
        return Cell.missing(no_interval)
    return Cell(verdict_text(verdict.word, verdict.equal_within))


def _condition_row(change: ConditionChange) -> tuple[Cell, ...]:
    show: Callable[[str], str] = (
        (lambda value: value[: _SHORT[change.column]]) if change.column in _SHORT else display_name
    )
    levels = [listed(list(map(show, values))) or "not recorded" for values in (change.before, change.after)]
    return (Cell(COLUMNS[change.column].label), *map(Cell, levels))
