"""Tables on what changed between two measurements, and over all measurements of a study."""

from collections.abc import Iterator, Sequence

from dlperf_study.analysis.dates import MINIMUM_DATES
from dlperf_study.analysis.statistics import MINIMUM_RUNS, Estimate
from dlperf_study.columns import COLUMNS
from dlperf_study.history.changes import Change, ConditionChange, MeasurementComparison, departures_from_earlier
from dlperf_study.history.measurements import Measurement
from dlperf_study.report.formatting import display_name, is_missing, listed, plain, with_interval
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
_RATIO = Heading("Change", "×", numeric=True, interval=True)
_NOT_ENOUGH_RUNS = f"fewer than {MINIMUM_RUNS} completed runs in one of the two, or equal runs: no interval"
_NO_INTERVAL_OF_SPEEDUP = "the speedup of one of the two has no interval"
NOTHING_RECORDED = (
    "Nothing that is recorded differs between them: a change is one of the machine's state, or of what no run records."
)
NOTHING_IN_COMMON = "No configuration has completed runs in both."


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
    return Table("throughput-changes", "Changes of throughput", caption, headings, rows, notes, NOTHING_IN_COMMON)


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
    empty = NOTHING_RECORDED if comparison.has_common_configurations else NOTHING_IN_COMMON
    return Table("condition-changes", "What differs", caption, headings, rows, empty=empty)


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
    # Of two dates, the table of the last change has all of it.
    for identity in ordered if len(measurements) > 2 else ():
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
    return ratio_cell(change.log_ratio, reason), _verdict_cell(change, reason)


def _change_rows(
    comparison: MeasurementComparison,
    changes: Sequence[Change],
    values: tuple[dict[str, Cell], dict[str, Cell]],
    no_interval: str,
) -> tuple[tuple[Cell, ...], ...]:
    labels, (before, after) = labels_of(comparison), values
    rows = []
    for change in changes:
        ratio, verdict = ratio_cell(change.log_ratio, no_interval), _verdict_cell(change, no_interval)
        rows.append((Cell(labels[change.identity]), before[change.identity], after[change.identity], ratio, verdict))
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
    return _cells(measurement, "throughput", few)


def _speedups(measurement: Measurement) -> dict[str, Cell]:
    return _cells(measurement, "speedup", "no interval: see the report of that measurement")


def _cells(measurement: Measurement, column: str, no_interval: str) -> dict[str, Cell]:
    rows = measurement.dataset.configurations.set_index("identity")[[column, f"{column}_low", f"{column}_high"]]
    cells = {}
    for identity, value, low, high in rows.dropna(subset=column).itertuples():
        if is_missing(low):
            cells[str(identity)] = Cell(plain(value), footnote=no_interval)
        else:
            cells[str(identity)] = Cell(*with_interval(value, low, high))
    return cells


def ratio_cell(log_ratio: Estimate, no_interval: str) -> Cell:
    """Return a ratio with its interval, from its logarithm; ``no_interval``: the footnote of one without."""
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
    cells = (_levels_cell(change.column, levels) for levels in (change.before, change.after))
    return (Cell(COLUMNS[change.column].label), *cells)


def _levels_cell(column: str, levels: Sequence[str]) -> Cell:
    names = [level[: _SHORT[column]] if column in _SHORT else display_name(level) for level in levels]
    return Cell(listed(names) or "not recorded")
