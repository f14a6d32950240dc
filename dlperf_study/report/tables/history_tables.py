"""Tables on what changed between two measurements, and over all measurements of a study."""

from collections.abc import Iterator, Sequence

from dlperf_study.analysis.dates import MINIMUM_DATES
from dlperf_study.analysis.statistics import MINIMUM_RUNS
from dlperf_study.columns import COLUMNS
from dlperf_study.history.changes import Change, MeasurementComparison, departures_from_earlier
from dlperf_study.history.measurements import Measurement
from dlperf_study.report.formatting import bounded_value, display_name, listed
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.cells import verdict_text
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.wording import first_of

#: How many measurements have a column of their own, the last ones.
MOST_DATES = 6
#: How many configurations a note names.
_MOST_NAMED = 6
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
_CHANGE = (Heading("Change", "×", numeric=True, interval=True), Heading("Verdict"))
_NOT_ENOUGH_RUNS = f"fewer than {MINIMUM_RUNS} completed runs in one of the two, or equal runs: no interval"
_NO_INTERVAL_OF_DATES = f"an interval over dates needs {MINIMUM_DATES} earlier ones that differ"
_NO_INTERVAL_OF_SPEEDUP = "the speedup of one of the two has no interval"
NOTHING_RECORDED = (
    "Nothing that is recorded differs between them: a change is one of the machine's state, or of what no run records."
)
NOTHING_IN_COMMON = "No configuration has completed runs in both."


def throughput_changes(comparison: MeasurementComparison) -> Table:
    """Return the throughput of each configuration in both measurements, and what may be said of the change."""
    rates = _rates(comparison.before), _rates(comparison.after)
    rows = _change_rows(comparison, comparison.throughputs, rates, _NOT_ENOUGH_RUNS)
    caption = f"Before: {comparison.before.title}. After: {comparison.after.title}. {WITHIN_DATES}"
    notes = (TOGETHER, *_not_compared(comparison))
    unit = COLUMNS[comparison.after.dataset.rate].unit
    headings, title = _headings(("Before", "After"), unit), "Changes of throughput"
    return Table("throughput-changes", title, caption, headings, rows, notes, NOTHING_IN_COMMON)


def speedup_changes(comparison: MeasurementComparison) -> Table:
    """Return the speedup of each configuration in both measurements, and what may be said of the change."""
    speedups = _speedups(comparison.before), _speedups(comparison.after)
    rows = _change_rows(comparison, comparison.speedups, speedups, _NO_INTERVAL_OF_SPEEDUP)
    caption = (
        "Each speedup is against the baseline of its own measurement: what makes a whole date faster or slower is in "
        "both and cancels."
    )
    headings, empty = _headings(("Before", "After"), "×"), "The two have no speedup in common."
    return Table("speedup-changes", "Changes of speedup", caption, headings, rows, (TOGETHER,), empty)


def _headings(columns: Sequence[str], unit: str) -> tuple[Heading, ...]:
    """Return the headings of a table of changes: ``columns`` of values, then the change and what may be said of it."""
    values = (Heading(name, unit, numeric=True, interval=True) for name in columns)
    return (Heading("Configuration"), *values, *_CHANGE)


def condition_changes(comparison: MeasurementComparison) -> Table:
    """Return what is recorded of the runs of the two measurements and differs."""
    headings = tuple(map(Heading, ("Recorded", "Before", "After")))
    rows = []
    for change in comparison.conditions:
        cells = (_levels_cell(change.column, levels) for levels in (change.before, change.after))
        rows.append((Cell(COLUMNS[change.column].label), *cells))
    caption = "Of the completed runs of the configurations that both have; any of it may explain a change."
    empty = NOTHING_RECORDED if comparison.has_common_configurations else NOTHING_IN_COMMON
    return Table("condition-changes", "What differs", caption, headings, tuple(rows), empty=empty)


def dates(measurements: Sequence[Measurement]) -> Table:
    """Return the throughput of each configuration on each date, and how the last departs from the earlier ones.

    ``measurements``: of one study, in order; the last MOST_DATES of them have a column.
    """
    shown, labels = measurements[-MOST_DATES:], configuration_labels(measurements[-1].dataset)
    departures = {change.identity: change for change in departures_from_earlier(measurements)}
    rates, rows = [_rates(measurement) for measurement in shown], []
    # Of two dates, the table of the last change has all of it.
    for identity in dict.fromkeys((*departures, *measurements[-1].throughputs)) if len(measurements) > 2 else ():
        cells = [rate.get(identity, Cell.missing("no completed run on that date")) for rate in rates]
        rows.append((Cell(labels[identity]), *cells, *_change_cells(departures.get(identity), _NO_INTERVAL_OF_DATES)))
    caption = (
        "In brackets: 95 % intervals over the runs of a date. Change: the last date relative to the mean of all "
        "earlier ones; its interval holds what differs from date to date too, as far as the earlier dates tell."
    )
    headings = _headings([measurement.begun for measurement in shown], COLUMNS[shown[-1].dataset.rate].unit)
    return Table("dates", "All measurements", caption, headings, tuple(rows), (TOGETHER,))


def _change_cells(change: Change | None, no_interval: str) -> tuple[Cell, Cell]:
    """Return the ratio and the verdict of a change; ``no_interval``: why these may be missing."""
    if change is None:
        return Cell.missing(no_interval), Cell.missing(no_interval)
    verdict = Cell.missing(no_interval)
    if change.verdict.word is not None and change.verdict.equal_within is not None:
        verdict = Cell(verdict_text(change.verdict.word, change.verdict.equal_within))
    return Cell.of(change.log_ratio.bounded_factor, no_interval, decision=1), verdict


def _change_rows(
    comparison: MeasurementComparison,
    changes: Sequence[Change],
    values: tuple[dict[str, Cell], dict[str, Cell]],
    no_interval: str,
) -> tuple[tuple[Cell, ...], ...]:
    labels, (before, after), rows = labels_of(comparison), values, []
    for change in changes:
        both = before[change.identity], after[change.identity]
        rows.append((Cell(labels[change.identity]), *both, *_change_cells(change, no_interval)))
    return tuple(rows)


def _not_compared(comparison: MeasurementComparison) -> Iterator[str]:
    """Yield what only one of the two measured, and what is another network under the same name."""
    labels = labels_of(comparison)
    for reason, identities in (
        (f"Only in {comparison.before.name}", comparison.only_before),
        (f"Only in {comparison.after.name}", comparison.only_after),
        ("Not compared, because the two trained different numbers of parameters", comparison.other_networks),
    ):
        if identities:
            yield f"{reason}: {first_of([labels[identity] for identity in identities], _MOST_NAMED, '; ')}."


def labels_of(comparison: MeasurementComparison) -> dict[str, str]:
    """Return what each configuration of two measurements is called, by identity."""
    return configuration_labels(comparison.before.dataset) | configuration_labels(comparison.after.dataset)


def _rates(measurement: Measurement) -> dict[str, Cell]:
    """Return the throughput of each measured configuration, by identity."""
    few = f"fewer than {MINIMUM_RUNS} completed runs, or equal ones: no interval"
    return _cells(measurement, measurement.dataset.rate, few)


def _speedups(measurement: Measurement) -> dict[str, Cell]:
    return _cells(measurement, "speedup", "no interval: see the report of that measurement")


def _cells(measurement: Measurement, column: str, no_interval: str) -> dict[str, Cell]:
    rows = measurement.dataset.configurations.dropna(subset=column)
    return {row.identity: Cell.of(bounded_value(row, column), no_interval) for row in rows.itertuples()}


def _levels_cell(column: str, levels: Sequence[str]) -> Cell:
    names = [level[: _SHORT[column]] if column in _SHORT else display_name(level) for level in levels]
    return Cell(listed(names) or "not recorded")
